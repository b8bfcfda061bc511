# SPDX-License-Identifier: MIT
# Tests in C++, by the compiler that belongs to the C compiler: gcc, g++; clang-19, clang++-19.
include(CheckLanguage)

if(NOT CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
  string(REGEX REPLACE "gcc([^/]*)$" "g++\\1" cxx "${CMAKE_C_COMPILER}")
  string(REGEX REPLACE "clang([^/]*)$" "clang++\\1" cxx "${cxx}")
  string(REGEX REPLACE "/cc$" "/c++" cxx "${cxx}")
  set(ENV{CXX} "${cxx}")
endif()
check_language(CXX)

if(NOT CMAKE_CXX_COMPILER)
  message(STATUS "C++: exceptions are not tested, no C++ compiler for ${CMAKE_C_COMPILER}")
  return()
endif()

enable_language(CXX)
set(CMAKE_CXX_STANDARD 17)
foreach(config RELEASE DEBUG)
  set(CMAKE_CXX_FLAGS_${config} "${CMAKE_C_FLAGS_${config}}")
endforeach()

# With link-time optimisation a program with the static library takes half a minute to link.
set(shared)
if(JANUSRT_LTO)
  set(shared SHARED)
endif()

# Not every build has every test, see janus_test.
foreach(name fiber/exception_test task/death_cxx_test task/block_cxx_test sim/catch_test
    actor/actor_cxx_test)
  janus_test(${name}.cc ${shared})
  string(REPLACE "/" "." target ${name})
  if(TARGET ${target})
    target_compile_options(${target} PRIVATE
      -Wall -Wextra -Wshadow -Wno-missing-field-initializers) # harness.h is C
  endif()
endforeach()
