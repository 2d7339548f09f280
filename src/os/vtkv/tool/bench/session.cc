// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/bench/session.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "vtkv/tool/bench/runner.h"

namespace vtkv::bench {

namespace {

constexpr double kWarmUpSecondsMax = 1;
constexpr uint64_t kStatBlockBytes = 512;

}  // namespace

Session::Session(std::string directory, EngineSpec spec, const LoadSettings& load, size_t memory_bytes, bool sync)
    : m_directory(std::move(directory)),
      m_spec(std::move(spec)),
      m_load(load),
      m_memory_bytes(memory_bytes),
      m_sync(sync),
      m_values(load.value_bytes, load.seed) {}

Session::~Session() {
  std::error_code ignored;
  std::filesystem::remove_all(m_directory, ignored);
}

Status Session::open(bool sync, std::unique_ptr<Engine>* engine) const {
  EngineSettings settings;
  settings.path = m_directory;
  settings.memory_bytes = m_memory_bytes;
  settings.value_bytes = m_load.value_bytes;
  settings.data_bytes = m_load.keys * (kKeyBytes + m_load.value_bytes);
  settings.sync = sync;
  settings.threads = m_load.threads;
  return open_engine(m_spec, settings, engine);
}

Status Session::start_anew() {
  std::error_code error;
  std::filesystem::remove_all(m_directory, error);
  std::filesystem::create_directories(m_directory, error);
  if (error) {
    return Status::from_errno(error.value(), m_directory + ": cannot be made");
  }
  m_state = DataState{.version = m_state.version};
  return {};
}

Status Session::fill() {
  const WorkloadKind* kind = find_workload("fillrandom");
  VTKV_RETURN_IF_ERROR(start_anew());
  std::unique_ptr<Engine> engine;
  VTKV_RETURN_IF_ERROR(open(false, &engine));
  const LoadContext context{*engine, m_load, m_state, m_values};
  Plan plan;
  VTKV_RETURN_IF_ERROR(kind->plan(context, &plan));
  Result ignored;
  VTKV_RETURN_IF_ERROR(
      run_plan(plan, *engine, m_load.threads, m_directory, m_spec.label + " (filling)", 0, true, &ignored));
  m_state.keys = m_load.keys;
  m_state.whole = true;
  return {};
}

uint64_t Session::allocated_bytes() const {
  uint64_t bytes = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(m_directory, ignored)) {
    struct stat st;
    if (::lstat(entry.path().c_str(), &st) == 0) {
      bytes += static_cast<uint64_t>(st.st_blocks) * kStatBlockBytes;
    }
  }
  return bytes;
}

Status Session::run(const WorkloadKind& kind, Result* result) {
  if (kind.needs == WorkloadKind::Needs::empty) {
    VTKV_RETURN_IF_ERROR(start_anew());
  } else if (!m_state.whole) {
    VTKV_RETURN_IF_ERROR(fill());
  }
  ++m_state.version;
  const bool sync = m_sync || kind.always_synced;
  std::unique_ptr<Engine> engine;
  VTKV_RETURN_IF_ERROR(open(sync, &engine));
  const LoadContext context{*engine, m_load, m_state, m_values};
  Plan plan;
  VTKV_RETURN_IF_ERROR(kind.plan(context, &plan));

  result->engine = m_spec.label;
  result->workload = kind.name;
  result->value_bytes = m_load.value_bytes;
  result->memory_bytes = m_memory_bytes;
  result->threads = m_load.threads;
  result->sync = sync;
  const std::string label = fmt::format("{} {} {} B", m_spec.label, kind.name, m_load.value_bytes);
  const double warm_up = kind.warm_up ? std::min(kWarmUpSecondsMax, m_load.seconds) : 0;
  m_state.whole = false;  // until the workload has ended well
  VTKV_RETURN_IF_ERROR(run_plan(plan, *engine, m_load.threads, m_directory, label, warm_up, kind.writes, result));
  if (kind.needs == WorkloadKind::Needs::empty) {
    m_state.keys = m_load.keys;
  }
  m_state.whole = kind.whole_after;
  result->keys = m_state.keys;

  const double live =
      static_cast<double>(m_state.keys + m_state.extra) * static_cast<double>(kKeyBytes + m_load.value_bytes);
  if (m_state.whole || m_state.extra > 0) {
    (*result)[Metric::space_amplification] = static_cast<double>(allocated_bytes()) / live;
  }
  if (const auto filter_bytes = engine->report().filter_bytes) {
    (*result)[Metric::filter_bytes_per_key] = static_cast<double>(*filter_bytes) / static_cast<double>(m_state.keys);
  }
  return {};
}

}  // namespace vtkv::bench
