# The completion offers commands, the options of a command, and encodings.
posenc completion bash >posenc.bash
cat >try.bash <<"EOF"
complete() { :; }
source ./posenc.bash
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _posenc; echo "${COMPREPLY[@]}"; }
try posenc li
try posenc list --j
try posenc list alib
EOF
bash try.bash
