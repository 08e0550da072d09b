# A reader that leaves early is no error, and nothing is said.
posenc list | head -n 1 | tr -s ' '
