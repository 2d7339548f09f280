# SPDX-License-Identifier: LGPL-2.1-or-later
# ceph-osd with SwimStore in it, without building all of Ceph: only what makes an
# OSD is compiled, the rest is the packaged libceph-common.
#
# Nothing may be compiled here that libceph-common defines: its own calls stay with
# its own copy, and two copies of a singleton are two singletons
# (check_symbols.py refuses such a program).

find_library(CEPH_COMMON NAMES libceph-common.so.2
  PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/ceph /usr/lib/ceph /usr/lib64/ceph
  NO_DEFAULT_PATH REQUIRED)
get_filename_component(CEPH_COMMON_DIR ${CEPH_COMMON} DIRECTORY)
execute_process(
  COMMAND ${CMAKE_SOURCE_DIR}/qa/ceph/check_version.sh ${SWIM_CEPH_SOURCE} ${CEPH_COMMON}
  RESULT_VARIABLE version_differs OUTPUT_VARIABLE CEPH_COMMON_PACKAGE OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_VARIABLE message ERROR_STRIP_TRAILING_WHITESPACE)
if(version_differs)
  message(FATAL_ERROR "${message}")
endif()
# Read whenever cmake runs: a packaged file's time is that of its build, so no build would notice another one.
execute_process(COMMAND ${CMAKE_READELF} --notes ${CEPH_COMMON}
  OUTPUT_VARIABLE ceph_common_notes COMMAND_ERROR_IS_FATAL ANY)
if(NOT ceph_common_notes MATCHES "Build ID: ([0-9a-f]+)")
  message(FATAL_ERROR "${CEPH_COMMON} has no build ID, by which programs know it again: install the packaged one")
endif()
set(CEPH_COMMON_BUILD_ID ${CMAKE_MATCH_1})

find_package(Boost REQUIRED COMPONENTS thread program_options iostreams date_time)
pkg_check_modules(FUSE3 REQUIRED IMPORTED_TARGET fuse3)
pkg_check_modules(BLKID REQUIRED IMPORTED_TARGET blkid)
find_library(TCMALLOC tcmalloc)

# --- how Ceph compiles --------------------------------------------------------

set(ceph ${SWIM_CEPH_SOURCE}/src)
add_library(ceph_flags INTERFACE)
target_compile_definitions(ceph_flags INTERFACE
  BOOST_ASIO_DISABLE_THREAD_KEYWORD_EXTENSION
  BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS BOOST_MPL_LIMIT_LIST_SIZE=30
  HAVE_CONFIG_H _FILE_OFFSET_BITS=64 _GNU_SOURCE _REENTRANT _THREAD_SAFE __CEPH__
  __STDC_FORMAT_MACROS FMT_DEPRECATED_OSTREAM)
if(ceph_release EQUAL tentacle)
  # The package was built with its tests, which gives Messenger and Connection a member more.
  target_compile_definitions(ceph_flags INTERFACE UNIT_TESTS_BUILT
    BOOST_ASIO_HAS_IO_URING BOOST_ASIO_NO_TS_EXECUTORS BOOST_ALLOW_DEPRECATED_HEADERS)
  target_compile_options(ceph_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${CMAKE_SOURCE_DIR}/qa/ceph/slim/tentacle.h>)
  target_link_libraries(ceph_flags INTERFACE fmt::fmt)
else()
  target_compile_definitions(ceph_flags INTERFACE BOOST_ASIO_USE_TS_EXECUTOR_AS_DEFAULT)
endif()
target_compile_options(ceph_flags INTERFACE
  -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free
  -fno-strict-aliasing -fsigned-char $<$<COMPILE_LANGUAGE:CXX>:-ftemplate-depth-1024>)
target_include_directories(ceph_flags INTERFACE ${CMAKE_SOURCE_DIR}/qa/ceph/slim)
target_include_directories(ceph_flags SYSTEM INTERFACE
  ${SWIM_CEPH_BUILD}/src/include ${SWIM_CEPH_BUILD}/include
  ${ceph} ${ceph}/dmclock/src ${ceph}/dmclock/support/src ${ceph}/xxHash)
target_link_libraries(ceph_flags INTERFACE PkgConfig::FUSE3)

