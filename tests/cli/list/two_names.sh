posenc list alibi rope
