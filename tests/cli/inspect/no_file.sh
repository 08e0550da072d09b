posenc inspect
