posenc properties swin
