// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/admin/online_verify.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/Formatter.h"
#include "common/ceph_context.h"
#include "common/debug.h"
#include "swimstore/admin/admin_commands.h"
#include "vtkv/util/utf8.h"

#define dout_context m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.verify "

namespace swimstore {

namespace {

constexpr size_t kFindingsMax = 1000;  // kept and printed; all are counted

}  // namespace

OnlineVerify::OnlineVerify(StoreContext& store) : m_store(store) {
  AdminSocket* const socket = store.cct->get_admin_socket();
  socket->register_command("swimstore verify", this, "check every block of log and tree in the background");
  socket->register_command("swimstore verify status", this, "show whether it is over, and what it found");
  socket->register_command("swimstore verify stop", this, "end it early");
}

OnlineVerify::~OnlineVerify() {
  m_store.cct->get_admin_socket()->unregister_commands(this);
  end();
}

void OnlineVerify::end() {
  vtkv::MutexLock lock(m_command_lock);
  end_worker();
}

int OnlineVerify::call(std::string_view command, const cmdmap_t&, const ceph::bufferlist&, ceph::Formatter* formatter,
                       std::ostream& errors, ceph::bufferlist& output) {
  vtkv::MutexLock lock(m_command_lock);
  if (command == "swimstore verify") {
    {
      vtkv::MutexLock state_lock(m_lock);
      if (m_state == std::string_view("running")) {
        return fail_command(-EBUSY, "one is under way: see swimstore verify status", formatter, errors, output);
      }
      m_state = "running";
    }
    end_worker();
    m_cancelled = false;
    m_worker = m_store.env->start_worker("verify", 0, [this](vtkv::IoQueue&) { return step(); });
  } else if (command == "swimstore verify stop") {
    end_worker();
    vtkv::MutexLock state_lock(m_lock);
    if (m_state == std::string_view("running")) {
      m_state = "stopped";  // it had not begun
    }
  }
  dump_status(formatter);
  return 0;
}

void OnlineVerify::end_worker() {
  m_cancelled = true;
  m_worker.reset();  // waits for its step
}

vtkv::NextStep OnlineVerify::step() {
  {
    vtkv::MutexLock lock(m_lock);
    if (m_state != std::string_view("running")) {
      return vtkv::NextStep::on_event();
    }
  }
  std::vector<std::string> findings;
  for (const auto& cube : m_store.cubes) {
    cube->database().verify(&findings, &m_cancelled);
  }
  const size_t count = findings.size();
  findings.resize(std::min(count, kFindingsMax));
  for (const std::string& finding : findings) {
    derr << finding << dendl;
  }
  vtkv::MutexLock lock(m_lock);
  m_state = m_cancelled ? "stopped" : "done";
  if (!m_cancelled || !findings.empty()) {
    m_findings = std::move(findings);
    m_count = count;
  }
  return vtkv::NextStep::on_event();
}

// What one found that is not over, or was stopped, is no answer to whether there is damage.
void OnlineVerify::dump_status(ceph::Formatter* formatter) const {
  vtkv::MutexLock lock(m_lock);
  formatter->open_object_section("verify");
  formatter->dump_string("state", m_state);
  if (m_state == std::string_view("done")) {
    formatter->dump_bool("damaged", !m_findings.empty());
    formatter->dump_unsigned("errors", m_count);
    formatter->open_array_section("findings");
    for (const std::string& finding : m_findings) {
      formatter->dump_string("finding", vtkv::to_utf8(finding));
    }
    formatter->close_section();
  }
  formatter->close_section();
}

std::string OnlineVerify::alert() const {
  vtkv::MutexLock lock(m_lock);
  if (m_findings.empty()) {
    return {};
  }
  return fmt::format(
      "verify found log or tree damaged in {} places, the first: {}. The OSD ends when it needs one of them: "
      "while its PGs have other copies, take it out ('ceph osd out'), wait until they are active+clean, and "
      "make it anew",
      m_count, vtkv::to_utf8(m_findings.front()));
}

}  // namespace swimstore
