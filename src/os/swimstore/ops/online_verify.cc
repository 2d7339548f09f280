#include "swimstore/ops/online_verify.h"

#include "common/Formatter.h"
#include "common/ceph_context.h"
#include "swimstore/ops/admin_commands.h"
#include "vtkv/util/utf8.h"

namespace swimstore {

OnlineVerify::OnlineVerify(StoreContext& store) : m_store(store) {
  AdminSocket* const socket = store.cct->get_admin_socket();
  socket->register_command("swimstore verify", this, "check every block of log and tree in the background");
  socket->register_command("swimstore verify status", this, "show whether it is over, and what it found");
}

OnlineVerify::~OnlineVerify() {
  m_store.cct->get_admin_socket()->unregister_commands(this);
  std::lock_guard lock(m_command_lock);
  m_worker.reset();  // waits for its step
}

int OnlineVerify::call(std::string_view command, const cmdmap_t&, const ceph::bufferlist&, ceph::Formatter* formatter,
                       std::ostream& errors, ceph::bufferlist& output) {
  std::lock_guard lock(m_command_lock);
  if (command == "swimstore verify") {
    {
      std::lock_guard state_lock(m_lock);
      if (m_state == std::string_view("running")) {
        return fail_command(-EBUSY, "one is under way: see swimstore verify status", formatter, errors, output);
      }
      m_state = "running";
      m_findings.clear();
    }
    m_worker.reset();
    m_worker = m_store.env->start_worker("verify", 0, [this](vtkv::IoQueue&) { return step(); });
  }
  dump_status(formatter);
  return 0;
}

vtkv::NextStep OnlineVerify::step() {
  {
    std::lock_guard lock(m_lock);
    if (m_state != std::string_view("running")) {
      return vtkv::NextStep::on_event();
    }
  }
  std::vector<std::string> findings;
  m_store.cube.database().verify(&findings);
  std::lock_guard lock(m_lock);
  m_findings = std::move(findings);
  m_state = "done";
  return vtkv::NextStep::on_event();
}

void OnlineVerify::dump_status(ceph::Formatter* formatter) const {
  std::lock_guard lock(m_lock);
  formatter->open_object_section("verify");
  formatter->dump_string("state", m_state);
  formatter->dump_bool("damaged", !m_findings.empty());
  formatter->open_array_section("findings");
  for (const std::string& finding : m_findings) {
    formatter->dump_string("finding", vtkv::to_utf8(finding));
  }
  formatter->close_section();
  formatter->close_section();
}

}  // namespace swimstore
