// SPDX-License-Identifier: LGPL-2.1-or-later
// `ceph daemon osd.N swimstore defragment`: puts the data of objects together, or what the trees hold, while the OSD
// serves, in the background (defragment/defragment_pass.h).
//
//   swimstore defragment [--dry-run] [--pool ID]    data, of one pool or of all; dry: only measures
//   swimstore defragment --metadata [--dry-run]     the trees
//   swimstore defragment status        how far it is, and what it has found and done
//   swimstore defragment stop          ends it early: what is done is done
//
// It keeps to swimstore_defragment_rate. An unmount ends it. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/admin_socket.h"

#include "swimstore/defragment/defragment_pass.h"
#include "swimstore/object/store_context.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class TransactionPipeline;

class OnlineDefragment final : public AdminSocketHook {
 public:
  OnlineDefragment(StoreContext& store, TransactionPipeline& pipeline);
  ~OnlineDefragment() override;

  // The store is mounted: until then none begins. The kind of disk decides on the rate where none is set.
  void allow(bool is_rotational);
  // For an unmount: it ends, and none begins any more. Waits for that.
  void end();

  int call(std::string_view command, const cmdmap_t& arguments, const ceph::bufferlist& input,
           ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output) override;

 private:
  using Outcome = DefragmentPass::Outcome;
  struct Asked {
    bool metadata = false, only_measure = false;
    std::optional<int64_t> pool;
  };
  int start(const Asked& asked, ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output);
  std::unique_ptr<DefragmentPass> new_pass(const Asked& asked);
  void stop() REQUIRES(m_command_lock);
  uint64_t rate() const;  // bytes a second
  vtkv::NextStep step() EXCLUDES(m_lock);
  // Does what the rate allows.
  Outcome go_on() EXCLUDES(m_lock);
  void note_progress() REQUIRES(m_lock);
  std::string describe_fields() const REQUIRES(m_lock);
  void dump_status(ceph::Formatter* formatter) const EXCLUDES(m_lock);
  // Not under m_lock, which its step takes.
  void end_worker() REQUIRES(m_command_lock) EXCLUDES(m_lock);

  StoreContext& m_store;
  TransactionPipeline& m_pipeline;
  bool m_is_rotational = false;  // set before there is a worker

  vtkv::Mutex m_command_lock ACQUIRED_BEFORE(m_lock);  // one command at a time
  std::unique_ptr<vtkv::Worker> m_worker GUARDED_BY(m_command_lock);
  bool m_is_allowed GUARDED_BY(m_command_lock) = false;
  // The worker's, while there is one; else of who has m_command_lock.
  std::unique_ptr<DefragmentPass> m_pass;
  double m_owed_bytes = 0;  // done ahead of the rate
  uint64_t m_paid_us = 0;   // when that was counted

  mutable vtkv::Mutex m_lock;
  const char* m_state GUARDED_BY(m_lock) = "never run";  // running, done, stopped, failed
  std::string m_error GUARDED_BY(m_lock);                // why it failed
  Asked m_asked GUARDED_BY(m_lock);
  std::vector<DefragmentPass::Field> m_fields GUARDED_BY(m_lock);
  uint64_t m_begun_us GUARDED_BY(m_lock) = 0, m_ended_us GUARDED_BY(m_lock) = 0;  // 0: it is under way
  double m_progress GUARDED_BY(m_lock) = 0;
  uint64_t m_cost_of_found GUARDED_BY(m_lock) = 0;
  uint64_t m_cost GUARDED_BY(m_lock) = 0;  // until now
};

}  // namespace swimstore
