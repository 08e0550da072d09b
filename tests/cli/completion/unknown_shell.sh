posenc completion tcsh
