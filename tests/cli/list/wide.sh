posenc list rope | sed -n "/^  schedule/,/^  factor/p"
