# A range that is longer than a terminal is wide wraps, and meanings stand below.
posenc list sinusoidal2d
