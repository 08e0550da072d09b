posenc properties --sweep base=100
