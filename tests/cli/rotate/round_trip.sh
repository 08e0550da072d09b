# There and back through a pipe: what a call has written, the next one reads.
posenc rotate -i "$SOURCE/tests/golden/rope/rope__defaults.npz" --set base=100 -o - |
    posenc rotate --inverse --set base=100 -i - -o back.npz && ls
