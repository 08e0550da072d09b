posenc attend alibi -i missing.safetensors -o out.npz; status=$?; ls; exit $status
