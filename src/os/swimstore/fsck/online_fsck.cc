#include "swimstore/fsck/online_fsck.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "common/Formatter.h"
#include "common/ceph_context.h"
#include "common/cmdparse.h"
#include "swimstore/ops/admin_commands.h"
#include "vtkv/util/utf8.h"

namespace swimstore {

namespace {

using namespace std::chrono_literals;

constexpr auto kStepInterval = 100ms;

}  // namespace

OnlineFsck::OnlineFsck(StoreContext& store, ObjectReader& reader) : m_store(store), m_reader(reader) {
  AdminSocket* const socket = store.cct->get_admin_socket();
  socket->register_command("swimstore fsck name=deep,type=CephBool,req=false name=cube,type=CephInt,req=false", this,
                           "check the store in the background; deep: read all data, too");
  socket->register_command("swimstore fsck status", this, "show how far the check is, and what it found");
  socket->register_command("swimstore fsck stop", this, "end the check early");
}

OnlineFsck::~OnlineFsck() {
  m_store.cct->get_admin_socket()->unregister_commands(this);
  std::lock_guard lock(m_command_lock);
  end_worker();
}

int OnlineFsck::call(std::string_view command, const cmdmap_t& arguments, const ceph::bufferlist&,
                     ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output) {
  std::lock_guard lock(m_command_lock);
  if (command == "swimstore fsck") {
    return start(arguments, formatter, errors, output);
  }
  if (command == "swimstore fsck stop") {
    return stop(formatter);
  }
  dump_status(formatter);
  return 0;
}

int OnlineFsck::start(const cmdmap_t& arguments, ceph::Formatter* formatter, std::ostream& errors,
                      ceph::bufferlist& output) {
  bool deep = false;
  int64_t cube = 0;
  ceph::common::cmd_getval(arguments, "deep", deep);
  ceph::common::cmd_getval(arguments, "cube", cube);
  if (cube != 0) {
    return fail_command(-EINVAL, fmt::format("there is no cube {}: this store has one, cube 0", cube), formatter, errors,
                        output);
  }
  {
    std::lock_guard lock(m_lock);
    if (m_progress.state == std::string_view("running")) {
      return fail_command(-EBUSY, "a check is under way: see swimstore fsck status", formatter, errors, output);
    }
  }
  end_worker();
  m_fsck = std::make_unique<Fsck>(m_store, m_reader, FsckOptions{.deep = deep, .online = true});
  {
    std::lock_guard lock(m_lock);
    m_progress = Progress{.state = "running", .phase = m_fsck->phase(), .deep = deep};
  }
  m_worker = m_store.env->start_worker("fsck", 0, [this](vtkv::IoQueue&) { return step(); });
  dump_status(formatter);
  return 0;
}

int OnlineFsck::stop(ceph::Formatter* formatter) {
  end_worker();
  {
    std::lock_guard lock(m_lock);
    if (m_progress.state == std::string_view("running")) {
      m_progress.state = "stopped";
    }
  }
  dump_status(formatter);
  return 0;
}

void OnlineFsck::end_worker() {
  m_worker.reset();  // waits for its step
  m_fsck.reset();
}

vtkv::NextStep OnlineFsck::step() {
  if (!m_fsck) {
    return vtkv::NextStep::on_event();
  }
  const bool more = m_fsck->step(work_per_step());
  {
    std::lock_guard lock(m_lock);
    m_progress.phase = m_fsck->phase();
    m_progress.objects_read = m_fsck->objects_read();
    m_progress.result = m_fsck->result();
    m_progress.state = more ? "running" : "done";
  }
  if (!more) {
    m_fsck.reset();
    return vtkv::NextStep::on_event();
  }
  return vtkv::NextStep::later(kStepInterval);
}

uint64_t OnlineFsck::work_per_step() const {
  const double rate = m_store.cct->_conf.get_val<double>("swimstore_fsck_online_rate");
  return std::max<uint64_t>(1, static_cast<uint64_t>(rate * std::chrono::duration<double>(kStepInterval).count()));
}

void OnlineFsck::dump_status(ceph::Formatter* formatter) const {
  std::lock_guard lock(m_lock);
  formatter->open_object_section("fsck");
  formatter->dump_string("state", m_progress.state);
  formatter->dump_string("phase", m_progress.phase);
  formatter->dump_bool("deep", m_progress.deep);
  formatter->dump_unsigned("objects", m_progress.result.objects);
  formatter->dump_unsigned("objects_read", m_progress.objects_read);
  formatter->dump_unsigned("slots", m_progress.result.slots);
  formatter->dump_unsigned("unclear", m_progress.result.unclear);
  formatter->dump_unsigned("lost_entries", m_progress.result.lost_entries);
  formatter->dump_unsigned("errors", m_progress.result.errors);
  formatter->open_array_section("findings");
  for (const Finding& finding : m_progress.result.findings) {
    formatter->open_object_section("finding");
    formatter->dump_string("class", std::string(to_string(finding.kind)));
    formatter->dump_unsigned("cube", finding.cube);
    formatter->dump_string("object", finding.object);
    if (finding.offset) {
      formatter->dump_unsigned("offset", *finding.offset);
    }
    formatter->dump_string("repair", std::string(repair_of(finding.kind)));
    formatter->dump_string("text", vtkv::to_utf8(finding.text));
    formatter->close_section();
  }
  formatter->close_section();
  formatter->close_section();
}

std::string OnlineFsck::alert() const {
  std::lock_guard lock(m_lock);
  const CheckResult& result = m_progress.result;
  if (result.errors == 0) {
    return {};
  }
  return fmt::format("fsck found {} errors, the first: {}. See 'swimstore fsck status' of the OSD", result.errors,
                     result.findings.front().text);
}

}  // namespace swimstore
