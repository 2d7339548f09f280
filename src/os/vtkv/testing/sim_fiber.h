// SPDX-License-Identifier: LGPL-2.1-or-later
// A worker's step on a stack of its own, so that a SimEnv can leave it in the middle and go on with it later. All in
// one thread. Internal to SimEnv.
#pragma once

#include <ucontext.h>

#include <functional>
#include <memory>

namespace vtkv {

class SimFiber {
 public:
  SimFiber();
  ~SimFiber();  // REQUIRES: not under way
  SimFiber(const SimFiber&) = delete;
  SimFiber& operator=(const SimFiber&) = delete;

  // Begins `body` and returns when it has ended or paused. REQUIRES: not under way, and not on a fiber.
  void start(std::function<void()> body);
  // Goes on behind the pause. REQUIRES: under way, and not on a fiber.
  void resume();
  bool under_way() const { return m_under_way; }

  // The fiber that runs now; null: none does.
  static SimFiber* current();
  // Leaves the current one.
  static void pause();

 private:
  class Stack;
  static void enter(unsigned high, unsigned low);
  void run();
  void switch_in();
  void switch_out(bool for_good);

  std::unique_ptr<Stack> m_stack;  // while it is under way; they are used again
  std::function<void()> m_body;
  bool m_under_way = false;
  ucontext_t m_context{};
  ucontext_t m_caller{};
  // What AddressSanitizer wants to know of the switches.
  void* m_own_fake_stack = nullptr;
  const void* m_caller_bottom = nullptr;
  size_t m_caller_bytes = 0;
};

}  // namespace vtkv
