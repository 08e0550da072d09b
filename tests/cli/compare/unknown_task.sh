posenc compare --tasks order,sudoku -o out text.txt
