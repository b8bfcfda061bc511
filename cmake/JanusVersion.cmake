# SPDX-License-Identifier: MIT
# Reads JANUSRT_VERSION out of include/janusrt/version.h.
set(header "${CMAKE_CURRENT_LIST_DIR}/../include/janusrt/version.h")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
file(READ "${header}" text)

set(parts)
foreach(part MAJOR MINOR PATCH)
  if(NOT text MATCHES "#define JANUS_VERSION_${part} ([0-9]+)")
    message(FATAL_ERROR "${header}: JANUS_VERSION_${part} not found")
  endif()
  list(APPEND parts "${CMAKE_MATCH_1}")
endforeach()
list(JOIN parts "." JANUSRT_VERSION)

if(NOT text MATCHES "#define JANUS_VERSION_STRING \"([^\"]*)\""
   OR NOT CMAKE_MATCH_1 STREQUAL JANUSRT_VERSION)
  message(FATAL_ERROR "${header}: JANUS_VERSION_STRING is not \"${JANUSRT_VERSION}\"")
endif()
unset(header)
unset(text)
unset(parts)
