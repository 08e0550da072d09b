posenc plot mass alibi --heads 4
