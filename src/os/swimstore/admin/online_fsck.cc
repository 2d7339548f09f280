// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/admin/online_fsck.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "common/Formatter.h"
#include "common/ceph_context.h"
#include "common/cmdparse.h"
#include "swimstore/admin/admin_commands.h"
#include "vtkv/util/utf8.h"

namespace swimstore {

namespace {

using namespace std::chrono_literals;

// Short, so that no request waits for long behind a step; of data, no shorter than what one read of it is worth.
constexpr auto kStepInterval = 10ms;
constexpr auto kDataStepInterval = 100ms;
constexpr uint64_t kMemoryTargetDivisor = 16;

double per_second(const StoreContext& store, bool of_data) {
  const char* const name = of_data ? "swimstore_fsck_online_data_rate" : "swimstore_fsck_online_rate";
  return std::max(store.cct->_conf.get_val<double>(name), 1.0);
}

}  // namespace

OnlineFsck::OnlineFsck(StoreContext& store) : m_store(store) {
  AdminSocket* const socket = store.cct->get_admin_socket();
  socket->register_command("swimstore fsck name=deep,type=CephBool,req=false name=cube,type=CephInt,req=false", this,
                           "check the store in the background; deep: read all data, too");
  socket->register_command("swimstore fsck status", this, "show how far the check is, and what it found");
  socket->register_command("swimstore fsck stop", this, "end the check early");
}

OnlineFsck::~OnlineFsck() {
  m_store.cct->get_admin_socket()->unregister_commands(this);
  vtkv::MutexLock lock(m_command_lock);
  end_worker();
}

int OnlineFsck::call(std::string_view command, const cmdmap_t& arguments, const ceph::bufferlist&,
                     ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output) {
  vtkv::MutexLock lock(m_command_lock);
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
  unsigned first = 0, end = m_store.cubes.size();
  ceph::common::cmd_getval(arguments, "deep", deep);
  if (ceph::common::cmd_getval(arguments, "cube", cube)) {
    if (cube < 0 || cube >= end) {
      return fail_command(-EINVAL, fmt::format("there is no cube {}: this store has cubes 0 to {}", cube, end - 1),
                          formatter, errors, output);
    }
    first = static_cast<unsigned>(cube);
    end = first + 1;
    if (!m_store.cubes.has(first)) {
      return fail_command(-ENOENT, fmt::format("cube {} is abandoned: see swimstore status", cube), formatter, errors,
                          output);
    }
  }
  {
    vtkv::MutexLock lock(m_lock);
    if (m_progress.state == std::string_view("running")) {
      return fail_command(-EBUSY, "a check is under way: see swimstore fsck status", formatter, errors, output);
    }
  }
  const Estimate expected = estimate(deep, first, end);
  if (expected.passes > kFsckPassesMax) {
    return fail_command(
        -EINVAL,
        fmt::format(
            "a check of {} objects and {} slots would go over the tree {} times with the {} bytes of memory that "
            "it may take (swimstore_fsck_online_memory, or a sixteenth of osd_memory_target); at most {} times "
            "are sensible: allow it {} bytes, or stop the OSD and run ceph-swimstore-tool fsck",
            expected.objects, expected.slots, expected.passes, expected.memory_limit_bytes, kFsckPassesMax,
            expected.largest_cube.limit_for(kFsckPassesMax / 2)),
        formatter, errors, output);
  }
  end_worker();
  {
    vtkv::MutexLock lock(m_lock);
    begin(deep, first, end, expected);
  }
  m_worker = m_store.env->start_worker("fsck", 0, [this](vtkv::IoQueue&) { return step(); });
  dump_status(formatter);
  return 0;
}

void OnlineFsck::begin(bool deep, unsigned first, unsigned end, const Estimate& expected) {
  m_progress = Progress{.state = "running", .deep = deep, .end = end, .estimate = expected};
  begin_cube(first);
}

void OnlineFsck::begin_cube(unsigned cube) {
  const FsckOptions options{
      .deep = m_progress.deep, .online = true, .passes = static_cast<unsigned>(m_progress.estimate.passes)};
  m_fsck = std::make_unique<Fsck>(m_store, m_store.cubes[cube], options);
  m_progress.cube = cube;
  m_progress.phase = m_fsck->phase();
}

void OnlineFsck::begin_anew() {
  m_progress.result = m_progress.before;
  m_progress.result += m_fsck->result();
  keep_result(false);
  Estimate expected = m_progress.estimate;
  expected.passes = more_passes(expected.passes);
  if (expected.passes > m_progress.estimate.passes) {
    expected.seconds = expected.seconds * expected.passes / m_progress.estimate.passes;
    m_progress.estimate = expected;
    begin_cube(m_progress.cube);
    return;
  }
  m_fsck.reset();
  m_progress.state = "failed";
  m_progress.error = fmt::format(
      "more than {} passes would be needed with the {} bytes of memory that it may take "
      "(swimstore_fsck_online_memory, or a sixteenth of osd_memory_target): allow it more, or "
      "stop the OSD and run ceph-swimstore-tool fsck",
      kFsckPassesMax, expected.memory_limit_bytes);
}

void OnlineFsck::keep_result(bool to_its_end) {
  const CheckResult& all = m_progress.result;
  const CheckResult& before = m_progress.before;
  if (all.errors > before.errors) {
    CheckResult found;
    found.errors = all.errors - before.errors;
    found.findings.assign(all.findings.begin() + static_cast<ptrdiff_t>(before.findings.size()), all.findings.end());
    (m_progress.deep ? m_found_deep : m_found_shallow)[m_progress.cube] = std::move(found);
  } else if (to_its_end) {
    m_found_shallow.erase(m_progress.cube);
    if (m_progress.deep) {
      m_found_deep.erase(m_progress.cube);
    }
  }
}

int OnlineFsck::stop(ceph::Formatter* formatter) {
  end_worker();
  {
    vtkv::MutexLock lock(m_lock);
    if (m_progress.state == std::string_view("running")) {
      m_progress.state = "stopped";
      keep_result(false);
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
  const std::chrono::microseconds interval = m_fsck->reads_data() ? kDataStepInterval : kStepInterval;
  const double rate = per_second(m_store, m_fsck->reads_data());
  const double work = rate * std::chrono::duration<double>(interval).count();
  const uint64_t before = m_fsck->work_done();
  const bool more = m_fsck->step(static_cast<uint64_t>(std::max(1.0, work)));
  const double seconds = static_cast<double>(m_fsck->work_done() - before) / rate;
  {
    vtkv::MutexLock lock(m_lock);
    if (more && m_fsck->memory_bytes() > m_progress.estimate.memory_limit_bytes) {
      begin_anew();
      return vtkv::NextStep::later(interval);
    }
    m_progress.phase = m_fsck->phase();
    m_progress.pass = m_fsck->pass();
    m_progress.objects_read = m_fsck->objects_read();
    note_result();
    if (const unsigned next = m_store.cubes.next(m_progress.cube); !more && next < m_progress.end) {
      keep_result(true);
      m_progress.before = m_progress.result;
      begin_cube(next);
      return vtkv::NextStep::later(interval);
    }
    m_progress.state = more ? "running" : "done";
    if (!more) {
      keep_result(true);
    }
  }
  if (!more) {
    m_fsck.reset();
    return vtkv::NextStep::on_event();
  }
  return vtkv::NextStep::later(std::max(interval, std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6))));
}

// Findings are copied only when there are more.
void OnlineFsck::note_result() {
  const CheckResult now = m_fsck->counts();
  if (m_progress.before.errors + now.errors != m_progress.result.errors) {
    m_progress.result = m_progress.before;
    m_progress.result += now;
    m_progress.result.findings.insert(m_progress.result.findings.end(), m_fsck->findings().begin(),
                                      m_fsck->findings().end());
    return;
  }
  m_progress.result.objects = m_progress.before.objects + now.objects;
  m_progress.result.slots = m_progress.before.slots + now.slots;
  m_progress.result.unclear = m_progress.before.unclear + now.unclear;
  m_progress.result.quarantined_entries = m_progress.before.quarantined_entries + now.quarantined_entries;
}

OnlineFsck::Estimate OnlineFsck::estimate(bool deep, unsigned first, unsigned end) const {
  Estimate result;
  int64_t allocated = 0;
  for (unsigned number = first; number < end; number = m_store.cubes.next(number)) {
    StoreCube& cube = m_store.cubes[number];
    for (const auto& [pool, usage] : cube.cube.pool_usage()) {
      allocated += usage.allocated;
    }
    const CheckMemory memory = memory_of_check(cube.cube);
    result.objects += memory.objects;
    result.slots += memory.slots;
    result.entries += std::max(memory.objects, cube.database().statistics().tree_entries);
    result.largest_cube = memory.bytes > result.largest_cube.bytes ? memory : result.largest_cube;
  }
  result.data_blocks = deep ? static_cast<uint64_t>(std::max<int64_t>(allocated, 0)) / kBlockBytes : 0;
  result.memory_limit_bytes = check_memory_limit(*m_store.cct, "swimstore_fsck_online_memory", kMemoryTargetDivisor);
  result.passes = result.largest_cube.passes_for(result.memory_limit_bytes);
  result.memory_bytes = result.largest_cube.bytes / result.passes;
  const double tree = static_cast<double>(result.entries * result.passes) / per_second(m_store, false);
  const uint64_t reads = deep ? result.objects : 0;
  const double data = static_cast<double>(result.data_blocks + reads * kReadBlocks) / per_second(m_store, true);
  result.seconds = static_cast<uint64_t>(tree + data) + 1;
  return result;
}

void OnlineFsck::dump_status(ceph::Formatter* formatter) const {
  vtkv::MutexLock lock(m_lock);
  formatter->open_object_section("fsck");
  formatter->dump_string("state", m_progress.state);
  formatter->dump_string("phase", m_progress.phase);
  formatter->dump_bool("deep", m_progress.deep);
  if (!m_progress.error.empty()) {
    formatter->dump_string("error", m_progress.error);
  }
  const Estimate& expected = m_progress.estimate;
  formatter->dump_unsigned("cube", m_progress.cube);
  formatter->dump_unsigned("pass", m_progress.pass + 1);
  formatter->open_object_section("estimate");
  formatter->dump_unsigned("seconds", expected.seconds);
  formatter->dump_unsigned("memory_bytes", expected.memory_bytes);
  formatter->dump_unsigned("passes", expected.passes);
  formatter->dump_unsigned("objects", expected.objects);
  formatter->dump_unsigned("slots", expected.slots);
  formatter->dump_unsigned("entries", expected.entries);
  formatter->dump_unsigned("data_blocks", expected.data_blocks);
  formatter->close_section();
  formatter->dump_unsigned("objects", m_progress.result.objects);
  formatter->dump_unsigned("objects_read", m_progress.objects_read);
  formatter->dump_unsigned("slots", m_progress.result.slots);
  formatter->dump_unsigned("unclear", m_progress.result.unclear);
  formatter->dump_unsigned("quarantined_entries", m_progress.result.quarantined_entries);
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
  vtkv::MutexLock lock(m_lock);
  uint64_t errors = 0;
  const Finding* first = nullptr;
  bool of_data = false, of_metadata = false;
  const auto add = [&](const CheckResult& found) {
    errors += found.errors;
    first = first == nullptr && !found.findings.empty() ? &found.findings.front() : first;
    for (const Finding& finding : found.findings) {
      (finding.kind == FindingClass::data_unreadable ? of_data : of_metadata) = true;
    }
  };
  for (const auto& [cube, found] : m_found_deep) {
    add(found);
  }
  for (const auto& [cube, found] : m_found_shallow) {
    if (!m_found_deep.contains(cube)) {
      add(found);
    }
  }
  if (errors == 0) {
    add(m_progress.result);  // of a check under way
  }
  if (first == nullptr) {
    return {};
  }
  return fmt::format("fsck found {} errors, the first: {}. See 'swimstore fsck status' of the OSD.{}{}", errors,
                     first->text,
                     of_data ? " Unreadable data: 'ceph pg repair' its placement group, the OSD stays up." : "",
                     of_metadata ? " Metadata: stop the OSD, run 'ceph-swimstore-tool fsck', then 'repair'." : "");
}

}  // namespace swimstore
