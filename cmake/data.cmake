# SPDX-License-Identifier: MIT
#
# Data that is no C, made ready to be included by it
#
# posenc_catalogue(FROM TO): the pairs of a catalogue in gettext's format (.po) as rows {msgid, msgstr}: its strings are
# written as C's are. posenc_bytes(FROM TO): any file, byte by byte. A change of FROM configures again.
function(posenc_catalogue from to)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${from})
  file(READ ${from} rows)
  string(REGEX REPLACE "(^|\n)#[^\n]*" "" rows "${rows}")
  string(REPLACE "\nmsgid " "\n}, {" rows "${rows}")
  string(REPLACE "\nmsgstr " "\n, " rows "${rows}")
  file(CONFIGURE OUTPUT ${to} CONTENT "{\"\", \"\"${rows}},\n" @ONLY)
endfunction()

function(posenc_bytes from to)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${from})
  posenc_list_bytes(${from} ${to} FALSE)
endfunction()

function(posenc_list_bytes from to gzip)
  file(READ ${from} bytes HEX)
  if(gzip) # without the time: the same bytes whenever it is built
    string(REGEX REPLACE "^(1f8b08..)........" "\\100000000" bytes "${bytes}")
  endif()
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  file(CONFIGURE OUTPUT ${to} CONTENT "${bytes}\n" @ONLY)
endfunction()

if(DEFINED POSENC_BYTES) # cmake -DPOSENC_BYTES=F -DTO=G -P data.cmake, while it builds: F's bytes, compressed by gzip
  file(ARCHIVE_CREATE OUTPUT ${POSENC_BYTES}.gz PATHS ${POSENC_BYTES} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
  posenc_list_bytes(${POSENC_BYTES}.gz ${TO} TRUE)
  file(TOUCH ${TO}) # also where the bytes are those of before
endif()
