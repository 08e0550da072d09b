posenc properties sinusoidal --set dim=8
