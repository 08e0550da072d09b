posenc plot heatmap alibi
