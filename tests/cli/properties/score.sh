posenc properties t5 --length 256 --tokens 16 --draws 4