# Ceph's own files, as they are: their warnings are not ours to fix, and debug
# information of fifty OSD files is large.
add_library(ceph_source_flags INTERFACE)
target_compile_options(ceph_source_flags INTERFACE
  -w -g0 $<$<COMPILE_LANGUAGE:CXX>:-fpermissive>)
target_link_libraries(ceph_source_flags INTERFACE ceph_flags)

# Our own files that include Ceph's headers, some of which need -fpermissive. A debug
# subsystem of our own would change the size of a table shared with the library: the one
# that FileStore left behind is free.
add_library(swim_ceph_flags INTERFACE)
target_compile_definitions(swim_ceph_flags INTERFACE SWIM_SUBSYS=ceph_subsys_filestore)
target_compile_options(swim_ceph_flags INTERFACE -fpermissive)
# fmt's definitions too: a precompiled header serves only who has the same.
target_link_libraries(swim_ceph_flags INTERFACE swim_flags ceph_flags fmt::fmt)
if(SWIM_SANITIZE MATCHES "undefined")
  # Asking an object for its dynamic type needs type information of Ceph's classes, which the packaged
  # library keeps to itself.
  target_compile_options(swim_ceph_flags INTERFACE -fno-sanitize=vptr)
endif()

add_library(ceph_link INTERFACE)
target_link_libraries(ceph_link INTERFACE ${CEPH_COMMON}
  Boost::thread Boost::program_options Boost::iostreams
  PkgConfig::FUSE3 PkgConfig::BLKID fmt::fmt crypto cap resolv ${CMAKE_DL_LIBS} Threads::Threads)
if(TCMALLOC AND NOT SWIM_SANITIZE)
  target_link_libraries(ceph_link INTERFACE ${TCMALLOC})
  set(ceph_heap_profiler perfglue/heap_profiler.cc)
else()
  set(ceph_heap_profiler perfglue/disabled_heap_profiler.cc)
endif()

# Ceph's own sources that have to know of SwimStore or vtkv: graft.py's edits, on copies.
set(grafted ${CMAKE_BINARY_DIR}/grafted)
# In these programs files of ours do what these do in a full tree, so they are in none. They are compiled all the same,
# to know that a graft compiles.
set(only_compiled os/ObjectStore.cc kv/KeyValueDB.cc common/options.cc)
foreach(name osd/OSD.cc tools/ceph_kvstore_tool.cc tools/kvstore_tool.cc ${only_compiled})
  add_custom_command(OUTPUT ${grafted}/${name}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/ceph/graft.py ${SWIM_CEPH_SOURCE}
      --only src/${name} --output ${grafted}/${name}
    COMMAND ${CMAKE_COMMAND} -E touch ${grafted}/${name}
    DEPENDS ${CMAKE_SOURCE_DIR}/qa/ceph/graft.py ${ceph}/${name} VERBATIM)
endforeach()

function(ceph_objects name)
  list(TRANSFORM ARGN PREPEND ${ceph}/)
  add_library(${name} OBJECT ${ARGN})
  target_link_libraries(${name} PRIVATE ceph_source_flags)
endfunction()

set(ceph_osd_sources
  objclass/class_api.cc
  osd/objclass.cc osd/Watch.cc osd/PG.cc osd/PGLog.cc osd/PrimaryLogPG.cc
  osd/ReplicatedBackend.cc osd/ECBackend.cc osd/ECTransaction.cc osd/PGBackend.cc
  osd/OSDCap.cc osd/Session.cc osd/SnapMapper.cc osd/ECUtil.cc
  osd/PeeringState.cc osd/PGStateUtils.cc osd/MissingLoc.cc
  osd/osd_perf_counters.cc osd/osd_tracer.cc
  osd/scheduler/OpScheduler.cc osd/scheduler/OpSchedulerItem.cc
  osd/scheduler/mClockScheduler.cc
  osd/scrubber/pg_scrubber.cc osd/scrubber/osd_scrub_sched.cc
  osd/scrubber/PrimaryLogScrub.cc osd/scrubber/scrub_machine.cc
  osd/scrubber/ScrubStore.cc osd/scrubber/scrub_backend.cc
  mgr/OSDPerfMetricTypes.cc
  dmclock/src/dmclock_util.cc dmclock/support/src/run_every.cc
  erasure-code/ErasureCode.cc)
