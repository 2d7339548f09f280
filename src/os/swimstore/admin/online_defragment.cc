// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/admin/online_defragment.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "common/Formatter.h"
#include "common/ceph_context.h"
#include "common/cmdparse.h"
#include "common/debug.h"
#include "swimstore/admin/admin_commands.h"
#include "swimstore/defragment/data_defragmenter.h"
#include "swimstore/defragment/metadata_defragmenter.h"
#include "swimstore/transaction/transaction_pipeline.h"
#include "vtkv/util/utf8.h"

#define dout_context m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.defragment "

namespace swimstore {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::microseconds kStepInterval = 10ms;
constexpr std::chrono::microseconds kPauseMax = 200ms;  // so that a change of the rate is seen soon
constexpr uint64_t kRate = 32u << 20;
constexpr uint64_t kRateOfRotational = 4u << 20;
constexpr uint64_t kRateMin = 64u << 10;
constexpr double kProgressMin = 0.01;  // below it nothing is said of what is left

}  // namespace

OnlineDefragment::OnlineDefragment(StoreContext& store, TransactionPipeline& pipeline)
    : m_store(store), m_pipeline(pipeline) {
  AdminSocket* const socket = store.cct->get_admin_socket();
  socket->register_command(
      "swimstore defragment name=dry_run,type=CephBool,req=false,positional=false "
      "name=metadata,type=CephBool,req=false,positional=false "
      "name=pool,type=CephInt,req=false,range=0,positional=false",
      this,
      "put objects' data together that lies in many pieces, in the background: of all, or of one pool; metadata: the "
      "trees instead; dry_run: only measure");
  socket->register_command("swimstore defragment status", this, "show how far it is, and what it has done");
  socket->register_command("swimstore defragment stop", this, "end it early");
}

OnlineDefragment::~OnlineDefragment() {
  m_store.cct->get_admin_socket()->unregister_commands(this);
  end();
}

void OnlineDefragment::allow(bool is_rotational) {
  vtkv::MutexLock lock(m_command_lock);
  m_is_rotational = is_rotational;
  m_is_allowed = true;
}

void OnlineDefragment::end() {
  vtkv::MutexLock lock(m_command_lock);
  m_is_allowed = false;
  stop();
}

int OnlineDefragment::call(std::string_view command, const cmdmap_t& arguments, const ceph::bufferlist&,
                           ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output) {
  if (command == "swimstore defragment") {
    Asked asked;
    ceph::common::cmd_getval(arguments, "dry_run", asked.only_measure);
    ceph::common::cmd_getval(arguments, "metadata", asked.metadata);
    if (int64_t pool = 0; ceph::common::cmd_getval(arguments, "pool", pool)) {
      asked.pool = pool;
    }
    if (const int r = start(asked, formatter, errors, output); r < 0) {
      return r;
    }
  } else if (command == "swimstore defragment stop") {
    vtkv::MutexLock lock(m_command_lock);
    stop();
  }
  dump_status(formatter);
  return 0;
}

int OnlineDefragment::start(const Asked& asked, ceph::Formatter* formatter, std::ostream& errors,
                            ceph::bufferlist& output) {
  vtkv::MutexLock lock(m_command_lock);
  if (!m_is_allowed) {
    return fail_command(-EBUSY, "the store is being mounted or unmounted", formatter, errors, output);
  }
  if (asked.metadata && asked.pool) {
    return fail_command(-EINVAL, "a tree holds the metadata of all pools: leave out pool, or metadata", formatter,
                        errors, output);
  }
  if (asked.pool && !DataDefragmenter::has_pool(m_store, *asked.pool)) {
    return fail_command(-ENOENT,
                        fmt::format("this OSD has no placement group of pool {0}: 'ceph osd lspools' has the numbers; "
                                    "if {0} is right, there is nothing of it to do here",
                                    *asked.pool),
                        formatter, errors, output);
  }
  {
    vtkv::MutexLock state_lock(m_lock);
    if (m_state == std::string_view("running")) {
      return fail_command(-EBUSY,
                          "a defragmentation is under way: see swimstore defragment status, or end it with swimstore "
                          "defragment stop",
                          formatter, errors, output);
    }
  }
  end_worker();
  m_owed_bytes = 0;
  m_paid_us = m_store.env->now_us();
  m_pass = new_pass(asked);
  {
    vtkv::MutexLock state_lock(m_lock);
    m_state = "running";
    m_error.clear();
    m_asked = asked;
    m_begun_us = m_paid_us;
    m_ended_us = m_cost = 0;
    note_progress();
  }
  dout(1) << (asked.only_measure ? "begins to measure" : "begins") << (asked.metadata ? ", of the trees" : "") << dendl;
  m_worker = m_store.env->start_worker("defragment", 0, [this](vtkv::IoQueue&) { return step(); });
  return 0;
}

