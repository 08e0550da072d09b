posenc plot bias alibi -o alibi.gif