if(ceph_release EQUAL tentacle)
  list(APPEND ceph_osd_sources
    osd/ECCommon.cc osd/ECExtentCache.cc osd/ECInject.cc
    osd/ECBackendL.cc osd/ECCommonL.cc osd/ECExtentCacheL.cc osd/ECTransactionL.cc osd/ECUtilL.cc
    osd/scrubber/osd_scrub.cc osd/scrubber/scrub_job.cc
    osd/scrubber/scrub_reservations.cc osd/scrubber/scrub_resources.cc)
else()
  list(APPEND ceph_osd_sources osd/ExtentCache.cc osd/recovery_types.cc)
endif()
ceph_objects(ceph_osd_objects ${ceph_osd_sources})
target_sources(ceph_osd_objects PRIVATE ${grafted}/osd/OSD.cc)
target_include_directories(ceph_osd_objects SYSTEM PRIVATE ${ceph}/osd)

add_library(ceph_only_compiled OBJECT)
target_link_libraries(ceph_only_compiled PRIVATE ceph_source_flags)
target_include_directories(ceph_only_compiled PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/src/os)
target_include_directories(ceph_only_compiled SYSTEM PRIVATE ${ceph}/rocksdb/include)
foreach(name ${only_compiled})
  cmake_path(GET name PARENT_PATH folder)
  target_sources(ceph_only_compiled PRIVATE ${grafted}/${name})
  set_source_files_properties(${grafted}/${name} PROPERTIES COMPILE_OPTIONS "-iquote;${ceph}/${folder}")
endforeach()

# --- SwimStore ------------------------------------------------------------------

# What nearly each of these files includes of Ceph takes a compiler ten seconds, and one that reads it precompiled
# three. ccache keeps the files compiled with it, too (CCACHE_SLOPPINESS in qa/enter.sh). Every file still includes what
# it uses: clang-tidy, the sanitizers' builds and a graft into Ceph's tree go without.
add_library(swim_ceph_precompiled OBJECT ${CMAKE_SOURCE_DIR}/qa/ceph/precompiled.cc)
target_link_libraries(swim_ceph_precompiled PRIVATE swim_ceph_flags)
target_precompile_headers(swim_ceph_precompiled PRIVATE
  <common/Formatter.h> <common/debug.h> <common/errno.h> <include/buffer.h> <os/ObjectStore.h> <osd/osd_types.h>)
function(precompile_ceph target)
  if(NOT SWIM_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${target} REUSE_FROM swim_ceph_precompiled)
  endif()
endfunction()

# Behind its name: the libraries that programs with it need besides.
function(swimstore_library name)
  add_library(${name} STATIC ${${name}_sources})
  target_link_libraries(${name} PRIVATE swim_ceph_flags INTERFACE ${ARGN})
  precompile_ceph(${name})
endfunction()
swimstore_library(vtkv_ceph vtkv)
swimstore_library(swimstore vtkv)
swimstore_library(swimstore_inspect swimstore vtkv_inspect)
swimstore_library(swimstore_testing swimstore_inspect vtkv_testing)

# What every program with an ObjectStore in it has.
ceph_objects(ceph_store_objects
  os/Transaction.cc os/FuseStore.cc os/fs/FS.cc os/fs/XFS.cc os/memstore/MemStore.cc
  common/PriorityCache.cc extblkdev/ExtBlkDevPlugin.cc
  erasure-code/ErasureCodePlugin.cc ${ceph_heap_profiler} perfglue/disabled_stubs.cc
  global/global_init.cc global/pidfile.cc global/signal_handler.cc)
# What a program needs that has a KeyValueDB and no ObjectStore.
ceph_objects(ceph_kv_objects erasure-code/ErasureCodePlugin.cc
  global/global_init.cc global/pidfile.cc global/signal_handler.cc)
add_library(kv_seam_objects OBJECT ${CMAKE_SOURCE_DIR}/src/os/swimstore/ceph/kv_factory.cc)
target_link_libraries(kv_seam_objects PRIVATE swim_ceph_flags)
add_library(ceph_seam_objects OBJECT
  ${CMAKE_SOURCE_DIR}/src/os/swimstore/ceph/object_store_factory.cc
  ${CMAKE_SOURCE_DIR}/src/os/swimstore/ceph/option_install.cc)
