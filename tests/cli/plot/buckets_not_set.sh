posenc plot buckets deberta
