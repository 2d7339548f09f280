// `ceph daemon osd.N swimstore verify`: reads every block of log and tree, in the background.
//
//   swimstore verify          starts one
//   swimstore verify status   is one under way, and what did the last one find?
//   swimstore verify stop     ends one early
//
// What it finds goes to the log as well, and raises a health alert. An unmount ends one that is under way. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/admin_socket.h"

#include "swimstore/store/store_context.h"

namespace swimstore {

class OnlineVerify final : public AdminSocketHook {
 public:
  explicit OnlineVerify(StoreContext& store);
  ~OnlineVerify() override;

  int call(std::string_view command, const cmdmap_t& arguments, const ceph::bufferlist& input,
           ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output) override;

  // What the last one found, as one sentence for a health alert; empty: nothing. One that was stopped says nothing of
  // what it did not come to: if it found nothing, what the one before found stands.
  std::string alert() const;

 private:
  vtkv::NextStep step();
  void end_worker();
  void dump_status(ceph::Formatter* formatter) const;

  StoreContext& m_store;

  std::mutex m_command_lock;  // taken first: one command at a time
  std::unique_ptr<vtkv::Worker> m_worker;
  std::atomic<bool> m_cancelled{false};

  mutable std::mutex m_lock;
  const char* m_state = "never run";  // running, done, stopped
  std::vector<std::string> m_findings;  // the first thousand
  size_t m_count = 0;                   // all
};

}  // namespace swimstore
