posenc list --jsno
