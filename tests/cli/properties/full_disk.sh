posenc properties nope --length 8 --tokens 4 >/dev/full
