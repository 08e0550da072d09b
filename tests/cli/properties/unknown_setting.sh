posenc properties sinusoidal --set bse=5
