# SPDX-License-Identifier: MIT
# How a program is run as a test.

set(JANUSRT_TEST_ENVIRONMENT
  ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:strict_string_checks=1
  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1)

# ThreadSanitizer of gcc 12 fails if the kernel scatters mappings too widely (vm.mmap_rnd_bits
# above 28). So its tests run without address randomisation, if the system allows that.
set(JANUSRT_TEST_LAUNCHER)
if(JANUSRT_SANITIZE STREQUAL "thread")
  execute_process(COMMAND setarch -R true RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
  if(refused STREQUAL "0")
    set(JANUSRT_TEST_LAUNCHER setarch -R)
  endif()
endif()

# Seconds after which a test hangs. The slowest takes twenty; a busy machine may make that minutes.
set(JANUSRT_TEST_TIMEOUT 900)

# janus_add_test(NAME TARGET [argument...])
function(janus_add_test name target)
  if(JANUSRT_TEST_LAUNCHER)
    add_test(NAME ${name} COMMAND ${JANUSRT_TEST_LAUNCHER} $<TARGET_FILE:${target}> ${ARGN})
  else()
    add_test(NAME ${name} COMMAND ${target} ${ARGN}) # under the emulator when cross-compiled
  endif()
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${JANUSRT_TEST_TIMEOUT}
    SKIP_RETURN_CODE 77
    ENVIRONMENT "${JANUSRT_TEST_ENVIRONMENT}")
endfunction()
