# Every config.json of the reference cases, by the rules of comparison that agree.py states.
python3 "$SOURCE/tests/cli/inspect/agree.py" "$SOURCE/tests/golden/configs" json
