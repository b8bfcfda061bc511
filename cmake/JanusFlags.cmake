# SPDX-License-Identifier: MIT
# janusrt_flags: the compiler flags of the library, its tests, benches and examples. They are linked
# privately and never reach a user of the library.
include(CheckIncludeFile)
include(CheckLinkerFlag)

add_library(janusrt_flags INTERFACE)
set(CMAKE_C_STANDARD 17) # with GNU extensions

target_compile_options(janusrt_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wshadow;-Wconversion;-Wstrict-prototypes>
  $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes;-Wundef;-Wvla>
  $<$<BOOL:${JANUSRT_WERROR}>:-Werror>)

# __FILE__ is the path in the tree, wherever the tree lies.
target_compile_options(janusrt_flags INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)

# Release leaves the frame pointer to the compiler; every other build keeps it.
if(NOT JANUSRT_LTO)
  target_compile_options(janusrt_flags INTERFACE
    $<$<NOT:$<CONFIG:Release>>:-fno-omit-frame-pointer>)
endif()

set(JRT_ASAN 0)
set(JRT_TSAN 0)
if(JANUSRT_SANITIZE STREQUAL "address")
  set(JRT_ASAN 1)
  set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=undefined)
elseif(JANUSRT_SANITIZE STREQUAL "thread")
  set(JRT_TSAN 1)
  set(sanitize -fsanitize=thread)
elseif(JANUSRT_SANITIZE)
  message(FATAL_ERROR "JANUSRT_SANITIZE is \"${JANUSRT_SANITIZE}\": want \"\", address or thread")
endif()
if(JANUSRT_SANITIZE)
  target_compile_options(janusrt_flags INTERFACE ${sanitize} -fno-omit-frame-pointer)
  target_link_options(janusrt_flags INTERFACE ${sanitize})
endif()

# JANUSRT_TEST_LINKER: link options of the tests. lld links a test in half the time. The libraries
# are linked by the compiler's usual linker, as users link them. gcc knows the name ld.lld only,
# without a version.
set(JANUSRT_TEST_LINKER)
find_program(JANUSRT_LLD NAMES ld.lld-19 ld.lld)
mark_as_advanced(JANUSRT_LLD)
if(JANUSRT_TOP AND JANUSRT_LLD AND NOT JANUSRT_LTO)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/linker)
  file(CREATE_LINK ${JANUSRT_LLD} ${PROJECT_BINARY_DIR}/linker/ld.lld SYMBOLIC)
  set(linker -fuse-ld=lld -B${PROJECT_BINARY_DIR}/linker)
  check_linker_flag(C "${linker}" JANUSRT_HAVE_LLD)
  if(JANUSRT_HAVE_LLD)
    set(JANUSRT_TEST_LINKER ${linker})
  endif()
endif()

set(JRT_VALGRIND 0)
if(JANUSRT_VALGRIND STREQUAL "AUTO")
  set(CMAKE_REQUIRED_QUIET ON)
  check_include_file(valgrind/valgrind.h JANUSRT_HAVE_VALGRIND_H)
  unset(CMAKE_REQUIRED_QUIET)
  if(JANUSRT_HAVE_VALGRIND_H)
    set(JRT_VALGRIND 1)
    message(STATUS "Valgrind: yes, header found")
  else()
    message(STATUS "Valgrind: no, valgrind/valgrind.h not found")
  endif()
elseif(JANUSRT_VALGRIND)
  set(JRT_VALGRIND 1)
  message(STATUS "Valgrind: yes, as asked")
else()
  message(STATUS "Valgrind: no, as asked")
endif()

target_compile_definitions(janusrt_flags INTERFACE
  _GNU_SOURCE
  JRT_ASAN=${JRT_ASAN}
  JRT_TSAN=${JRT_TSAN}
  JRT_QEMU=$<BOOL:${JANUSRT_QEMU}>
  JRT_VALGRIND=${JRT_VALGRIND}
  JRT_DEBUG=$<IF:$<CONFIG:Debug>,1,0>)

if(JANUSRT_LTO)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
  target_compile_options(janusrt_flags INTERFACE -O3)
  target_link_options(janusrt_flags INTERFACE -O3)
  if(CMAKE_C_COMPILER_ID MATCHES "Clang") # GNU ld cannot read its object files
    target_link_options(janusrt_flags INTERFACE -fuse-ld=lld)
  endif()
endif()
