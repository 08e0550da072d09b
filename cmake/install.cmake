# SPDX-License-Identifier: MIT
#
# What `make install` puts where: headers, libraries, pkg-config files, CMake package, tool, man page, completion,
# licence, pages and examples. Every file finds its neighbours relative to itself, so the tree may be moved afterwards.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/posenc)
set(doc_dir ${CMAKE_INSTALL_DOCDIR})

# pkg-config: the way back from lib/pkgconfig to the prefix, whatever lib is called on this system.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})

set(headers include/posenc/posenc.h include/posenc/rotary.h include/posenc/positions.h include/posenc/registry.h include/posenc/scores.h)
set(pc_files posenc)
set(targets posenc_shared posenc_static)
if(POSENC_FILES)
  list(APPEND headers include/posenc/files.h)
  list(APPEND pc_files posenc_files)
  list(APPEND targets posenc_files_shared posenc_files_static)
endif()

install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/posenc)
install(TARGETS ${targets} EXPORT posencTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT posencTargets NAMESPACE posenc:: DESTINATION ${package_dir})
configure_package_config_file(cmake/posencConfig.cmake.in posencConfig.cmake INSTALL_DESTINATION ${package_dir})
# While the version is 0.x every minor version may break the ABI.
write_basic_package_version_file(posencConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/posencConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/posencConfigVersion.cmake
        DESTINATION ${package_dir})
foreach(name IN LISTS pc_files)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

if(POSENC_BUILD_TOOL)
  install(TARGETS posenc_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(TARGET posenc_pages)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/posenc.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/posenc.bash RENAME posenc
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  endif()
endif()
install(FILES LICENSE CHANGELOG.md CONTRIBUTING.md SECURITY.md DESTINATION ${doc_dir})
foreach(readme README.md README.zh.md) # without links to what stays behind
  file(READ ${readme} text)
  string(REGEX REPLACE "\\[([^]\n]*)\\]\\((src|include|docs/handbook)[^)]*\\)" "\\1" text "${text}")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/installed/${readme} "${text}")
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/installed/${readme} DESTINATION ${doc_dir})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${readme})
endforeach()
# What they link to
file(GLOB pages CONFIGURE_DEPENDS docs/*.md)
install(FILES ${pages} docs/performance.csv docs/quick.json DESTINATION ${doc_dir}/docs)
install(DIRECTORY docs/decisions DESTINATION ${doc_dir}/docs)
install(DIRECTORY examples DESTINATION ${doc_dir})
