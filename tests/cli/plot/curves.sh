posenc plot curves sinusoidal --channels 4:6 --dim 20 --length 60
