posenc compare -e 'sinusoidal[combine=joined]' -o out text.txt
