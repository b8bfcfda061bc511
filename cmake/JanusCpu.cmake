# SPDX-License-Identifier: MIT
# JANUSRT_CPU: the name in the files that are written for one kind of machine.
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  message(FATAL_ERROR "janusrt needs a 64-bit target")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(JANUSRT_CPU x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(JANUSRT_CPU aarch64)
else()
  message(FATAL_ERROR
    "janusrt has no context switch for ${CMAKE_SYSTEM_PROCESSOR}; it knows x86_64 and aarch64")
endif()
