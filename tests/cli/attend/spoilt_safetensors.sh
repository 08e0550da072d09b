printf '\024\0\0\0\0\0\0\0{"q":{},"q":{}}      ' >model.safetensors
posenc attend alibi -i model.safetensors -o out.npz; status=$?; ls; exit $status
