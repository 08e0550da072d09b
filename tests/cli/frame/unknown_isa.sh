# Which ones there are depends on the processor.
POSENC_ISA=abacus posenc list alibi 2>&1 | sed 's/one of: .*/one of: .../'
POSENC_ISA=abacus posenc list alibi 2>/dev/null
