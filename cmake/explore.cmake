# SPDX-License-Identifier: MIT
#
# The module of the explorer's page: the library, compiled to WebAssembly by clang, with plain kernels and no threads
#
# POSENC_WASM          AUTO  where clang, wasm-ld and Debian's wasi-libc are found, and this is the build that people use
#                      ON    they must be there;  OFF  `posenc explore` says which packages are missing
# POSENC_WASM_JANSSON  the folder of jansson's source (tools/deps.sh --sources, as `make explore` calls it), with which the page
#                      reads a config.json; where it is not, the page says so
# posenc_explore(INC): makes INC, the module's bytes as a list for C, and sets explore_is_built.
set(POSENC_WASM AUTO CACHE STRING "The module of `posenc explore`: ON (needs clang, lld, wasi-libc, libclang-rt-dev-wasm32), OFF, or AUTO: if they are there")
set(POSENC_WASM_JANSSON ${CMAKE_CURRENT_SOURCE_DIR}/build/sources/jansson CACHE PATH "jansson's source, for the module of `posenc explore`")

function(posenc_explore to)
  set(explore_is_built OFF PARENT_SCOPE)
  if(NOT POSENC_WASM OR (POSENC_WASM STREQUAL AUTO AND (CMAKE_CROSSCOMPILING OR CMAKE_C_FLAGS MATCHES "-fsanitize|--coverage")))
    return()
  endif()
  find_program(POSENC_WASM_CC NAMES clang-19 clang-16 clang-15 clang-14 clang)
  find_program(POSENC_WASM_LD NAMES wasm-ld wasm-ld-19 wasm-ld-16 wasm-ld-15 wasm-ld-14)
  set(target --target=wasm32-wasi)
  if(POSENC_WASM_CC AND POSENC_WASM_LD)
    set(try ${CMAKE_CURRENT_BINARY_DIR}/wasm/try.c)
    file(WRITE ${try} "#include <math.h>\n#include <stdio.h>\nint main(void) { return printf(\"%g\", sin(1)) < 0; }\n")
    execute_process(COMMAND ${POSENC_WASM_CC} ${target} ${try} -o ${try}.wasm RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  else()
    set(failed 1)
  endif()
  if(failed)
    if(POSENC_WASM STREQUAL AUTO)
      return()
    endif()
    message(FATAL_ERROR "posenc: POSENC_WASM=ON needs clang, lld, wasi-libc and libclang-rt-dev-wasm32 (tools/packages.txt)")
  endif()

  file(GLOB own CONFIGURE_DEPENDS src/explore/*.c)
  file(GLOB measured CONFIGURE_DEPENDS src/measure/*.c)
  file(GLOB pictures CONFIGURE_DEPENDS src/plot/*.c)
  list(FILTER pictures EXCLUDE REGEX "/(gnuplot|script|layout|terminal|terminal_table)\\.c$") # who draws elsewhere
  file(GLOB json CONFIGURE_DEPENDS ${POSENC_WASM_JANSSON}/src/*.c)
  set(read src/files/arrays/arrays.c src/files/arrays/text.c)
  set(with_json)
  if(json)
    file(GLOB_RECURSE read CONFIGURE_DEPENDS src/files/*.c)
    list(FILTER read EXCLUDE REGEX "/(npz_zip|whole_file)\\.c$") # nothing is written here
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/wasm/jansson/jansson_private_config.h CONTENT "#define HAVE_STDINT_H 1\n")
    set(with_json -DPE_EXPLORE_FILES -DHAVE_CONFIG_H -isystem ${CMAKE_CURRENT_BINARY_DIR}/wasm/jansson -isystem ${POSENC_WASM_JANSSON}/android
                  -isystem ${POSENC_WASM_JANSSON}/src)
  endif()
  set(sources ${core} src/kernels/kernels.c src/kernels/isa_plain.c ${rooms} src/encodings/registry.c src/encodings/common.c
              ${measured} ${pictures} ${read} ${json} ${own})
  list(FILTER sources EXCLUDE REGEX "/base/(openmp|pool)\\.c$")
  list(TRANSFORM sources REPLACE "^src/" "${CMAKE_CURRENT_SOURCE_DIR}/src/")
  set(flags ${target} -std=c17 -ffp-contract=off -D_POSIX_C_SOURCE=200809L -DPOSENC_IS_BUILT
            -I${CMAKE_CURRENT_SOURCE_DIR}/src -I${CMAKE_CURRENT_SOURCE_DIR}/include -include explore/fused.h ${with_json})
  set(objects)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name ${CMAKE_CURRENT_SOURCE_DIR}/src ${source})
    string(REGEX REPLACE "^.*/sources/" "" name ${name})
    string(REPLACE "/" "_" name ${name})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/wasm/${name}.o)
    set(level -Os) # small, but for what runs longest
    if(source MATCHES "/(kernels|engine)/|/base/angle\\.c$")
      set(level -O3 -msimd128 -fno-math-errno -fno-trapping-math)
    endif()
    add_custom_command(OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d VERBATIM
      COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${POSENC_WASM_CC} ${flags} ${level} -MD -MF ${object}.d -MT ${object} -c ${source} -o ${object}
      COMMENT "Compiling ${name} to WebAssembly")
    list(APPEND objects ${object})
  endforeach()
  set(exports explore_picture explore_offers explore_attend explore_model explore_registry explore_csv explore_memory explore_free)
  list(TRANSFORM exports PREPEND -Wl,--export=)
  set(module ${CMAKE_CURRENT_BINARY_DIR}/wasm/explore.wasm)
  add_custom_command(OUTPUT ${to} DEPENDS ${objects} cmake/data.cmake VERBATIM
    COMMAND ${POSENC_WASM_CC} ${target} -mexec-model=reactor -fuse-ld=${POSENC_WASM_LD} -Wl,--strip-all -Wl,-z,stack-size=1048576
            ${exports} ${objects} -lm -o ${module}
    COMMAND ${CMAKE_COMMAND} -DPOSENC_BYTES=${module} -DTO=${to} -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/data.cmake
    COMMENT "Linking the explorer's module")
  set(explore_is_built ON PARENT_SCOPE)
endfunction()
