posenc properties sinusoidal --sweep base
