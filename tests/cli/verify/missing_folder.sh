posenc verify nowhere
