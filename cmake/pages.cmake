# SPDX-License-Identifier: MIT
#
# The man page and the completion for bash, printed by the tool itself from its tables of commands and options
#
# Skipped when cross-compiling without an emulator: the tool of another machine cannot print them.
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
  set(pages ${CMAKE_CURRENT_BINARY_DIR}/posenc.1 ${CMAKE_CURRENT_BINARY_DIR}/posenc.bash)
  add_custom_command(
    OUTPUT ${pages}
    COMMAND posenc_tool help --man > posenc.1
    COMMAND posenc_tool completion bash > posenc.bash
    DEPENDS posenc_tool
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
    COMMENT "Printing the man page and the completion"
    VERBATIM)
  add_custom_target(posenc_pages ALL DEPENDS ${pages})
endif()
