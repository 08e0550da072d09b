for ending in png svg pdf; do
    posenc plot similarity2d sinusoidal2d -o "map.$ending" && head -c 5 "map.$ending" | tr -d '\n\r' | tr -c '[:print:]' . && echo
done
