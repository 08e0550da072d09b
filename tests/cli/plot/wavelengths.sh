posenc plot wavelengths rope --length 2048 --dim 32
