posenc properties sinusoidal --sweep base=100,1
