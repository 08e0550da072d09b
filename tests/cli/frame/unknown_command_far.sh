posenc frobnicate
