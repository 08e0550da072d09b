posenc list alibi
