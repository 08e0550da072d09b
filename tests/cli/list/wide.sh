posenc list rope | sed -n "/^  schedule/,/^  factor/p; /^  D=128 schedule/,/^  at the right/p"
