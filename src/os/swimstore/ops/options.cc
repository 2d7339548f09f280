// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/options.h"

namespace swimstore {

namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

Option size_option(const char* name, Option::level_t level, uint64_t bytes, const char* description) {
  return Option(name, Option::TYPE_SIZE, level)
      .set_default(Option::size_t{bytes})
      .set_description(description)
      .add_service("osd");
}

Option bool_option(const char* name, Option::level_t level, bool value, const char* description) {
  return Option(name, Option::TYPE_BOOL, level).set_default(value).set_description(description).add_service("osd");
}

Option ratio_option(const char* name, Option::level_t level, double value, const char* description) {
  return Option(name, Option::TYPE_FLOAT, level).set_default(value).set_description(description).add_service("osd");
}

// Fixed when the store is made, and kept in it.
void add_geometry(std::vector<Option>& table) {
  constexpr auto level = Option::LEVEL_ADVANCED;
  table.push_back(size_option("swimstore_log_segment_size", level, 64 * kMiB, "bytes of one segment of the intent log")
                      .set_flag(Option::FLAG_CREATE));
  table.push_back(Option("swimstore_log_segments", Option::TYPE_UINT, level)
                      .set_default(4)
                      .set_description("log segments made with the store; more are added when needed")
                      .set_flag(Option::FLAG_CREATE)
                      .add_service("osd"));
  table.push_back(size_option("swimstore_zone_size", level, 8 * kMiB, "bytes of one zone of the metadata tree")
                      .set_flag(Option::FLAG_CREATE));
  table.push_back(
      size_option("swimstore_tree_block_size", level, 4 * kKiB, "target bytes of one block of the metadata tree")
          .set_flag(Option::FLAG_CREATE));
  table.push_back(
      size_option("swimstore_chunk_size", level, 32 * kMiB, "bytes by which a data container grows and shrinks")
          .set_flag(Option::FLAG_CREATE));
  table.push_back(Option("swimstore_cubes", Option::TYPE_UINT, level)
                      .set_default(1)
                      .set_description("cubes that the placement groups are spread over, a power of two")
                      .set_long_description(
                          "Each has a log, a metadata tree and data containers of its own. With more than one, the "
                          "OSD's own collection lies in another cube besides.")
                      .set_flag(Option::FLAG_CREATE)
                      .add_service("osd"));
  table.push_back(Option("swimstore_metadata_path", Option::TYPE_STR, level)
                      .set_default("")
                      .set_description("directory on another, faster file system for the store's log and tree")
                      .set_long_description(
                          "Read when the store is made; from then on its file metadata_path counts. The directory is "
                          "made where it is missing, and must be empty. Empty: they lie in the store's directory.")
                      .set_flag(Option::FLAG_CREATE)
                      .add_service("osd"));
}

void add_isolation(std::vector<Option>& table) {
  table.push_back(
      Option("swimstore_mount_damaged_cubes", Option::TYPE_STR, Option::LEVEL_ADVANCED)
          .set_default("refuse")
          .set_enum_allowed({"refuse", "incomplete"})
          .set_description("what a mount does about cubes that are damaged")
          .set_long_description("refuse: the OSD does not start. incomplete: it serves the other cubes. The placement "
                                "groups of those that are damaged are made anew, empty, and Ceph fills them from their "
                                "peers; one that no peer has a new enough copy of stays incomplete. A cube that was "
                                "left so is used again only after 'ceph-swimstore-tool reset'.")
          .set_flag(Option::FLAG_STARTUP)
          .add_see_also("swimstore_cubes")
          .add_service("osd"));
}

void add_compression(std::vector<Option>& table) {
  constexpr auto level = Option::LEVEL_ADVANCED;
  table.push_back(Option("swimstore_compression_mode", Option::TYPE_STR, level)
                      .set_default("none")
                      .set_enum_allowed({"none", "passive", "aggressive", "force"})
                      .set_description("which data is compressed, where a pool's compression_mode says nothing")
                      .set_long_description("none: nothing. passive: objects that clients call compressible. "
                                            "aggressive: all but those they call incompressible. force: all.")
                      .set_flag(Option::FLAG_RUNTIME)
                      .add_service("osd"));
  table.push_back(Option("swimstore_compression_algorithm", Option::TYPE_STR, level)
                      .set_default("snappy")
                      .set_enum_allowed({"none", "snappy", "zlib", "zstd", "lz4"})
                      .set_description("how, where a pool's compression_algorithm says nothing")
                      .set_flag(Option::FLAG_RUNTIME)
                      .add_service("osd"));
  table.push_back(ratio_option("swimstore_compression_required_ratio", level, 0.875,
                               "compressed data is kept if it takes at most this part of the blocks it had, rounded up")
                      .set_flag(Option::FLAG_RUNTIME));
  table.push_back(size_option("swimstore_compression_min_blob_size", level, 64 * kKiB,
                              "data that is compressed together, at most; from 8K to 64K")
                      .set_flag(Option::FLAG_RUNTIME));
  table.push_back(size_option("swimstore_compression_max_blob_size", level, 64 * kKiB,
                              "the same, of objects that are read in sequence and not overwritten")
                      .set_flag(Option::FLAG_RUNTIME));
}

void add_writing(std::vector<Option>& table) {
  constexpr auto level = Option::LEVEL_ADVANCED;
  table.push_back(
      Option("swimstore_flush_mode", Option::TYPE_STR, level)
          .set_default("auto")
          .set_enum_allowed({"auto", "single", "per-file"})
          .set_description("how a commit group is made durable")
          .set_long_description("single: one fdatasync of the log covers the data files too. Possible on the file "
                                "systems where this was proven (ext4, xfs). per-file: every file written is synced. "
                                "auto: single where it was proven.")
          .set_flag(Option::FLAG_STARTUP)
          .add_service("osd"));
  table.push_back(size_option("swimstore_memtable_size", level, 32 * kMiB,
                              "metadata bytes gathered in memory before they go to the tree")
                      .set_flag(Option::FLAG_STARTUP));
  table.push_back(
      Option("swimstore_compress_metadata", Option::TYPE_BOOL, level)
          .set_default(true)
          .set_description("compress blocks of the tree, where that saves space")
          .set_long_description("By LZ4. What is there stays as it is, until it is written anew. Only in "
                                "stores that were made with this option on, or upgraded by 'ceph-swimstore-tool "
                                "upgrade' without '--set swimstore_compress_metadata=false'. Programs before 0.8 "
                                "refuse these stores.")
          .set_flag(Option::FLAG_STARTUP)
          .add_service("osd"));
  table.push_back(Option("swimstore_io_depth", Option::TYPE_UINT, level)
                      .set_default(128)
                      .set_description("requests in flight at the host")
                      .set_flag(Option::FLAG_STARTUP)
                      .add_service("osd"));
  table.push_back(Option("swimstore_callback_threads", Option::TYPE_UINT, level)
                      .set_default(32)
                      .set_description("threads at most that tell the OSD which transactions are durable")
                      .set_long_description("One does, as long as it gets through. More than the OSD has op threads, "
                                            "which may make as many wait. 0: these find out for themselves, which "
                                            "wakes more of them up.")
                      .set_flag(Option::FLAG_STARTUP)
                      .add_service("osd"));
  table.push_back(size_option("swimstore_throttle_bytes", level, 64 * kMiB,
                              "bytes of transactions that may be under way, that is accepted and not durable")
                      .set_long_description("When there are so many, the next ones wait in queue_transactions. One "
                                            "larger than this goes alone. 0: no limit.")
                      .set_flag(Option::FLAG_RUNTIME));
  table.push_back(
      Option("swimstore_relaxed_pools", Option::TYPE_STR, level)
          .set_default("")
          .set_description("numbers of replicated pools whose writes are acknowledged before they are durable")
          .set_long_description(
              "They are acknowledged when they are written; a flush follows within a second. Where only the "
              "OSD's process ends, nothing is lost. Where its host loses power, acknowledged writes of that "
              "second may be. Erasure-coded pools stay strict. A health alert names the pools.")
          .set_flag(Option::FLAG_RUNTIME)
          .add_service("osd"));
  table.push_back(size_option("swimstore_prime_slot_size_max", level, 32 * kKiB,
                              "slots up to this size are written ahead of demand, so that using them needs no sync "
                              "of their own file")
                      .set_flag(Option::FLAG_STARTUP));
  table.push_back(
      size_option("swimstore_primed_ahead_size", level, 64 * kMiB, "free primed bytes kept ready per slot size")
          .set_flag(Option::FLAG_STARTUP));
  table.push_back(
      bool_option("swimstore_allow_unproven_file_system", level, false,
                  "run on a file system other than ext4, xfs and btrfs, or on one that loses what was synced")
          .set_flag(Option::FLAG_STARTUP));
}

void add_space(std::vector<Option>& table) {
  constexpr auto level = Option::LEVEL_ADVANCED;
  table.push_back(size_option("swimstore_reserve_size", level, 128 * kMiB,
                              "host space that only metadata, deletes and recovery may use")
                      .set_flag(Option::FLAG_STARTUP));
  table.push_back(size_option("swimstore_host_free_min_size", level, 64 * kMiB,
                              "below this much free host space the store reports itself full"));
  table.push_back(
      ratio_option("swimstore_host_free_min_ratio", level, 0.01, "the same, as a share of the host file system"));
  table.push_back(ratio_option("swimstore_space_throttle_time", level, 10.0,
                               "when little space is left, it is used up no faster than all of it would be in so "
                               "many seconds; 0: at full speed")
                      .set_min_max(0.0, 3600.0)
                      .set_flag(Option::FLAG_STARTUP));
  table.push_back(ratio_option("swimstore_space_wait_time", level, 5.0,
                               "seconds that a write waits for free space before it may draw on the reserve")
                      .set_long_description("A thread of the OSD waits with it: stay well below osd_op_thread_timeout.")
                      .set_min_max(0.0, 3600.0)
                      .set_flag(Option::FLAG_STARTUP));
}

void add_memory(std::vector<Option>& table) {
  constexpr auto level = Option::LEVEL_ADVANCED;
  table.push_back(bool_option("swimstore_cache_autotune", level, true,
                              "size the caches so that the process stays at osd_memory_target"));
  table.push_back(
      size_option("swimstore_cache_size", level, 512 * kMiB, "bytes of all caches when they are not autotuned"));
  table.push_back(ratio_option("swimstore_cache_meta_ratio", level, 0.45, "share of the caches for onodes"));
  table.push_back(ratio_option("swimstore_cache_kv_ratio", level, 0.35, "share of the caches for tree blocks"));
  table.push_back(ratio_option("swimstore_cache_interval", level, 1.0, "seconds between two adjustments")
                      .add_see_also("osd_memory_target"));
}

void add_checks(std::vector<Option>& table) {
  constexpr auto level = Option::LEVEL_ADVANCED;
  table.push_back(bool_option("swimstore_fsck_on_mount", level, false, "check the store before every mount"));
  table.push_back(bool_option("swimstore_fsck_on_mount_deep", level, false, "and read all of its data then"));
  table.push_back(bool_option("swimstore_fsck_on_umount", level, false, "check the store after every umount"));
  table.push_back(bool_option("swimstore_fsck_on_umount_deep", level, false, "and read all of its data then"));
  table.push_back(size_option("swimstore_fsck_memory", level, 0,
                              "memory for a check or a repair of a store at rest, which goes over the tree in "
                              "several passes where it needs more; 0: osd_memory_target")
                      .add_see_also("osd_memory_target"));
  table.push_back(ratio_option("swimstore_fsck_online_rate", level, 40000.0,
                               "entries of the tree that 'swimstore fsck' of a running OSD goes through in a second"));
  table.push_back(ratio_option("swimstore_fsck_online_data_rate", level, 4096.0,
                               "blocks of 4 KiB of data that a deep one reads in a second"));
  table.push_back(size_option("swimstore_fsck_online_memory", level, 0,
                              "memory that it may take; 0: a sixteenth of osd_memory_target")
                      .add_see_also("osd_memory_target"));
  table.push_back(ratio_option("swimstore_log_op_age", level, 5.0,
                               "an operation that takes so many seconds or longer is told in the log")
                      .set_min_max(0.0, 1e9)
                      .set_flag(Option::FLAG_RUNTIME));
  table.push_back(Option("swimstore_slow_ops_warn_threshold", Option::TYPE_UINT, level)
                      .set_default(1)
                      .set_description("so many of them within swimstore_slow_ops_warn_lifetime raise a health alert; "
                                       "0: none")
                      .set_flag(Option::FLAG_RUNTIME)
                      .add_service("osd"));
  table.push_back(Option("swimstore_slow_ops_warn_lifetime", Option::TYPE_UINT, level)
                      .set_default(86400)
                      .set_description("seconds that a slow operation counts for the health alert")
                      .set_flag(Option::FLAG_RUNTIME)
                      .add_service("osd"));
  table.push_back(bool_option("swimstore_debug_inject_read_err", Option::LEVEL_DEV, false,
                              "obey the requests of tests for read errors of single objects"));
  table.push_back(ratio_option("swimstore_debug_random_read_err", Option::LEVEL_DEV, 0,
                               "let one read in 100 times this fail; 0: none"));
}

void add_renamed(std::vector<Option>& table) {
  for (const RenamedOption& renamed : kRenamedOptions) {
    table.push_back(Option(renamed.was, Option::TYPE_STR, Option::LEVEL_DEV)
                        .set_default("")
                        .set_description("refused: the option has another name now")
                        .add_see_also(renamed.is)
                        .set_flag(Option::FLAG_STARTUP)
                        .add_service("osd"));
  }
}

void add_defragmentation(std::vector<Option>& table) {
  table.push_back(
      size_option("swimstore_defragment_rate", Option::LEVEL_ADVANCED, 0,
                  "how much 'swimstore defragment' of a running OSD does in a second")
          .set_long_description("Bytes that it reads and writes, and 64 KiB for each piece that it reads; of metadata, "
                                "bytes that it writes, and a change counts from the next cube on. 64K to 4G. 0: 32M, "
                                "or 4M on a disk that turns.")
          .set_min_max(Option::size_t{0}, Option::size_t{4096 * kMiB})
          .set_flag(Option::FLAG_RUNTIME));
}

}  // namespace

std::vector<Option> option_table() {
  std::vector<Option> table;
  add_geometry(table);
  add_isolation(table);
  add_writing(table);
  add_compression(table);
  add_space(table);
  add_memory(table);
  add_checks(table);
  add_defragmentation(table);
  add_renamed(table);
  return table;
}

}  // namespace swimstore
