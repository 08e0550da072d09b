posenc bench --repeats 0
