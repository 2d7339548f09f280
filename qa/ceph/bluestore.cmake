# SPDX-License-Identifier: LGPL-2.1-or-later
# BlueStore and KStore, for side-by-side runs in one binary and for those store tests
# that need them. They bring Ceph's own RocksDB: Debian's does not fit Reef's caches.

find_library(AIO aio REQUIRED)
find_package(ZLIB REQUIRED)
find_library(SNAPPY snappy REQUIRED)
find_library(LZ4 lz4 REQUIRED)

# Built where Ceph's own build would build it, so that every checkout shares it.
set(rocksdb ${SWIM_CEPH_BUILD}/src/rocksdb/librocksdb.a)
add_custom_command(OUTPUT ${rocksdb}
  COMMAND ${CMAKE_COMMAND} --build ${SWIM_CEPH_BUILD} --target rocksdb_ext
  COMMENT "Building Ceph's RocksDB" USES_TERMINAL VERBATIM)
add_custom_target(ceph_rocksdb DEPENDS ${rocksdb})

ceph_objects(ceph_bluestore_objects
  os/DBObjectMap.cc os/kstore/KStore.cc os/kstore/kstore_types.cc
  os/bluestore/Allocator.cc os/bluestore/AvlAllocator.cc os/bluestore/BitmapAllocator.cc
  os/bluestore/BitmapFreelistManager.cc os/bluestore/BlueFS.cc
  os/bluestore/BlueRocksEnv.cc os/bluestore/BlueStore.cc os/bluestore/BtreeAllocator.cc
  os/bluestore/FreelistManager.cc os/bluestore/HybridAllocator.cc
  os/bluestore/StupidAllocator.cc os/bluestore/bluefs_types.cc
  os/bluestore/bluestore_types.cc os/bluestore/fastbmap_allocator_impl.cc
  os/bluestore/simple_bitmap.cc
  kv/RocksDBStore.cc kv/KeyValueHistogram.cc
  kv/rocksdb_cache/ShardedCache.cc kv/rocksdb_cache/BinnedLRUCache.cc
  blk/BlockDevice.cc blk/aio/aio.cc blk/kernel/KernelDevice.cc blk/kernel/io_uring.cc)
target_include_directories(ceph_bluestore_objects SYSTEM PRIVATE
  ${ceph}/blk ${ceph}/rocksdb/include)
add_dependencies(ceph_bluestore_objects ceph_rocksdb)

target_compile_definitions(ceph_flags INTERFACE SWIM_WITH_BLUESTORE)
target_include_directories(ceph_flags SYSTEM INTERFACE ${ceph}/rocksdb/include)
target_link_libraries(ceph_link INTERFACE ${rocksdb} ${AIO} ${SNAPPY} ${LZ4} ZLIB::ZLIB
  PkgConfig::URING udev)
