#include "vtkv/db/background_errors.h"

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

void BackgroundErrors::note(BackgroundWork work, const Status& status) {
  if (status.ok() && m_failing.load() == 0) {
    return;
  }
  const uint64_t now_us = m_env->now_us();
  BackgroundError error{work, status, 0};
  {
    std::lock_guard lock(m_lock);
    State& state = state_of(work);
    const Status before = std::exchange(state.status, status);
    if (status.ok()) {
      error.attempts = std::exchange(state.attempts, 0);
      state.due_us = 0;
    } else {
      m_failures.fetch_add(1, std::memory_order_relaxed);
      error.attempts = ++state.attempts;
      state.due_us = now_us + static_cast<uint64_t>(wait_after(status, state.attempts).count());
    }
    m_failing.fetch_add((status.ok() ? 0 : 1) - (before.ok() ? 0 : 1));
    if (is_same_cause(before, status)) {
      return;  // it was said
    }
  }
  if (m_tell) {
    m_tell(error);
  }
}

std::chrono::microseconds BackgroundErrors::wait(BackgroundWork work) const {
  if (m_failing.load() == 0) {
    return {};
  }
  const uint64_t now_us = m_env->now_us();
  std::lock_guard lock(m_lock);
  const uint64_t due_us = state_of(work).due_us;
  return std::chrono::microseconds(due_us > now_us ? due_us - now_us : 0);
}

void BackgroundErrors::hurry(BackgroundWork work) {
  std::lock_guard lock(m_lock);
  state_of(work).due_us = 0;
}

Status BackgroundErrors::status(BackgroundWork work) const {
  std::lock_guard lock(m_lock);
  return state_of(work).status;
}

std::vector<BackgroundError> BackgroundErrors::current() const {
  std::vector<BackgroundError> errors;
  std::lock_guard lock(m_lock);
  for (size_t i = 0; i < m_states.size(); ++i) {
    if (!m_states[i].status.ok()) {
      errors.push_back({static_cast<BackgroundWork>(i), m_states[i].status, m_states[i].attempts});
    }
  }
  return errors;
}

}  // namespace vtkv
