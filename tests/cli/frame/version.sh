POSENC_ISA=plain posenc --version; POSENC_ISA=plain posenc list --version
