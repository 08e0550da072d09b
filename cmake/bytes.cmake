# SPDX-License-Identifier: MIT
# cmake -DFROM=F -DTO=G -P bytes.cmake: the bytes of F as a list for C, while it builds (posenc_bytes: while it configures)
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "${bytes}\n")
