// SPDX-License-Identifier: LGPL-2.1-or-later
// Mutations: safety rules that a test breaks on purpose, to show that the tests would notice (doc/testing.md has who
// notices which).
//
// The code that keeps a rule asks mutated() where the rule decides. A build without SWIM_MUTATIONS answers false at
// compile time. In one with it, a program that does not link vtkv_testing has no code that breaks a rule: only
// ScopedMutation (testing/mutations.h) does, in the whole process.
//
// Threads: any. A rule is broken before the database is opened, and kept again when it is closed.
#pragma once

#include <atomic>
#include <cstdint>

namespace vtkv {

// The one name of each, also that of --mutation and of the pages, and what is broken.
#define VTKV_ENGINE_MUTATIONS(X)                                                                            \
  X(flush_removed, "commits are acknowledged and never flushed")                                            \
  X(unprimed_segment_not_synced, "one sync covers all, also log segments that are not primed")              \
  X(slot_reused_at_once, "a freed slot waits for no record")                                                \
  X(body_crc_not_checked, "a record counts by its header alone")                                            \
  X(data_crc_not_checked, "recovery takes external writes for written")                                     \
  X(watermark_ahead_of_flush, "a record calls durable what comes just before it")                           \
  X(memtable_flushed_early, "a memtable is flushed before all of it is durable in the log")                 \
  X(acknowledged_before_flush, "a commit is acknowledged when it is written")                               \
  X(tail_record_trusted, "recovery takes the last record's external writes for written")                    \
  X(range_delete_lost, "a flush of the memtable loses range deletes, and so does replay")                   \
  X(no_recovery_record, "recovery ends without a record of its own")                                        \
  X(previous_checksum_dropped, "a record follows whichever has the right sequence")                         \
  X(next_segment_by_epoch_alone, "the log goes on in the newest segment or not at all")                     \
  X(watermark_per_group, "durable_seq moves over a group while one before it is written")                   \
  X(segment_recycled_early, "a collected segment, before a checkpoint has its values' new addresses")       \
  X(tie_by_source_dropped, "of one version in several sources, whichever comes first counts")               \
  X(relocation_wins, "over a put that came after the value was found to be live")                           \
  X(durable_inside_batch, "durable_seq moves over the first fragments of a batch")                          \
  X(half_batch_kept, "recovery ends the log between two fragments of a batch")                              \
  X(candidate_looked_up_behind_memtable, "by the collector, while a flushed memtable still hides pointers") \
  X(read_segment_recycled, "a segment is written again while a memtable may lead a reader into it")         \
  X(snapshots_listed_early, "a compaction lists snapshots before it chooses its runs")                      \
  X(step_leaves_newest_out, "a step of compaction puts an older run's entries in front of a newer one's")   \
  X(tombstone_dropped_above, "a step drops tombstones although older runs lie below it")                    \
  X(range_tombstone_not_cut, "a rest of a part keeps no range tombstone")                                   \
  X(doubtful_run_freed, "a run that is named by a checkpoint which failed and may be on disk")

#define VTKV_STORE_MUTATIONS(X)                                                                                   \
  X(slot_punched_early, "a chunk is punched while a durable page still calls its slots primed")                   \
  X(fragment_punched_early, "a fragment of a chunk is punched while a durable page still calls it primed")        \
  X(failed_punch_trusted, "what a punch was tried on is as primed as before")                                     \
  X(damage_mark_kept, "blocks that recovery cannot read and that nobody owns stay marked")                        \
  X(quarantine_forgotten, "bad slots are handed out again")                                                       \
  X(tombstone_left_out, "of an omap key that another cube removed, too, and may have again")                      \
  X(room_promised_blindly, "transactions are promised room that is not there")                                    \
  X(single_flush_everywhere, "one sync covers all files, also on hosts where it does not")                        \
  X(moved_before_copied, "a collection's record names its new cube before its objects are there")                 \
  X(old_copy_unmarked, "nothing says that objects are one of two copies, to be removed after a crash")            \
  X(swept_before_moved, "the old copy of a collection is removed before the new one is durable")                  \
  X(changes_not_copied, "what clients change while a collection is copied to another cube stays out of the copy") \
  X(changed_object_defragmented, "data is put together as it was read, whatever a client has written meanwhile")  \
  X(flush_joined_late, "a cube that asks for a flush is served by the one under way")                             \
  X(witness_not_awaited, "a group's transaction commits before its witness in cube 0 is durable")                 \
  X(cubes_added_before_made, "the superblock names new cubes before they are durable")                            \
  X(divided_before_copied, "an object's record says that its omap is in parts before its rows are there")         \
  X(data_elsewhere_not_synced, "data on another file system than the log is not flushed")                         \
  X(log_elsewhere_not_synced, "a flush of data on another file system is taken for one of the log")               \
  X(metadata_used_before_copied, "a store uses moved log and tree before they are durable")

enum class Mutation : uint8_t {
#define VTKV_MUTATION(name, broken) name,
  VTKV_ENGINE_MUTATIONS(VTKV_MUTATION) VTKV_STORE_MUTATIONS(VTKV_MUTATION)
#undef VTKV_MUTATION
};

// The rules of this process that are broken.
class BrokenRules {
 public:
  static bool contains(Mutation rule) { return (s_rules.load(std::memory_order_relaxed) & bit(rule)) != 0; }

 private:
  friend class ScopedMutation;
  static constexpr uint64_t bit(Mutation rule) { return uint64_t{1} << static_cast<unsigned>(rule); }
  static inline constinit std::atomic<uint64_t> s_rules{0};
};

#ifdef SWIM_MUTATIONS
inline constexpr bool kCanMutate = true;
inline bool mutated(Mutation rule) { return BrokenRules::contains(rule); }
#else
inline constexpr bool kCanMutate = false;
constexpr bool mutated(Mutation) { return false; }
#endif

}  // namespace vtkv
