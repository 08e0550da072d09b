# After -- a word is an argument, whatever it looks like.
posenc list -- --json
