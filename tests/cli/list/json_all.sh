# Every encoding, and the same objects that a single name gives.
posenc list --json >all.json && python3 - <<EOF
import json, subprocess
for one in json.load(open("all.json")):
    alone = json.loads(subprocess.check_output(["posenc", "list", "--json", one["name"]]))
    assert one == alone and one["settings"] is not None
EOF
