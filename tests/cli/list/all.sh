# A line per encoding in the order of the registry; long cells go on below. What a line says of an encoding is its room's own.
posenc list >all.txt && head -n 1 all.txt | tr -s ' ' && posenc list --json >all.json && python3 - <<EOF
import json
rooms = json.load(open("all.json"))
lines = [line.split() for line in open("all.txt").read().split("\n") if line and not line.startswith(" ")][1:]
assert [line[0] for line in lines] == [room["name"] for room in rooms], lines
assert [line[1] for line in lines] == [room["place"] for room in rooms], lines
assert len(rooms) > 1 and max(len(line) for line in open("all.txt")) <= 101
EOF
