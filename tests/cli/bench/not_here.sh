# A level that no x86 has and a row that takes minutes: both are there, and say why they are empty.
posenc bench --goal limits --list --json | grep -c '"reason": "not measured: --list"'
posenc bench --goal G17
