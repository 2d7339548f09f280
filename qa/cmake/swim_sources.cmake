# SPDX-License-Identifier: LGPL-2.1-or-later
# Which folder makes which library and test program. Sources are found, not listed; a program of its own is named where
# it is made, by the file with its main(): the engine's in vtkv_targets.cmake, the others in qa/ceph/slim.cmake.

# The *.cc below a folder. WITHOUT: patterns of paths below it that do not belong to them; ONLY: one of those that do.
function(swim_sources out folder)
  cmake_parse_arguments(PARSE_ARGV 2 asked "" "ONLY" "WITHOUT")
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/${folder}
    ${CMAKE_SOURCE_DIR}/${folder}/*.cc)
  if(asked_ONLY)
    list(FILTER found INCLUDE REGEX "${asked_ONLY}")
  endif()
  foreach(pattern IN LISTS asked_WITHOUT)
    list(FILTER found EXCLUDE REGEX "${pattern}")
  endforeach()
  list(TRANSFORM found PREPEND ${CMAKE_SOURCE_DIR}/${folder}/)
  set(${out} ${found} PARENT_SCOPE)
endfunction()

set(test "_test\\.cc$")
set(main "_(tool|bench|main)\\.cc$")

#            of the target                folder
swim_sources(vtkv_sources                 src/os/vtkv WITHOUT ${test} ^ceph/ ^examples/ ^testing/ ^tool/)
swim_sources(vtkv_inspect_sources         src/os/vtkv/tool WITHOUT ${test} ${main} ^bench/)
swim_sources(vtkv_bench_sources           src/os/vtkv/tool/bench WITHOUT ${test})
swim_sources(vtkv_testing_sources         src/os/vtkv/testing WITHOUT ${test} ${main})
swim_sources(vtkv_tests_sources           src/os/vtkv ONLY ${test} WITHOUT ^ceph/)
swim_sources(vtkv_ceph_sources            src/os/vtkv/ceph WITHOUT ${test})
swim_sources(vtkv_ceph_tests_sources      src/os/vtkv/ceph ONLY ${test})
swim_sources(swimstore_sources            src/os/swimstore WITHOUT ${test} ^ceph/ ^testing/ ^tool/)
swim_sources(swimstore_inspect_sources    src/os/swimstore/tool WITHOUT ${test} ${main})
swim_sources(swimstore_testing_sources    src/os/swimstore/testing WITHOUT ${test} ${main})
swim_sources(swimstore_tests_sources      src/os/swimstore ONLY ${test})
# The decoders need nothing of an OSD, nor of the rest of the store.
swim_sources(swimstore_fuzz_sources       src/os/swimstore ONLY "^(format|testing/fuzz)/" WITHOUT ${test})
# What Ceph's programs need of us: slim.cmake names the files of src/os/swimstore/ceph, each for other programs.
