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

janus_test(fiber/exception_test.cc)
target_compile_options(fiber.exception_test PRIVATE
  -Wall -Wextra -Wshadow -Wno-missing-field-initializers) # harness.h is C

janus_test(task/death_cxx_test.cc)
target_compile_options(task.death_cxx_test PRIVATE
  -Wall -Wextra -Wshadow -Wno-missing-field-initializers)

janus_test(sim/catch_test.cc)
target_compile_options(sim.catch_test PRIVATE
  -Wall -Wextra -Wshadow -Wno-missing-field-initializers)
