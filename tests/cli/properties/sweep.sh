posenc properties sinusoidal --sweep base=100,1e4,1e6 --sweep spacing=geometric,linear,quadratic --sweep channels=both,sin
