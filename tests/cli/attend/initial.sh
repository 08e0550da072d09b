# What the input lacks is initialised and named; what nobody asked for is named too.
posenc attend t5+rope -i "$SOURCE/tests/golden/transformer_xl__bidir.npz" -o out.npz && ls
