// SPDX-License-Identifier: LGPL-2.1-or-later
// `ceph daemon osd.N swimstore fsck`: a check of a mounted store, in the background and a little at a time.
//
//   swimstore fsck [--deep] [--cube N]   starts one
//   swimstore fsck status                how far it is, and what the last one found
//   swimstore fsck stop                  ends one early
//
// swimstore_fsck_online_rate says how many entries of the tree it goes through in a second,
// swimstore_fsck_online_data_rate how many blocks of data, where a read counts as 64 at least. What it keeps in memory
// of objects and slots is bounded by swimstore_fsck_online_memory: it goes over the tree in as many passes as that
// takes, each with a snapshot of its own. An estimate of both is said before it begins; where it turns out to be too
// little, the check begins anew with twice the passes. Where too many would be needed it is refused, or fails.
//
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/admin_socket.h"

#include "swimstore/fsck/check_memory.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class OnlineFsck final : public AdminSocketHook {
 public:
  explicit OnlineFsck(StoreContext& store);
  ~OnlineFsck() override;

  int call(std::string_view command, const cmdmap_t& arguments, const ceph::bufferlist& input,
           ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output) override;

  // What the last check found, or this one so far, as one sentence for a health alert; empty: nothing.
  std::string alert() const;

 private:
  // What a check that begins now will take, about.
  struct Estimate {
    uint64_t objects = 0, slots = 0;  // in the store
    CheckMemory largest_cube;         // each is checked by itself
    uint64_t entries = 0;             // of the tree, read in each pass
    uint64_t data_blocks = 0;         // read in all, in a deep one
    uint64_t memory_limit_bytes = 0;
    uint64_t passes = 1;
    uint64_t memory_bytes = 0;
    uint64_t seconds = 0;
  };
  struct Progress {
    const char* state = "never run";  // running, done, stopped, failed
    std::string error;                // why it failed
    const char* phase = "";
    bool deep = false;
    unsigned cube = 0;  // being checked
    unsigned end = 0;   // behind the last one
    unsigned pass = 0;
    uint64_t objects_read = 0;
    Estimate estimate;
    CheckResult before;  // of the cubes that are done
    CheckResult result;  // of all so far
  };

  int start(const cmdmap_t& arguments, ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output)
      REQUIRES(m_command_lock);
  int stop(ceph::Formatter* formatter) REQUIRES(m_command_lock);
  void dump_status(ceph::Formatter* formatter) const EXCLUDES(m_lock);
  vtkv::NextStep step() EXCLUDES(m_lock);
  // Cubes [first, end).
  void begin(bool deep, unsigned first, unsigned end, const Estimate& expected) REQUIRES(m_lock);
  void begin_cube(unsigned cube) REQUIRES(m_lock);
  // What slots take that are split or shared shows only on the way.
  void begin_anew() REQUIRES(m_lock);
  void note_result() REQUIRES(m_lock);
  // What a check found in a cube stays until one of it that looks at as much finds nothing, to its end.
  void keep_result(bool to_its_end) REQUIRES(m_lock);
  Estimate estimate(bool deep, unsigned first, unsigned end) const;
  // Not under m_lock, which its step takes.
  void end_worker() REQUIRES(m_command_lock) EXCLUDES(m_lock);

  StoreContext& m_store;

  vtkv::Mutex m_command_lock ACQUIRED_BEFORE(m_lock);  // one command at a time
  std::unique_ptr<vtkv::Worker> m_worker GUARDED_BY(m_command_lock);
  std::unique_ptr<Fsck> m_fsck;  // the worker's, while there is one; else of who has m_command_lock

  mutable vtkv::Mutex m_lock;
  Progress m_progress GUARDED_BY(m_lock);
  // By cube, for the alert.
  std::map<unsigned, CheckResult> m_found_shallow GUARDED_BY(m_lock), m_found_deep GUARDED_BY(m_lock);
};

}  // namespace swimstore