target_link_libraries(ceph_seam_objects PRIVATE swim_ceph_flags)

set(ceph_extra_stores)
if(SWIM_WITH_BLUESTORE)
  include(${CMAKE_CURRENT_LIST_DIR}/bluestore.cmake)
  set(ceph_extra_stores $<TARGET_OBJECTS:ceph_bluestore_objects>)
endif()

# --- programs -------------------------------------------------------------------

# Any program linked with the packaged library ends at once where it meets another one.
add_library(ceph_library_check OBJECT ${CMAKE_SOURCE_DIR}/src/os/swimstore/ceph/library_check.cc)
target_compile_definitions(ceph_library_check PRIVATE
  SWIM_CEPH_COMMON_BUILD_ID="${CEPH_COMMON_BUILD_ID}" SWIM_CEPH_COMMON_PACKAGE="${CEPH_COMMON_PACKAGE}")
target_link_libraries(ceph_library_check PRIVATE swim_ceph_flags)

# A program linked with the packaged library, refused if both define a symbol.
function(ceph_linked_program name)
  add_executable(${name} ${ARGN} $<TARGET_OBJECTS:ceph_library_check>)
  target_link_libraries(${name} PRIVATE ceph_link)
  target_link_options(${name} PRIVATE -rdynamic)
  # Not -fPIE, with which the program gets copies of the library's variables that the
  # library itself, bound to its own, never looks at.
  target_compile_options(${name} PRIVATE -fPIC)
  set_target_properties(${name} PROPERTIES BUILD_RPATH ${CEPH_COMMON_DIR}
    INSTALL_RPATH ${CEPH_COMMON_DIR})
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/ceph/check_symbols.py
      $<TARGET_FILE:${name}> ${CEPH_COMMON} VERBATIM)
endfunction()

# With object stores and key-value stores in it.
function(ceph_program name)
  ceph_linked_program(${name} $<TARGET_OBJECTS:ceph_store_objects>
    $<TARGET_OBJECTS:ceph_seam_objects> $<TARGET_OBJECTS:kv_seam_objects> ${ceph_extra_stores} ${ARGN})
  target_link_libraries(${name} PRIVATE swimstore vtkv_ceph)
endfunction()

# With key-value stores in it. RocksDB comes with BlueStore, which is an object store.
function(kv_program name)
  if(SWIM_WITH_BLUESTORE)
    ceph_program(${name} ${ARGN})
  else()
    ceph_linked_program(${name} $<TARGET_OBJECTS:ceph_kv_objects>
      $<TARGET_OBJECTS:kv_seam_objects> ${ARGN})
    target_link_libraries(${name} PRIVATE vtkv_ceph)
  endif()
endfunction()

# One of ours.
function(swimstore_program name source)
  ceph_program(${name} ${CMAKE_SOURCE_DIR}/${source})
  target_link_libraries(${name} PRIVATE swim_ceph_flags ${ARGN})
endfunction()

ceph_objects(ceph_osd_main ceph_osd.cc)
ceph_program(ceph-osd $<TARGET_OBJECTS:ceph_osd_main> $<TARGET_OBJECTS:ceph_osd_objects>)

ceph_objects(ceph_objectstore_tool_objects tools/ceph_objectstore_tool.cc
  tools/rebuild_mondb.cc tools/RadosDump.cc)
ceph_program(ceph-objectstore-tool $<TARGET_OBJECTS:ceph_objectstore_tool_objects>
  $<TARGET_OBJECTS:ceph_osd_objects>)
target_link_libraries(ceph-objectstore-tool PRIVATE swim_ceph_flags)

swimstore_program(ceph-swimstore-tool src/os/swimstore/tool/swimstore_tool.cc swimstore_inspect CLI11::CLI11)
foreach(name swimstore_tool_test swimstore_tool_cubes_test swimstore_tool_metadata_test)
  add_test(NAME ${name}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/tools/${name}.py
      $<TARGET_FILE:ceph-swimstore-tool> $<TARGET_FILE:vtkv-tool>)
