posenc list nope --json
