// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/admin/online_defragment.h"

#include <algorithm>
#include <chrono>

#include "common/Formatter.h"
#include "common/ceph_context.h"
#include "common/cmdparse.h"
#include "common/debug.h"
#include "swimstore/admin/admin_commands.h"
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

}  // namespace

OnlineDefragment::OnlineDefragment(StoreContext& store, TransactionPipeline& pipeline)
    : m_store(store), m_pipeline(pipeline) {
  AdminSocket* const socket = store.cct->get_admin_socket();
  socket->register_command("swimstore defragment name=dry_run,type=CephBool,req=false", this,
                           "put objects' data together that lies in many pieces, in the background; dry_run: only "
                           "measure");
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
    bool only_measure = false;
    ceph::common::cmd_getval(arguments, "dry_run", only_measure);
    if (const int r = start(only_measure, formatter, errors, output); r < 0) {
      return r;
    }
  } else if (command == "swimstore defragment stop") {
    vtkv::MutexLock lock(m_command_lock);
    stop();
  }
  dump_status(formatter);
  return 0;
}

int OnlineDefragment::start(bool only_measure, ceph::Formatter* formatter, std::ostream& errors,
                            ceph::bufferlist& output) {
  vtkv::MutexLock lock(m_command_lock);
  if (!m_is_allowed) {
    return fail_command(-EBUSY, "the store is being mounted or unmounted", formatter, errors, output);
  }
  {
    vtkv::MutexLock state_lock(m_lock);
    if (m_state == std::string_view("running")) {
      return fail_command(-EBUSY,
                          "a defragmentation is under way: see swimstore defragment status, or end it with swimstore "
                          "defragment stop",
                          formatter, errors, output);
    }
    m_state = "running";
    m_error.clear();
    m_dry_run = only_measure;
    m_counts = {};
  }
  end_worker();
  m_owed_bytes = 0;
  m_paid_us = m_store.env->now_us();
  m_defragmenter = std::make_unique<DataDefragmenter>(
      m_store, m_pipeline, DataDefragmentOptions{.only_measure = only_measure, .between = {}});
  dout(1) << (only_measure ? "begins to measure" : "begins") << dendl;
  m_worker = m_store.env->start_worker("defragment", 0, [this](vtkv::IoQueue&) { return step(); });
  return 0;
}

void OnlineDefragment::stop() {
  end_worker();
  vtkv::MutexLock lock(m_lock);
  if (m_state == std::string_view("running")) {
    m_state = "stopped";
    dout(1) << "stopped, " << m_counts.moved_bytes << " bytes were moved" << dendl;
  }
}

void OnlineDefragment::end_worker() {
  m_worker.reset();  // waits for its step
  m_defragmenter.reset();
}

uint64_t OnlineDefragment::rate() const {
  const uint64_t asked = m_store.cct->_conf.get_val<Option::size_t>("swimstore_defragment_rate");
  return asked > 0 ? std::max(asked, kRateMin) : m_is_rotational ? kRateOfRotational : kRate;
}

// What was done is paid for behind it.
vtkv::NextStep OnlineDefragment::step() {
  if (!m_defragmenter) {
    return vtkv::NextStep::on_event();
  }
  const uint64_t now_us = m_store.env->now_us();
  const auto bytes_per_us = static_cast<double>(rate()) / 1e6;
  m_owed_bytes -= static_cast<double>(now_us - m_paid_us) * bytes_per_us;
  m_paid_us = now_us;
  if (m_owed_bytes <= 0) {
    m_owed_bytes = 0;
    if (go_on()) {
      m_defragmenter.reset();
      return vtkv::NextStep::on_event();
    }
  }
  const auto pause = std::chrono::microseconds(static_cast<int64_t>(m_owed_bytes / bytes_per_us));
  return vtkv::NextStep::later(std::clamp(pause, kStepInterval, kPauseMax));
}

bool OnlineDefragment::go_on() {
  const uint64_t begun_us = m_store.env->now_us();
  const double budget = static_cast<double>(rate()) * std::chrono::duration<double>(kStepInterval).count();
  DataDefragmenter::Outcome outcome{};
  do {
    uint64_t cost = 0;
    outcome = m_defragmenter->step(&cost);
    m_owed_bytes += static_cast<double>(cost);
  } while (outcome == DataDefragmenter::Outcome::more && m_owed_bytes < budget &&
           m_store.env->now_us() - begun_us < static_cast<uint64_t>(kStepInterval.count()));
  vtkv::MutexLock lock(m_lock);
  m_counts = m_defragmenter->counts();
  if (outcome == DataDefragmenter::Outcome::failed) {
    m_state = "failed";
    m_error = m_defragmenter->error();
    derr << m_error << dendl;
  } else if (outcome == DataDefragmenter::Outcome::done) {
    m_state = "done";
    dout(1) << "done: of " << m_counts.objects << " objects " << m_counts.fragmented_bytes << " bytes lay in "
            << m_counts.pieces << " pieces, " << m_counts.moved_bytes << " bytes were moved" << dendl;
  } else {
    return false;
  }
  return true;
}

void OnlineDefragment::dump_status(ceph::Formatter* formatter) const {
  vtkv::MutexLock lock(m_lock);
  formatter->open_object_section("defragment");
  formatter->dump_string("state", m_state);
  if (!m_error.empty()) {
    formatter->dump_string("error", vtkv::to_utf8(m_error));
  }
  formatter->dump_bool("dry_run", m_dry_run);
  formatter->dump_unsigned("objects", m_counts.objects);
  formatter->dump_unsigned("fragmented_bytes", m_counts.fragmented_bytes);
  formatter->dump_unsigned("pieces", m_counts.pieces);
  formatter->dump_unsigned("moved_bytes", m_counts.moved_bytes);
  formatter->dump_unsigned("moved_pieces_before", m_counts.moved_pieces_before);
  formatter->dump_unsigned("moved_pieces_after", m_counts.moved_pieces_after);
  formatter->dump_unsigned("changed_ranges", m_counts.changed_ranges);
  formatter->dump_unsigned("unreadable_ranges", m_counts.unreadable_ranges);
  formatter->dump_unsigned("unplaced_ranges", m_counts.unplaced_ranges);
  formatter->close_section();
}

}  // namespace swimstore
