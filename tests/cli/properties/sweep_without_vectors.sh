posenc properties alibi --sweep learned=yes,no
