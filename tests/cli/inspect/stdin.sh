posenc inspect - <"$SOURCE/tests/golden/configs/gpt2.json"
