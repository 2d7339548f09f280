// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/defragment/metadata_defragmenter.h"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace swimstore {

using vtkv::DefragmentReport;
using vtkv::Status;

namespace {

// So that the database's rate is even, and a pass that is stopped ends soon.
constexpr uint64_t kStepsPerSecond = 2;
constexpr uint64_t kStepBytesMin = 64u << 10, kStepBytesMax = 16u << 20;

std::string remedy(const Status& status) {
  return status.is_no_space() ? ". Make room on the file system of log and tree, and begin again"
         : is_damage(status)  ? ". Run 'swimstore verify' to see what is damaged"
                              : "";
}

}  // namespace

MetadataDefragmenter::MetadataDefragmenter(StoreContext& store, bool only_measure,
                                           std::function<uint64_t()> bytes_per_second)
    : m_store(store),
      m_only_measure(only_measure),
      m_bytes_per_second(std::move(bytes_per_second)),
      m_weights(store.cubes.size(), 0) {
  for (unsigned cube = 0; cube < store.cubes.size(); cube = store.cubes.next(cube)) {
    m_weights[cube] = 1 + store.cubes[cube].database().statistics().tree_live_bytes;
  }
}

MetadataDefragmenter::~MetadataDefragmenter() {
  if (m_stage != Stage::next_cube) {
    database().stop_defragment();
  }
}

DefragmentReport MetadataDefragmenter::sum() const {
  DefragmentReport sum = m_done;
  for (const auto member :
       {&DefragmentReport::chosen_zones, &DefragmentReport::chosen_bytes, &DefragmentReport::unused_bytes,
        &DefragmentReport::fragments, &DefragmentReport::moved_bytes, &DefragmentReport::written_bytes}) {
    sum.*member += m_current.*member;
  }
  return sum;
}

DefragmentPass::Outcome MetadataDefragmenter::step(uint64_t* cost) {
  *cost = 0;
  Status status = m_stage == Stage::next_cube ? begin(Stage::measuring) : Status();
  if (status.ok()) {
    const DefragmentReport report = database().defragment_report();
    const bool has_chosen = report.chosen_zones > 0 || (!report.is_running && report.error.ok());
    m_current = has_chosen ? report : m_current;  // else what was measured still holds
    if (report.is_running) {
      return Outcome::later;
    }
    status = end_stage(report.error);
  }
  if (status.ok() && m_stage != Stage::next_cube) {
    return Outcome::more;
  }
  end_cube(status);
  if (m_cube < m_store.cubes.size()) {
    return Outcome::more;
  }
  return m_error.empty() ? Outcome::done : Outcome::failed;
}

Status MetadataDefragmenter::begin(Stage stage) {
  const uint64_t rate = m_bytes_per_second();
  VTKV_RETURN_IF_ERROR(
      database().begin_defragment({.bytes_per_step = std::clamp(rate / kStepsPerSecond, kStepBytesMin, kStepBytesMax),
                                   .bytes_per_second = rate,
                                   .only_measure = stage == Stage::measuring}));
  m_stage = stage;
  return {};
}

Status MetadataDefragmenter::end_stage(const Status& status) {
  const bool has_measured = std::exchange(m_stage, Stage::next_cube) == Stage::measuring;
  VTKV_RETURN_IF_ERROR(status);
  if (has_measured && !m_only_measure && m_current.chosen_zones > 0) {
    VTKV_RETURN_IF_ERROR(check_room());
    return begin(Stage::moving);
  }
  return {};
}

Status MetadataDefragmenter::check_room() {
  uint64_t room = 0;
  VTKV_RETURN_IF_ERROR(m_store.cubes[m_cube].cube.database_room(&room));
  return room >= m_current.chosen_bytes
             ? Status()
             : Status::make(Status::Code::no_space,
                            fmt::format("what its zones hold takes {} bytes more until they are empty, and there is "
                                        "room for {} beside the reserve (swimstore_reserve_size)",
                                        m_current.chosen_bytes, room),
                            ENOSPC);
}

void MetadataDefragmenter::end_cube(const Status& status) {
  if (!status.ok() && m_error.empty()) {
    m_error = fmt::format("the tree of cube {} is not defragmented: {}{}", m_cube, status.message(), remedy(status));
  }
  m_cubes_done += status.ok() ? 1 : 0;
  m_done = sum();
  m_current = {};
  m_weight_done += m_weights[m_cube];
  m_cube = m_store.cubes.next(m_cube);
}

std::vector<DefragmentPass::Field> MetadataDefragmenter::fields() const {
  const DefragmentReport all = sum();
  return {{"cubes", m_store.cubes.set().size() - m_store.cubes.set().missing().size()},
          {"cubes_done", m_cubes_done},
          {"zones", all.chosen_zones},
          {"zones_used_bytes", all.chosen_bytes},
          {"zones_unused_bytes", all.unused_bytes},
          {"fragments", all.fragments},
          {"moved_bytes", all.moved_bytes},
          {"written_bytes", all.written_bytes}};
}

double MetadataDefragmenter::progress() const {
  double done = static_cast<double>(m_weight_done);
  if (m_stage == Stage::moving && m_current.chosen_bytes > 0) {
    done += static_cast<double>(m_weights[m_cube]) *
            std::min(1.0, static_cast<double>(m_current.moved_bytes) / static_cast<double>(m_current.chosen_bytes));
  }
  return done / static_cast<double>(std::accumulate(m_weights.begin(), m_weights.end(), uint64_t{0}));
}

}  // namespace swimstore
