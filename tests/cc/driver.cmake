# SPDX-License-Identifier: MIT
# The tests of the compiler driver and of libjanusrt_cc.

# It brings its own runtime, which only counts.
add_executable(cc.support_test cc/support_test.c)
set_target_properties(cc.support_test PROPERTIES
  OUTPUT_NAME support_test
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/cc)
target_link_libraries(cc.support_test PRIVATE
  janusrt_flags janusrt_cc_support janusrt_harness Threads::Threads)
target_include_directories(cc.support_test PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(cc.support_test PRIVATE ${test_options})
janus_add_test(cc/support_test cc.support_test)

# The driver is plain C: one build of gcc and one of clang are enough.
if(Python3_FOUND AND NOT JANUSRT_SANITIZE AND NOT JANUSRT_LTO AND NOT CMAKE_CROSSCOMPILING)
  janus_script(cc/driver_test
    ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cc/driver_test.py
    $<TARGET_FILE:janusrt_command> ${CMAKE_INSTALL_LIBDIR} ${CMAKE_INSTALL_DATADIR})
  janus_script(cc/audit_test
    ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cc/audit_test.py
    $<TARGET_FILE:janusrt_command> clang-19)
  get_property(plugins GLOBAL PROPERTY JANUSRT_CC_PLUGINS)
  if(plugins)
    janus_script(cc/programs_test
      ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cc/programs_test.py
      $<TARGET_FILE:janusrt_command>)
    set_tests_properties(cc/programs_test PROPERTIES COST 20)
  endif()
endif()
