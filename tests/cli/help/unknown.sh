posenc help lst
