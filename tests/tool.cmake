# SPDX-License-Identifier: MIT
#
# Tests of the tool as its users run it, and of what is installed; included by CMakeLists.txt where the tool is built

# The tool against the reference cases, as a user would run it.
add_test(NAME verify-golden COMMAND posenc_tool verify ${golden})
add_test(NAME verify-golden-rope COMMAND posenc_tool verify ${golden}/rope)
add_test(NAME verify-golden-grids COMMAND posenc_tool verify ${golden}/grids)
add_test(NAME verify-golden-frontier COMMAND posenc_tool verify ${golden}/frontier)
add_test(NAME verify-golden-wave2 COMMAND posenc_tool verify ${golden}/frontier/wave2)

# Every instruction set that was compiled against the reference executor, encoding by encoding, and against the cases; one
# that this processor lacks is skipped. The best of them is what the tests above ran on. Under sanitizers the cases alone: they
# visit the same kernels in a tenth of the time.
foreach(isa IN LISTS instruction_sets)
  set(on ${CMAKE_CURRENT_SOURCE_DIR}/isa/run_on.sh $<TARGET_FILE:posenc_tool> ${isa})
  if(NOT sanitized)
    add_test(NAME isa-${isa}/executors COMMAND ${on} $<TARGET_FILE:test_encodings_executors>)
    set_tests_properties(isa-${isa}/executors PROPERTIES SKIP_RETURN_CODE 77)
  endif()
  foreach(folder . rope frontier frontier/wave2)
    string(MAKE_C_IDENTIFIER verify-golden-${folder} name)
    add_test(NAME isa-${isa}/${name} COMMAND ${on} $<TARGET_FILE:posenc_tool> verify ${golden}/${folder})
    set_tests_properties(isa-${isa}/${name} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
endforeach()

# The tool's words, to the byte: one transcript per command. Under sanitizers without `compare`, which takes six minutes there.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
file(GLOB transcripts CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/cli cli/*.txt)
if(sanitized)
  list(REMOVE_ITEM transcripts cli/compare.txt)
endif()
foreach(transcript IN LISTS transcripts)
  get_filename_component(name ${transcript} NAME_WE)
  add_test(NAME cli/${name} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cli/run.py
                                    $<TARGET_FILE:posenc_tool> ${name})
endforeach()

# Long runs: the tool itself, killed and gone on with; with -DPOSENC_MPI=ON under mpirun too. Not under sanitizers, where its ten
# comparisons take twenty minutes: train/test_resume reads damaged checkpoints there.
if(NOT sanitized)
  add_test(NAME runs/test_long_runs COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/runs/test_long_runs.sh ${PROJECT_SOURCE_DIR}
                                            $<TARGET_FILE:posenc_tool>)
endif()

# Checkpoints of 200 MB in 32 MiB of address space, and killed runs.
if(NOT sanitized)
  add_test(NAME runs/test_checkpoints COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/runs/test_checkpoints.py
                                              $<TARGET_FILE:posenc_tool>)
endif()
if(POSENC_MPI)
  add_test(NAME mpi/test_mpi COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/runs/test_mpi.sh ${PROJECT_SOURCE_DIR}
                                     $<TARGET_FILE:posenc_tool>)
  set_tests_properties(mpi/test_mpi PROPERTIES RUN_SERIAL ON)
endif()

# Calls that fail and names of strangers: a sample; `make test-faults` has all. Not under sanitizers, which have an allocator of their own.
if(NOT sanitized)
  add_library(posenc_faults MODULE EXCLUDE_FROM_ALL faults/faults.c)
  add_dependencies(posenc_tests posenc_faults)
  add_test(NAME faults/allocations
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/faults/allocations.py $<TARGET_FILE:posenc_tool>
                   $<TARGET_FILE:posenc_faults>)
  add_executable(posenc_short EXCLUDE_FROM_ALL faults/short.c)
  set_target_properties(posenc_short PROPERTIES C_EXTENSIONS ON)
  add_dependencies(posenc_tests posenc_short)
  add_test(NAME faults/short
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/faults/system.py $<TARGET_FILE:posenc_tool>
                   $<TARGET_FILE:posenc_faults> short_calls)
  set_tests_properties(faults/short PROPERTIES SKIP_RETURN_CODE 77)
  add_test(NAME faults/names COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/faults/names.py
                                     $<TARGET_FILE:posenc_tool>)
endif()

# The explorer's page in a headless chromium; skipped where that or the module is missing.
if(NOT sanitized)
  add_test(NAME explore/test_explore COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/explore/test_explore.py
                                             $<TARGET_FILE:posenc_tool>)
  set_tests_properties(explore/test_explore PROPERTIES SKIP_RETURN_CODE 77 RUN_SERIAL ON) # it times a page
endif()

# What the libraries promise to linkers; skipped in part where libabigail is missing.
if(NOT sanitized AND NOT CMAKE_C_FLAGS MATCHES "--coverage" AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME abi/test_abi COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/abi/run.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/abi
                                     ${CMAKE_C_COMPILER} ${CMAKE_COMMAND})
  set_tests_properties(abi/test_abi PROPERTIES SKIP_RETURN_CODE 77)
endif()

# The kernels of 64-bit ARM, by a cross compiler and under an emulator; skipped where these are missing.
if(NOT sanitized AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME cross/aarch64 COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/cross/run.sh ${PROJECT_SOURCE_DIR}
                                      ${PROJECT_BINARY_DIR}/aarch64 ${CMAKE_COMMAND})
  set_tests_properties(cross/aarch64 PROPERTIES SKIP_RETURN_CODE 77)
endif()

# Programs in scripts: the house's own checker, and what a user of the installed library sees. Not under sanitizers: a
# library that has them cannot be linked by a program without, and the checkers compile nothing of ours. One of them holds the
# structures that bench/peers gives to Python's ctypes against the header, one the table of docs/performance.md against its CSV.
if(NOT sanitized)
  add_test(NAME house/test_check_house COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/house/test_check_house.sh
                                               ${PROJECT_SOURCE_DIR})
  add_test(NAME install/test_install COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/install/test_install.sh ${PROJECT_SOURCE_DIR}
                                             ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER} ${CMAKE_COMMAND})
  add_test(NAME install/test_subproject COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/install/test_subproject.sh ${PROJECT_SOURCE_DIR}
                                                ${PROJECT_BINARY_DIR}/subproject ${CMAKE_C_COMPILER} ${CMAKE_COMMAND})
  add_test(NAME bench/test_peer_structs COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/bench/test_peer_structs.sh
                                                ${PROJECT_SOURCE_DIR} ${CMAKE_C_COMPILER})
  set_tests_properties(bench/test_peer_structs PROPERTIES SKIP_RETURN_CODE 77)
  add_test(NAME bench/performance_table COMMAND ${PROJECT_SOURCE_DIR}/tools/performance_table.py --check)
  add_test(NAME train/spread_table COMMAND ${PROJECT_SOURCE_DIR}/tools/spread_table.py --check)
  add_test(NAME train/validation COMMAND ${PROJECT_SOURCE_DIR}/tools/validation.py --check)
endif()

# Ports of rotations and scores, right and broken, made by scripts that share nothing with posenc: does diagnose name what is
# wrong? Here a few, from a seed whose ports are all named; `make test-ports` (in test-release) draws its seed and has 330.
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import numpy" RESULT_VARIABLE numpy_is_missing ERROR_QUIET)
set(port_python ${Python3_EXECUTABLE})
if(numpy_is_missing AND EXISTS /usr/bin/python3)
  set(port_python /usr/bin/python3)
endif()
foreach(run ports:40 scores:75)
  string(REGEX MATCH "([a-z]+):([0-9]+)" unused ${run})
  add_test(NAME diagnose/${CMAKE_MATCH_1}_${CMAKE_MATCH_2}
           COMMAND ${port_python} ${CMAKE_CURRENT_SOURCE_DIR}/diagnose/${CMAKE_MATCH_1}.py $<TARGET_FILE:posenc_tool>
                   --seed 11 --count ${CMAKE_MATCH_2})
  set_tests_properties(diagnose/${CMAKE_MATCH_1}_${CMAKE_MATCH_2} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
# Ports whose causes were not named once, by seed and number: one coordinate of a grid, a dynamic base at other positions by rounded
# angles, another factor beside padding, a schedule that was dropped beside packed positions, frequencies of no
# schedule beside an offset that another base gives nearly; and one that took half a minute.
foreach(port 702:278 703:14 703:254 708:309 721:179 722:79)
  string(REGEX MATCH "([0-9]+):([0-9]+)" unused ${port})
  add_test(NAME diagnose/port_${CMAKE_MATCH_1}_${CMAKE_MATCH_2}
           COMMAND ${port_python} ${CMAKE_CURRENT_SOURCE_DIR}/diagnose/ports.py $<TARGET_FILE:posenc_tool>
                   --seed ${CMAKE_MATCH_1} --only ${CMAKE_MATCH_2})
  set_tests_properties(diagnose/port_${CMAKE_MATCH_1}_${CMAKE_MATCH_2} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
add_test(NAME diagnose/page COMMAND ${port_python} ${CMAKE_CURRENT_SOURCE_DIR}/diagnose/page.py $<TARGET_FILE:posenc_tool>)
set_tests_properties(diagnose/page PROPERTIES SKIP_RETURN_CODE 77)

# Writes down the trainer's steps, which posenc.torch takes too: python/tests/torch/test_training.py (make test-torch)
posenc_test_program(target train train/trace_steps.c)

# Sources of the handbook: both languages, formulas, links. What it says runs in `make test-docs`.
add_test(NAME docs/handbook COMMAND ${PROJECT_SOURCE_DIR}/tests/docs/handbook.py)

# The registry in Chinese: texts without a row, rows without a text.
add_test(NAME docs/registry_words COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/docs/registry_words.py
                                          $<TARGET_FILE:posenc_tool>)
