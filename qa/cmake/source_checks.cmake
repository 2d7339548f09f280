# SPDX-License-Identifier: LGPL-2.1-or-later
# What is asked of the sources by programs that others wrote: flake8 of the Python ones, clang of ours. Once: the sources
# are the same under a sanitizer.

if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR SWIM_SANITIZE)
  return()
endif()
find_program(SWIM_FLAKE8 flake8)

if(SWIM_FLAKE8)
  add_test(NAME python_lint COMMAND ${SWIM_FLAKE8} qa src WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endif()
# Of one version only: each lays out a little otherwise. The sysroot has it (qa/setup/packages.sh).
find_program(SWIM_CLANG_FORMAT clang-format)
find_program(SWIM_CLANG clang++)
if(SWIM_CLANG_FORMAT AND SWIM_CLANG)
  execute_process(COMMAND ${SWIM_CLANG_FORMAT} --version OUTPUT_VARIABLE clang_format_version)
endif()
if("${clang_format_version}" MATCHES "version 19\\.")
  set(clang_checks ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/clang_checks.py)
  add_test(NAME clang_format COMMAND ${clang_checks} format)
  set(build --compile-commands ${CMAKE_BINARY_DIR}/compile_commands.json)
  set(thread_safety ${clang_checks} thread-safety)
  add_test(NAME clang_thread_safety COMMAND ${thread_safety} src/os/vtkv/ ${build})
  # Nearly each takes Ceph's headers, ten seconds: only those that have to do with locks.
  add_test(NAME clang_thread_safety_of_swimstore COMMAND ${thread_safety} src/os/swimstore/ --which locking ${build})
  include(ProcessorCount)
  ProcessorCount(processors)
  set_tests_properties(clang_thread_safety clang_thread_safety_of_swimstore PROPERTIES
    LABELS clang TIMEOUT 3000 PROCESSORS ${processors})
  add_test(NAME clang_checks_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/clang_checks_test.py)
endif()
