posenc plot bias swin --heads 1 --set window=3x4