endforeach()
add_test(NAME bluestore_table_test
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/tools/bluestore_table_test.py
    $<TARGET_FILE:ceph-swimstore-tool>)
swimstore_program(swimstore_bench src/os/swimstore/tool/swimstore_bench.cc swimstore_inspect)
swimstore_program(swimstore_crash_explorer src/os/swimstore/testing/crash_explorer_main.cc swimstore_testing)
swimstore_program(real_fs_explorer src/os/swimstore/testing/disk/real_fs_main.cc swimstore_testing)

if(SWIM_WITH_FUZZERS)
  ceph_linked_program(swimstore_fuzz ${swimstore_fuzz_sources})
  target_link_libraries(swimstore_fuzz PRIVATE swim_ceph_flags vtkv_testing)
  target_link_options(swimstore_fuzz PRIVATE -fsanitize=fuzzer)
endif()

# Ceph's own tool, with vtkv among the types it knows.
add_library(ceph_kvstore_tool_objects OBJECT ${grafted}/tools/ceph_kvstore_tool.cc
  ${grafted}/tools/kvstore_tool.cc)
if(NOT SWIM_WITH_BLUESTORE)
  target_sources(ceph_kvstore_tool_objects PRIVATE ${ceph}/kv/KeyValueHistogram.cc)
  # It takes these from BlueStore's header.
  target_compile_options(ceph_kvstore_tool_objects PRIVATE
    "SHELL:-include ${ceph}/kv/KeyValueDB.h" "SHELL:-include ${ceph}/common/config_proxy.h"
    "SHELL:-include ${ceph}/global/global_context.h")
endif()
target_link_libraries(ceph_kvstore_tool_objects PRIVATE ceph_source_flags)
target_include_directories(ceph_kvstore_tool_objects SYSTEM PRIVATE ${ceph}/tools)
kv_program(ceph-kvstore-tool $<TARGET_OBJECTS:ceph_kvstore_tool_objects>)

# Load generators are ordinary librados clients.
find_library(RADOS NAMES rados librados.so.2)
swim_add_program(rados_load qa/bench/rados_load.cc ${RADOS} fmt::fmt Threads::Threads)
# A disk of the scenarios.
swim_add_program(fault_disk qa/bench/fault_disk.cc PkgConfig::FUSE3 fmt::fmt Threads::Threads)

# --- tests ----------------------------------------------------------------------

add_library(ceph_store_test_objects OBJECT
  ${CMAKE_SOURCE_DIR}/qa/ceph/store_test_params.cc
  ${ceph}/test/objectstore/store_test_fixture.cc)
target_link_libraries(ceph_store_test_objects PRIVATE ceph_source_flags)
target_include_directories(ceph_store_test_objects SYSTEM PRIVATE ${ceph}/test/objectstore)
if(NOT SWIM_WITH_BLUESTORE)
  target_compile_options(ceph_store_test_objects PRIVATE
    -include ${CMAKE_SOURCE_DIR}/qa/ceph/slim/bluestore_counters.h)
endif()
ceph_program(ceph_test_objectstore $<TARGET_OBJECTS:ceph_store_test_objects>)
target_link_libraries(ceph_test_objectstore PRIVATE GTest::gtest)

# Tests write to the current directory: each gets one of its own.
set(in_scratch ${CMAKE_SOURCE_DIR}/qa/ceph/in_scratch.sh)

# All that the program lists; of BlueStore's build SwimStore, and MemStore, which is 0. Of MemStore not the random ones:
# its reads are too short now and then ("len == result.length()").
set(store_test_filter "*")
if(SWIM_WITH_BLUESTORE)
  set(store_test_filter "ObjectStore/StoreTest.*/0:SwimStore/StoreTest.*")
endif()
string(APPEND store_test_filter "-ObjectStore/StoreTest.*Synthetic*/0")
set_target_properties(ceph_test_objectstore PROPERTIES
  TEST_LAUNCHER ${in_scratch})
# Whatever file system the build folder lies on: no power fails here.
set(on_any_host --swimstore_allow_unproven_file_system=true)
gtest_discover_tests(ceph_test_objectstore NO_PRETTY_VALUES EXTRA_ARGS ${on_any_host}
  DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
  TEST_PREFIX store_test: TEST_FILTER ${store_test_filter} PROPERTIES TIMEOUT 900)
