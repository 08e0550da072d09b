posenc list rope --explain
