// `ceph daemon osd.N swimstore verify`: reads every block of log and tree, in the background.
//
//   swimstore verify          starts one
//   swimstore verify status   is one under way, and what did the last one find?
//
// A shutdown waits for one that is under way. Thread-safe.
#pragma once

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

 private:
  vtkv::NextStep step();
  void dump_status(ceph::Formatter* formatter) const;

  StoreContext& m_store;

  std::mutex m_command_lock;  // taken first: one command at a time
  std::unique_ptr<vtkv::Worker> m_worker;

  mutable std::mutex m_lock;
  const char* m_state = "never run";  // running, done
  std::vector<std::string> m_findings;
};

}  // namespace swimstore
