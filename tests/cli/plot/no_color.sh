picture='posenc plot heatmap sinusoidal --length 8 --dim 8'
coloured() { TERM=xterm script -qec "$picture" /dev/null | grep -c "$(printf '\033\[38')"; }
[ "$(coloured)" -gt 3 ] && echo 'a terminal: in colour'
NO_COLOR=1 coloured
NO_COLOR='' coloured >/dev/null && echo 'an empty NO_COLOR says nothing'
