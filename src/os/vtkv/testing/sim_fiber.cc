// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/sim_fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "vtkv/util/invariants.h"

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SIM_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

namespace vtkv {

namespace {

constexpr size_t kStackBytes = 1 << 20;  // of address space; what is not touched takes no memory
constexpr size_t kGuardBytes = 4096;

thread_local SimFiber* current_fiber = nullptr;

}  // namespace

class SimFiber::Stack {
 public:
  Stack() {
    m_memory = static_cast<char*>(
        ::mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    VTKV_ASSERT(m_memory != MAP_FAILED);
    const bool guarded = ::mprotect(m_memory, kGuardBytes, PROT_NONE) == 0;
    VTKV_ASSERT(guarded);
  }
  ~Stack() { ::munmap(m_memory, kGuardBytes + kStackBytes); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  char* bottom() const { return m_memory + kGuardBytes; }
  static std::vector<std::unique_ptr<Stack>>& idle() {
    static thread_local std::vector<std::unique_ptr<Stack>> stacks;
    return stacks;
  }

 private:
  char* m_memory = nullptr;
};

SimFiber::SimFiber() = default;

SimFiber::~SimFiber() { VTKV_ASSERT(!m_under_way); }

SimFiber* SimFiber::current() { return current_fiber; }

void SimFiber::start(std::function<void()> body) {
  VTKV_ASSERT(!m_under_way && current_fiber == nullptr);
  auto& idle = Stack::idle();
  if (idle.empty()) {
    idle.push_back(std::make_unique<Stack>());
  }
  m_stack = std::move(idle.back());
  idle.pop_back();
  m_body = std::move(body);
  m_under_way = true;
  const bool got_context = ::getcontext(&m_context) == 0;
  VTKV_ASSERT(got_context);
  m_context.uc_stack.ss_sp = m_stack->bottom();
  m_context.uc_stack.ss_size = kStackBytes;
  m_context.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  ::makecontext(&m_context, reinterpret_cast<void (*)()>(&SimFiber::enter), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
  switch_in();
}

void SimFiber::resume() {
  VTKV_ASSERT(m_under_way && current_fiber == nullptr);
  switch_in();
}

void SimFiber::pause() { current_fiber->switch_out(false); }

void SimFiber::switch_in() {
  current_fiber = this;
#ifdef SIM_ADDRESS_SANITIZER
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, m_stack->bottom(), kStackBytes);
#endif
  ::swapcontext(&m_caller, &m_context);
#ifdef SIM_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  current_fiber = nullptr;
  if (!m_under_way) {
    Stack::idle().push_back(std::move(m_stack));
  }
}

void SimFiber::switch_out(bool for_good) {
#ifdef SIM_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(for_good ? nullptr : &m_own_fake_stack, m_caller_bottom, m_caller_bytes);
#endif
  ::swapcontext(&m_context, &m_caller);
#ifdef SIM_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(m_own_fake_stack, &m_caller_bottom, &m_caller_bytes);
#endif
  (void)for_good;
}

void SimFiber::enter(unsigned high, unsigned low) { reinterpret_cast<SimFiber*>((uintptr_t{high} << 32) | low)->run(); }

void SimFiber::run() {
#ifdef SIM_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &m_caller_bottom, &m_caller_bytes);
#endif
  m_body();
  m_body = nullptr;
  m_under_way = false;
  switch_out(true);
}

}  // namespace vtkv
