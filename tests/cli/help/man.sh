# The page is roff that groff, where there is one, reads without a warning.
posenc help --man >posenc.1 && head -n 1 posenc.1
for name in list attend verify plot properties compare; do grep -c "^.SS \"posenc $name" posenc.1; done
if command -v groff >/dev/null; then groff -man -Tascii -ww posenc.1 2>&1 >/dev/null; fi
