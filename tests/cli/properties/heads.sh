posenc properties sinusoidal --heads 3
