# SPDX-License-Identifier: MIT
# Libraries, headers, janusrt.pc, the CMake package and the manual pages.
include(CMakePackageConfigHelpers)

install(TARGETS janusrt janusrt_static janusrt_http janusrt_http_static EXPORT janusrtTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET janusrt_tls)
  install(TARGETS janusrt_tls janusrt_tls_static EXPORT janusrtTlsTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET janusrt_lang)
  install(TARGETS janusrt_lang janusrt_lang_support EXPORT janusrtTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES lang/host/support.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/janusrt
    RENAME lang_support.h)
endif()
install(DIRECTORY include/janusrt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
install(FILES tools/gdb/janusrt-gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/janusrt)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/janusrt)
install(EXPORT janusrtTargets NAMESPACE janusrt:: DESTINATION ${package_dir})
set(packages janusrt janusrt-http)
if(TARGET janusrt_lang)
  list(APPEND packages janusrt-lang)
endif()
if(TARGET janusrt_tls)
  install(EXPORT janusrtTlsTargets NAMESPACE janusrt:: DESTINATION ${package_dir})
  list(APPEND packages janusrt-tls)
endif()
configure_package_config_file(cmake/janusrtConfig.cmake.in
  ${PROJECT_BINARY_DIR}/janusrtConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor release may change the ABI.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/janusrtConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/janusrtConfig.cmake
  ${PROJECT_BINARY_DIR}/janusrtConfigVersion.cmake
  DESTINATION ${package_dir})

# janusrt.pc finds its prefix from its own place, so that the tree can be moved as a whole. That is
# not possible if the directories were given as absolute paths.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
  set(PC_LIBDIR "${CMAKE_INSTALL_FULL_LIBDIR}")
  set(PC_INCLUDEDIR "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
else()
  file(RELATIVE_PATH up "/prefix/${pc_dir}" "/prefix")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(PC_PREFIX "\${pcfiledir}/${up}")
  set(PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
foreach(package IN LISTS packages)
  configure_file(cmake/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${pc_dir})
endforeach()

# janus_man_names(SOURCE OUT): what the NAME section of a manual page lists.
function(janus_man_names source out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(READ ${source} text)
  string(REGEX MATCH "# NAME\n.*# SYNOPSIS\n" text "${text}") # both are there once
  string(REGEX REPLACE " - .*" "" text "${text}")
  string(REGEX MATCHALL "janus_[a-z0-9_]+|JANUS_[A-Z0-9_]+" names "${text}")
  list(REMOVE_DUPLICATES names)
  set(${out} ${names} PARENT_SCOPE)
endfunction()

# janus_man_alias(NAME PAGE): a page of section 3 that shows another one: man janus_serve shows
# janus_net(3).
function(janus_man_alias name page)
  string(REGEX REPLACE ".*\\." "" section ${page})
  set(out ${PROJECT_BINARY_DIR}/man/aliases/${name}.3)
  file(WRITE ${out} ".so man${section}/${page}\n")
  install(FILES ${out} DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
endfunction()

# Manual pages: docs/man/NAME.SECTION.scd becomes NAME.SECTION.
file(GLOB man_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.scd)
find_program(SCDOC scdoc)
if(man_sources AND NOT SCDOC)
  message(STATUS "Manual pages: not built, scdoc not found")
elseif(man_sources)
  set(man_pages)
  foreach(source ${man_sources})
    get_filename_component(page ${source} NAME_WLE)
    get_filename_component(section ${page} LAST_EXT)
    string(SUBSTRING ${section} 1 1 section)
    set(out ${PROJECT_BINARY_DIR}/man/${page})
    add_custom_command(OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
      COMMAND sh -c "sed '/SPDX-License-Identifier/d' '${source}' | '${SCDOC}' > '${out}'"
      DEPENDS ${source} VERBATIM)
    list(APPEND man_pages ${out})
    install(FILES ${out} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
    if(section EQUAL 3)
      janus_man_names(${source} names)
      foreach(name IN LISTS names)
        if(NOT name STREQUAL "" AND NOT "${name}.3" STREQUAL page)
          janus_man_alias(${name} ${page})
        endif()
      endforeach()
    endif()
  endforeach()
  foreach(name janus_version janus_build_text janus_status_name janus_status_text)
    janus_man_alias(${name} janusrt.7)
  endforeach()
  add_custom_target(man ALL DEPENDS ${man_pages})
endif()

# What is installed, and nothing else: `make install` builds this.
add_custom_target(installed)
add_dependencies(installed
  janusrt janusrt_static janusrt_http janusrt_http_static janusrt_command)
if(TARGET janusrt_tls)
  add_dependencies(installed janusrt_tls janusrt_tls_static)
endif()
if(TARGET janusrt_lang)
  add_dependencies(installed janusrt_lang janusrt_lang_support)
endif()
if(TARGET man)
  add_dependencies(installed man)
endif()
