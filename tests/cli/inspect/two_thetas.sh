# Layers differ; the tables of frequencies are left out here.
posenc inspect "$SOURCE/tests/golden/configs/gemma3_4b.json" | grep -v '^  [0-9]* *[0-9.e-]* *[0-9.]* *[0-9.]*$'
