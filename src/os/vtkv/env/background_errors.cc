// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/background_errors.h"

#include <algorithm>

namespace vtkv {

namespace {

constexpr std::chrono::microseconds kFirstWait{200'000};
constexpr std::chrono::microseconds kWaitForSpaceMost{5'000'000};
constexpr std::chrono::microseconds kWaitMost{300'000'000};
constexpr uint64_t kDoublingsMost = 11;  // beyond kWaitMost

std::chrono::microseconds wait_after(const Status& status, uint64_t attempts) {
  const std::chrono::microseconds wait = kFirstWait * (int64_t{1} << std::min(attempts - 1, kDoublingsMost));
  return std::min(wait, status.is_no_space() ? kWaitForSpaceMost : kWaitMost);
}

// As far as what a person has to do about it goes. Error numbers may come and go: some are lost on the way here.
bool is_same_cause(const Status& a, const Status& b) {
  return a.code() == b.code() && is_list_full(a) == is_list_full(b);
}

}  // namespace

void BackgroundErrors::note(const BackgroundWork& work, const Status& status) {
  if (status.ok() && m_failing.load() == 0) {
    return;
  }
  const uint64_t now_us = m_env->now_us();
  BackgroundError error{&work, status, 0};
  {
    MutexLock lock(m_lock);
    const auto found = m_states.find(&work);
    const bool is_news = !is_same_cause(found == m_states.end() ? Status() : found->second.status, status);
    if (!status.ok()) {
      m_failures.fetch_add(1, std::memory_order_relaxed);
      State& state = m_states[&work];
      state.status = status;
      state.due_us = now_us + static_cast<uint64_t>(wait_after(status, ++state.attempts).count());
      error.attempts = state.attempts;
    } else if (found != m_states.end()) {
      error.attempts = found->second.attempts;
      m_states.erase(found);
    }
    m_failing = m_states.size();
    if (!is_news) {
      return;
    }
  }
  if (m_tell) {
    m_tell(error);
  }
}

std::chrono::microseconds BackgroundErrors::wait(const BackgroundWork& work) const {
  if (m_failing.load() == 0) {
    return {};
  }
  const uint64_t now_us = m_env->now_us();
  MutexLock lock(m_lock);
  const auto found = m_states.find(&work);
  const uint64_t due_us = found == m_states.end() ? 0 : found->second.due_us;
  return std::chrono::microseconds(due_us > now_us ? due_us - now_us : 0);
}

void BackgroundErrors::hurry(const BackgroundWork& work) {
  MutexLock lock(m_lock);
  if (const auto found = m_states.find(&work); found != m_states.end()) {
    found->second.due_us = 0;
  }
}

Status BackgroundErrors::status(const BackgroundWork& work) const {
  MutexLock lock(m_lock);
  const auto found = m_states.find(&work);
  return found == m_states.end() ? Status() : found->second.status;
}

std::vector<BackgroundError> BackgroundErrors::current() const {
  std::vector<BackgroundError> errors;
  MutexLock lock(m_lock);
  for (const auto& [work, state] : m_states) {
    errors.push_back({work, state.status, state.attempts});
  }
  return errors;
}

}  // namespace vtkv
