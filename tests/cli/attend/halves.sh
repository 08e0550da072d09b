# Real and imaginary parts in two arrays each; so are the results.
posenc attend complex_order_attention -i "$SOURCE/tests/golden/complex_order_attention__conj.npz" --set conjugate=yes --grad -o out.npz && grep -ao '[a-z_]*\.npy' out.npz | sort -u
