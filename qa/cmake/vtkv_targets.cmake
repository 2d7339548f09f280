# SPDX-License-Identifier: LGPL-2.1-or-later
# The engine: libraries, tests, tools. Nothing here needs Ceph.

set(swim_test_timeout_s 300)
if(SWIM_SANITIZE)
  set(swim_test_timeout_s 1500)
endif()

# One process per test: a test that aborts fails alone.
function(swim_add_tests program)
  gtest_discover_tests(${program} NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    TEST_PREFIX ${program}: PROPERTIES TIMEOUT ${swim_test_timeout_s} ${ARGN})
endfunction()

function(swim_add_program name source)
  add_executable(${name} ${CMAKE_SOURCE_DIR}/${source})
  target_link_libraries(${name} PRIVATE swim_flags ${ARGN})
endfunction()

# Tells a test where the kept corpus lies. Of that file alone: all others are the same in every checkout.
function(swim_name_corpus source)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/${source} PROPERTIES
    COMPILE_DEFINITIONS SWIM_FUZZ_CORPUS="${CMAKE_SOURCE_DIR}/qa/fuzz/corpus")
endfunction()

# The page that tests hold the formats against.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/os/vtkv/testing/format_page.cc PROPERTIES
  COMPILE_DEFINITIONS SWIM_FORMAT_PAGE="${CMAKE_SOURCE_DIR}/doc/on_disk_format.md")

# --- libraries ------------------------------------------------------------------

function(vtkv_library name)
  add_library(${name} STATIC ${${name}_sources})
  target_link_libraries(${name} PRIVATE swim_flags PUBLIC ${ARGN})
endfunction()

vtkv_library(vtkv PkgConfig::URING PkgConfig::ISAL PkgConfig::LZ4 fmt::fmt Threads::Threads)
target_include_directories(vtkv PUBLIC ${CMAKE_SOURCE_DIR}/src/os)
vtkv_library(vtkv_inspect vtkv)
vtkv_library(vtkv_testing vtkv_inspect)

# --- programs -------------------------------------------------------------------

include(CheckCXXSourceCompiles)

# The workloads are a library, for their tests; the engines are not. A library that is not there
# leaves an engine out: the program says so when asked for it.
set(engine "(engine|_env)\\.cc$")
set(vtkv_bench_engines ${vtkv_bench_sources})
list(FILTER vtkv_bench_engines INCLUDE REGEX "${engine}")
list(FILTER vtkv_bench_sources EXCLUDE REGEX "${engine}")
add_library(vtkv_bench_library STATIC ${vtkv_bench_sources})
target_link_libraries(vtkv_bench_library PRIVATE swim_flags PUBLIC vtkv_inspect CLI11::CLI11)
swim_add_program(vtkv_bench src/os/vtkv/tool/vtkv_bench.cc vtkv_bench_library)
target_compile_definitions(vtkv_bench PRIVATE VTKV_BENCH_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
foreach(peer rocksdb leveldb lmdb)
  string(TOUPPER ${peer} upper)
  find_library(VTKV_BENCH_${upper}_LIBRARY NAMES ${peer})
  find_file(VTKV_BENCH_${upper}_HEADER NAMES ${peer}/db.h ${peer}.h)
  if(VTKV_BENCH_${upper}_LIBRARY AND VTKV_BENCH_${upper}_HEADER)
    target_link_libraries(vtkv_bench PRIVATE ${VTKV_BENCH_${upper}_LIBRARY})
    target_compile_definitions(vtkv_bench PRIVATE VTKV_BENCH_${upper})
  else()
    list(FILTER vtkv_bench_engines EXCLUDE REGEX "/${peer}_(engine|env)\\.cc$")
  endif()
endforeach()
# RocksDB has a call that waits for its compactions since 8.4; Debian 12 has 7.8.
if(VTKV_BENCH_ROCKSDB_LIBRARY AND VTKV_BENCH_ROCKSDB_HEADER)
  set(CMAKE_REQUIRED_FLAGS -std=c++20)
  check_cxx_source_compiles("#include <rocksdb/options.h>
    int main() { return rocksdb::WaitForCompactOptions().flush; }" VTKV_BENCH_ROCKSDB_WAITS)
  unset(CMAKE_REQUIRED_FLAGS)
  if(VTKV_BENCH_ROCKSDB_WAITS)
    target_compile_definitions(vtkv_bench PRIVATE VTKV_BENCH_ROCKSDB_WAITS)
  endif()
endif()
target_sources(vtkv_bench PRIVATE ${vtkv_bench_engines})

add_executable(vtkv_tests ${vtkv_tests_sources})
swim_name_corpus(src/os/vtkv/testing/fuzz/kv_fuzz_corpus_test.cc)
target_link_libraries(vtkv_tests PRIVATE swim_flags vtkv_bench_library vtkv_testing
  GTest::gmock GTest::gtest GTest::gtest_main)
swim_add_tests(vtkv_tests)
# A build in which no rule can be broken: what tells it apart, and one that asks.
add_test(NAME vtkv_without_mutations COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only
  -I${CMAKE_SOURCE_DIR}/src/os vtkv/testing/mutations.cc vtkv/wal/log_sweep.cc
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/src/os)

add_test(NAME vtkv_bench_test
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/tools/vtkv_bench_test.py $<TARGET_FILE:vtkv_bench>)

# With no switch of ours: it has to build as a user's program does.
add_executable(vtkv_example ${CMAKE_SOURCE_DIR}/src/os/vtkv/examples/vtkv_example.cc)
target_link_libraries(vtkv_example PRIVATE vtkv)
add_test(NAME vtkv_example_test
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/tools/vtkv_example_test.py $<TARGET_FILE:vtkv_example>)

swim_add_program(vtkv_log_traces src/os/vtkv/testing/log_traces_main.cc vtkv_testing)
if(SWIM_MUTATIONS)
  add_test(NAME log_traces_of_a_stores_mutation COMMAND vtkv_log_traces 1 1 slot_punched_early)
  set_tests_properties(log_traces_of_a_stores_mutation PROPERTIES PASS_REGULAR_EXPRESSION "breaks a rule of a store")
endif()
add_test(NAME log_traces
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/model/check_traces.py $<TARGET_FILE:vtkv_log_traces>)

swim_add_program(vtkv-tool src/os/vtkv/tool/vtkv_tool.cc vtkv_inspect CLI11::CLI11)
add_test(NAME vtkv_tool_test
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/tools/vtkv_tool_test.py $<TARGET_FILE:vtkv-tool>)

if(SWIM_WITH_FUZZERS)
  swim_add_program(vtkv_fuzz src/os/vtkv/testing/fuzz/fuzz_main.cc vtkv_testing)
  target_link_options(vtkv_fuzz PRIVATE -fsanitize=fuzzer)
endif()