# Once more in stores of several cubes. The others are the same for them: they have one collection, or none.
gtest_discover_tests(ceph_test_objectstore NO_PRETTY_VALUES EXTRA_ARGS ${on_any_host} --swimstore_cubes 4
  DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_LIST store_test_of_cubes
  TEST_PREFIX store_test_of_cubes: TEST_FILTER "SwimStore/StoreTest.*Col*:SwimStore/StoreTest.*Merge*:SwimStore/StoreTest.*Split*:SwimStore/StoreTest.*Synthetic*"
  PROPERTIES TIMEOUT 900)

add_library(ceph_kv_test_objects OBJECT ${CMAKE_SOURCE_DIR}/qa/ceph/kv_test_params.cc)
target_link_libraries(ceph_kv_test_objects PRIVATE ceph_source_flags)
if(NOT SWIM_WITH_BLUESTORE)
  target_include_directories(ceph_kv_test_objects BEFORE PRIVATE
    ${CMAKE_SOURCE_DIR}/qa/ceph/slim_kv)
endif()
kv_program(ceph_test_keyvaluedb $<TARGET_OBJECTS:ceph_kv_test_objects>)
target_link_libraries(ceph_test_keyvaluedb PRIVATE GTest::gtest)
set_target_properties(ceph_test_keyvaluedb PROPERTIES TEST_LAUNCHER ${in_scratch})
# The cases left out are about RocksDB's column families and size estimate alone: they return at once,
# or skip themselves, for any other engine.
gtest_discover_tests(ceph_test_keyvaluedb NO_PRETTY_VALUES
  DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
  TEST_PREFIX kv_test: TEST_FILTER "Vtkv/KVTest.*-*.RocksDB*:*.Sharding*" PROPERTIES TIMEOUT 900)

kv_program(vtkv_ceph_tests ${vtkv_ceph_tests_sources} ${CMAKE_SOURCE_DIR}/qa/ceph/swimstore_test_main.cc)
target_link_libraries(vtkv_ceph_tests PRIVATE swim_ceph_flags vtkv_testing GTest::gmock GTest::gtest)
precompile_ceph(vtkv_ceph_tests)
set_target_properties(vtkv_ceph_tests PROPERTIES TEST_LAUNCHER ${in_scratch})
swim_add_tests(vtkv_ceph_tests)

ceph_program(swimstore_tests ${swimstore_tests_sources} ${CMAKE_SOURCE_DIR}/qa/ceph/swimstore_test_main.cc)
swim_name_corpus(src/os/swimstore/testing/fuzz/store_fuzz_corpus_test.cc)
target_link_libraries(swimstore_tests PRIVATE swim_ceph_flags swimstore_testing GTest::gmock GTest::gtest)
precompile_ceph(swimstore_tests)
set_target_properties(swimstore_tests PROPERTIES TEST_LAUNCHER ${in_scratch})
swim_add_tests(swimstore_tests)

add_test(NAME kvstore_tool_test
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/tools/kvstore_tool_test.py
    $<TARGET_FILE:ceph-kvstore-tool> $<TARGET_FILE:vtkv-tool>)

# A state takes 4 to 6 ms of processor time, by what runs beside it. At 20 something makes the lane useless, a sanitizer
# or a debug build apart.
set(explorer_limits --states 20000 --time 240)
if(NOT SWIM_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  list(APPEND explorer_limits --ms-per-state-max 20)
endif()
add_test(NAME crash_explorer COMMAND swimstore_crash_explorer ${explorer_limits})
set_tests_properties(crash_explorer PROPERTIES COST 100)  # begun first: no processor waits for it at the end

add_test(NAME library_check_test
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/ceph/library_check_test.py
    $<TARGET_FILE:ceph-osd> ${CEPH_COMMON})
add_test(NAME seam_symbols_test
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/ceph/check_symbols_test.py)
add_test(NAME graft_test
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/qa/ceph/graft_test.py)
set_tests_properties(graft_test PROPERTIES
  ENVIRONMENT SWIM_CEPH_SOURCE=${SWIM_CEPH_SOURCE})
