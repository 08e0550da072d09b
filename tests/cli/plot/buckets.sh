posenc plot buckets t5 --length 64
