posenc verify "$SOURCE/tests/golden" -e alibbi
