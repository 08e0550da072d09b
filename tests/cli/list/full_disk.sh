# /dev/full refuses every byte: the tool must say so.
posenc list >/dev/full
