posenc list --json=yes
