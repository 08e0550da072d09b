# SPDX-License-Identifier: MIT
#
# Reads the list of encodings: rows ENCODING(place, room, name) of encodings.def
#
# posenc_rooms(ROOMS NAMES FILE) sets ROOMS to the sources, each once though several rows may share a room, and NAMES
# to the names of the encodings, one per row. A room too large for one file is room.c with parts room_*.c beside it. A
# change of FILE configures again.
function(posenc_rooms rooms_variable names_variable file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} rows REGEX "^[ \t]*ENCODING\\(")
  set(rooms)
  set(names)
  foreach(row IN LISTS rows)
    if(NOT row MATCHES "ENCODING\\([ \t]*([a-z0-9_]+)[ \t]*,[ \t]*([a-z0-9_]+)[ \t]*,[ \t]*([a-z0-9_]+)[ \t]*\\)")
      message(FATAL_ERROR "${file}: the row `${row}` is not ENCODING(place, room, name)")
    endif()
    set(room src/encodings/${CMAKE_MATCH_1}/${CMAKE_MATCH_2})
    list(APPEND names ${CMAKE_MATCH_3})
    file(GLOB parts CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${room}_*.c)
    list(APPEND rooms ${room}.c ${parts})
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  set(${rooms_variable} ${rooms} PARENT_SCOPE)
  set(${names_variable} ${names} PARENT_SCOPE)
endfunction()
