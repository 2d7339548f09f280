// `ceph daemon osd.N swimstore fsck`: a check of a mounted store, in the background and a little at a time.
//
//   swimstore fsck [--deep] [--cube N]   starts one
//   swimstore fsck status                how far it is, and what the last one found
//   swimstore fsck stop                  ends one early
//
// swimstore_fsck_online_rate says how many entries of the tree, or blocks of data, it goes through in a second. It
// holds a snapshot of the tree while it reads that, and some 300 bytes of memory per object and per slot.
//
// Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "common/admin_socket.h"

#include "swimstore/fsck/fsck.h"

namespace swimstore {

class OnlineFsck final : public AdminSocketHook {
 public:
  OnlineFsck(StoreContext& store, ObjectReader& reader);
  ~OnlineFsck() override;

  int call(std::string_view command, const cmdmap_t& arguments, const ceph::bufferlist& input,
           ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output) override;

  // What the last check found, or this one so far, as one sentence for a health alert; empty: nothing.
  std::string alert() const;

 private:
  struct Progress {
    const char* state = "never run";  // running, done, stopped
    const char* phase = "";
    bool deep = false;
    uint64_t objects_read = 0;
    CheckResult result;
  };

  int start(const cmdmap_t& arguments, ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output);
  int stop(ceph::Formatter* formatter);
  void dump_status(ceph::Formatter* formatter) const;
  vtkv::NextStep step();
  uint64_t work_per_step() const;
  void end_worker();

  StoreContext& m_store;
  ObjectReader& m_reader;

  std::mutex m_command_lock;  // taken first: one command at a time
  std::unique_ptr<vtkv::Worker> m_worker;
  std::unique_ptr<Fsck> m_fsck;  // the worker's, while there is one

  mutable std::mutex m_lock;
  Progress m_progress;
};

}  // namespace swimstore
