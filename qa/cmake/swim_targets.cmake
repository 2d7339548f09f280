# Sources are found, not listed: a folder's *.cc make its library, its *_test.cc one
# test program, and the programs in tool/ and testing/ have fixed names.

set(swim_test_timeout_s 300)
if(SWIM_SANITIZE)
  set(swim_test_timeout_s 1500)
endif()

# Every *.cc below a folder, but none whose path below it matches one of the patterns.
function(swim_glob out folder)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/${folder}
    ${CMAKE_SOURCE_DIR}/${folder}/*.cc)
  foreach(pattern IN LISTS ARGN)
    list(FILTER found EXCLUDE REGEX "${pattern}")
  endforeach()
  list(TRANSFORM found PREPEND ${CMAKE_SOURCE_DIR}/${folder}/)
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# One process per test: a test that aborts fails alone.
function(swim_add_tests program)
  gtest_discover_tests(${program} NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    TEST_PREFIX ${program}: PROPERTIES TIMEOUT ${swim_test_timeout_s} ${ARGN})
endfunction()

# A program whose source may not exist.
function(swim_add_program name source)
  if(EXISTS ${CMAKE_SOURCE_DIR}/${source})
    add_executable(${name} ${CMAKE_SOURCE_DIR}/${source})
    target_link_libraries(${name} PRIVATE swim_flags ${ARGN})
  endif()
endfunction()

# Tells a test where the kept corpus lies. Of that file alone: all others are the same in every checkout.
function(swim_name_corpus source)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/${source} PROPERTIES
    COMPILE_DEFINITIONS SWIM_FUZZ_CORPUS="${CMAKE_SOURCE_DIR}/qa/fuzz/corpus")
endfunction()

# The workloads are a library, for their tests; the engines are not. A library that is not there
# leaves an engine out: the program says so when asked for it.
function(swim_add_vtkv_bench)
  swim_glob(sources src/os/vtkv/tool/bench "_test\\.cc$" "engine\\.cc$" "_env\\.cc$")
  add_library(vtkv_bench_parts STATIC ${sources})
  target_link_libraries(vtkv_bench_parts PRIVATE swim_flags PUBLIC ${ARGN})
  swim_glob(sources src/os/vtkv/tool/bench "_test\\.cc$")
  list(FILTER sources INCLUDE REGEX "/(vtkv_)?engine\\.cc$")
  add_executable(vtkv_bench ${CMAKE_SOURCE_DIR}/src/os/vtkv/tool/vtkv_bench.cc ${sources})
  target_link_libraries(vtkv_bench PRIVATE swim_flags vtkv_bench_parts)
  target_compile_definitions(vtkv_bench PRIVATE VTKV_BENCH_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  foreach(peer rocksdb leveldb lmdb)
    string(TOUPPER ${peer} upper)
    find_library(VTKV_BENCH_${upper}_LIBRARY NAMES ${peer})
    find_file(VTKV_BENCH_${upper}_HEADER NAMES ${peer}/db.h ${peer}.h)
    if(VTKV_BENCH_${upper}_LIBRARY AND VTKV_BENCH_${upper}_HEADER)
      swim_glob(sources src/os/vtkv/tool/bench "_test\\.cc$")
      list(FILTER sources INCLUDE REGEX "${peer}_(engine|env)\\.cc$")
      target_sources(vtkv_bench PRIVATE ${sources})
      target_link_libraries(vtkv_bench PRIVATE ${VTKV_BENCH_${upper}_LIBRARY})
      target_compile_definitions(vtkv_bench PRIVATE VTKV_BENCH_${upper})
    endif()
  endforeach()
endfunction()

function(swim_add_vtkv)
  set(mains "_(tool|bench|main)\\.cc$")
  swim_glob(sources src/os/vtkv "_test\\.cc$" "^testing/" "^tool/" "^ceph/")
  swim_glob(testing src/os/vtkv/testing "_test\\.cc$" "_main\\.cc$")
  swim_glob(inspect src/os/vtkv/tool "_test\\.cc$" ${mains} "^bench/")
  swim_glob(tests src/os/vtkv "^ceph/")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(NOT sources)
    return()
  endif()

  add_library(vtkv STATIC ${sources})
  target_link_libraries(vtkv PRIVATE swim_flags
    PUBLIC PkgConfig::URING PkgConfig::ISAL fmt::fmt Threads::Threads)
  target_include_directories(vtkv PUBLIC ${CMAKE_SOURCE_DIR}/src/os)
  set(libraries vtkv)
  if(inspect)
    add_library(vtkv_inspect STATIC ${inspect})
    target_link_libraries(vtkv_inspect PRIVATE swim_flags PUBLIC vtkv)
    list(PREPEND libraries vtkv_inspect)
  endif()
  set(test_libraries ${libraries})
  if(testing)
    add_library(vtkv_testing STATIC ${testing})
    target_link_libraries(vtkv_testing PRIVATE swim_flags PUBLIC ${libraries})
    list(PREPEND test_libraries vtkv_testing)
  endif()

  set(cli11 $<TARGET_NAME_IF_EXISTS:CLI11::CLI11>)
  if(TARGET CLI11::CLI11)
    swim_add_vtkv_bench(${libraries} ${cli11})
    set(bench_parts vtkv_bench_parts)
  else()
    list(FILTER tests EXCLUDE REGEX "/tool/bench/")
  endif()
  if(tests)
    add_executable(vtkv_tests ${tests})
    swim_name_corpus(src/os/vtkv/testing/fuzz/kv_fuzz_corpus_test.cc)
    target_link_libraries(vtkv_tests PRIVATE swim_flags ${bench_parts} ${test_libraries}
      GTest::gmock GTest::gtest GTest::gtest_main)
    swim_add_tests(vtkv_tests)
  endif()

  if(testing)
    swim_add_program(vtkv_log_traces src/os/vtkv/testing/log_traces_main.cc ${test_libraries})
    add_test(NAME log_traces
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/model/check_traces.py $<TARGET_FILE:vtkv_log_traces>)
  endif()
  if(TARGET CLI11::CLI11)
    swim_add_program(vtkv-tool src/os/vtkv/tool/vtkv_tool.cc ${libraries} ${cli11})
    add_test(NAME vtkv_tool_test
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/tools/vtkv_tool_test.py
        $<TARGET_FILE:vtkv-tool>)
  endif()
  if(SWIM_WITH_FUZZERS)
    swim_add_program(vtkv_fuzz src/os/vtkv/testing/fuzz/fuzz_main.cc ${test_libraries})
    target_link_options(vtkv_fuzz PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()
