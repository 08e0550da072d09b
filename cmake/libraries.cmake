# SPDX-License-Identifier: MIT
#
# How a target of this tree is compiled, and how a public library is made
#
# posenc_flags(TARGET): C17, all warnings, hidden symbols, no contraction of a*b+c (what is read is what runs: every
# fused multiply-add is written out). Optimisation is the build type's.
#
# posenc_library(NAME SOURCES ... LINK ... PACKAGES ...): compiles once and makes NAME_static and NAME_shared of it.
# The alias posenc::NAME (posenc::files for posenc_files) is the shared one, or the static one where
# BUILD_SHARED_LIBS is set to off. LINK names libraries of this tree by their plain name, or system libraries;
# PACKAGES are imported targets. Tables of functions have one list of arguments for all rows, and few rows need all of
# them: so no warning about unused ones.
function(posenc_flags target)
  set_target_properties(${target} PROPERTIES C_STANDARD 17 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
                                             C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror=implicit-function-declaration -Wno-unused-parameter -Wpedantic -Wconversion -Wshadow -ffp-contract=off)
  if(CMAKE_C_COMPILER_ID MATCHES Clang) # a text of two lines in a list, and what a test that failed before would leave unset
    target_compile_options(${target} PRIVATE -Wno-string-concatenation -Wno-sometimes-uninitialized)
  endif()
  if(MINGW) # whose isfinite and isnan mention a conversion to float that they do not make
    target_compile_options(${target} PRIVATE -Wno-float-conversion)
  endif()
  target_compile_definitions(${target} PRIVATE _POSIX_C_SOURCE=200809L _FILE_OFFSET_BITS=64 POSENC_IS_BUILT)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
endfunction()

function(posenc_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PACKAGES" ${ARGN})
  string(REGEX REPLACE "^posenc_" "" short ${name})
  add_library(${name}_objects OBJECT ${ARG_SOURCES})
  posenc_flags(${name}_objects)
  target_include_directories(${name}_objects PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name}_objects PRIVATE ${ARG_PACKAGES})
  foreach(kind static shared)
    string(TOUPPER ${kind} KIND)
    add_library(${name}_${kind} ${KIND} $<TARGET_OBJECTS:${name}_objects>)
    set_target_properties(${name}_${kind} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE C)
    target_include_directories(${name}_${kind} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    foreach(library IN LISTS ARG_LINK)
      if(TARGET ${library}_${kind})
        target_link_libraries(${name}_${kind} PUBLIC ${library}_${kind})
      else()
        target_link_libraries(${name}_${kind} PRIVATE ${library})
      endif()
    endforeach()
    target_link_libraries(${name}_${kind} PRIVATE ${ARG_PACKAGES})
  endforeach()
  set_target_properties(${name}_static PROPERTIES EXPORT_NAME ${short}_static)
  set(soversion ${PROJECT_VERSION_MAJOR})
  if(soversion EQUAL 0) # every minor version may break the ABI, and has a name of its own
    set(soversion 0.${PROJECT_VERSION_MINOR})
  endif()
  set_target_properties(${name}_shared PROPERTIES EXPORT_NAME ${short} VERSION ${PROJECT_VERSION}
                        SOVERSION ${soversion})
  add_library(posenc::${short}_static ALIAS ${name}_static)
  if(DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS)
    add_library(posenc::${short} ALIAS ${name}_static)
  else()
    add_library(posenc::${short} ALIAS ${name}_shared)
  endif()
endfunction()
