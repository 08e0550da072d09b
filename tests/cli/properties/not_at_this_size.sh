posenc properties swin --set window=7x7