std::unique_ptr<DefragmentPass> OnlineDefragment::new_pass(const Asked& asked) {
  if (asked.metadata) {
    return std::make_unique<MetadataDefragmenter>(m_store, asked.only_measure, [this] { return rate(); });
  }
  return std::make_unique<DataDefragmenter>(
      m_store, m_pipeline,
      DataDefragmentOptions{.only_measure = asked.only_measure, .pool = asked.pool, .between = {}});
}

void OnlineDefragment::note_progress() {
  m_fields = m_pass->fields();
  m_progress = m_pass->progress();
  m_cost_of_found = m_pass->cost_of_found();
}

std::string OnlineDefragment::describe_fields() const {
  std::string text;
  for (const auto& [name, value] : m_fields) {
    text += fmt::format(" {} {}", name, value);
  }
  return text;
}

void OnlineDefragment::stop() {
  end_worker();
  vtkv::MutexLock lock(m_lock);
  if (m_state == std::string_view("running")) {
    m_state = "stopped";
    m_ended_us = m_store.env->now_us();
    dout(1) << "stopped:" << describe_fields() << dendl;
  }
}

void OnlineDefragment::end_worker() {
  m_worker.reset();  // waits for its step
  m_pass.reset();
}

uint64_t OnlineDefragment::rate() const {
  const uint64_t asked = m_store.cct->_conf.get_val<Option::size_t>("swimstore_defragment_rate");
  return asked > 0 ? std::max(asked, kRateMin) : m_is_rotational ? kRateOfRotational : kRate;
}

// What was done is paid for behind it.
vtkv::NextStep OnlineDefragment::step() {
  if (!m_pass) {
    return vtkv::NextStep::on_event();
  }
  const uint64_t now_us = m_store.env->now_us();
  const auto bytes_per_us = static_cast<double>(rate()) / 1e6;
  m_owed_bytes -= static_cast<double>(now_us - m_paid_us) * bytes_per_us;
  m_paid_us = now_us;
  if (m_owed_bytes <= 0) {
    m_owed_bytes = 0;
    const Outcome outcome = go_on();
    if (outcome == Outcome::done || outcome == Outcome::failed) {
      m_pass.reset();
      return vtkv::NextStep::on_event();
    }
    if (outcome == Outcome::later) {
      return vtkv::NextStep::later(kPauseMax);
    }
  }
  const auto pause = std::chrono::microseconds(static_cast<int64_t>(m_owed_bytes / bytes_per_us));
  return vtkv::NextStep::later(std::clamp(pause, kStepInterval, kPauseMax));
}

OnlineDefragment::Outcome OnlineDefragment::go_on() {
  const uint64_t begun_us = m_store.env->now_us();
  const double budget = static_cast<double>(rate()) * std::chrono::duration<double>(kStepInterval).count();
  Outcome outcome{};
  uint64_t all_cost = 0;
  do {
    uint64_t cost = 0;
    outcome = m_pass->step(&cost);
    all_cost += cost;
    m_owed_bytes += static_cast<double>(cost);
  } while (outcome == Outcome::more && m_owed_bytes < budget &&
           m_store.env->now_us() - begun_us < static_cast<uint64_t>(kStepInterval.count()));
  vtkv::MutexLock lock(m_lock);
  note_progress();
  m_cost += all_cost;
  if (outcome == Outcome::failed) {
    m_state = "failed";
    m_error = m_pass->error();
    derr << m_error << dendl;
  } else if (outcome == Outcome::done) {
    m_state = "done";
    dout(1) << "done:" << describe_fields() << dendl;
  }
  if (outcome == Outcome::failed || outcome == Outcome::done) {
    m_ended_us = m_store.env->now_us();
  }
  return outcome;
}

void OnlineDefragment::dump_status(ceph::Formatter* formatter) const {
  vtkv::MutexLock lock(m_lock);
  formatter->open_object_section("defragment");
  formatter->dump_string("state", m_state);
  if (!m_error.empty()) {
    formatter->dump_string("error", vtkv::to_utf8(m_error));
  }
  formatter->dump_bool("dry_run", m_asked.only_measure);
  formatter->dump_bool("metadata", m_asked.metadata);
  if (m_asked.pool) {
    formatter->dump_int("pool", *m_asked.pool);
  }
  for (const auto& [name, value] : m_fields) {
    formatter->dump_unsigned(name, value);
  }
  if (m_begun_us > 0) {
    const uint64_t taken_us = (m_ended_us > 0 ? m_ended_us : m_store.env->now_us()) - m_begun_us;
    formatter->dump_unsigned("seconds", taken_us / 1'000'000);
    if (m_ended_us == 0 && m_progress >= kProgressMin) {
      formatter->dump_unsigned("seconds_left",
                               static_cast<uint64_t>(static_cast<double>(taken_us) * (1 / m_progress - 1) / 1e6));
    }
    if (m_asked.only_measure && m_state == std::string_view("done")) {
      formatter->dump_unsigned("seconds_to_move", (m_cost + m_cost_of_found) / rate());
    }
  }
  formatter->close_section();
}

}  // namespace swimstore
