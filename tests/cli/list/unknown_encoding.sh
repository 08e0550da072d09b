posenc list alibbi
