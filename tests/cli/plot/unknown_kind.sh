posenc plot heat sinusoidal
