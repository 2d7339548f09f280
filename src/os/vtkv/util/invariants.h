// SPDX-License-Identifier: LGPL-2.1-or-later
// Checks that guard data.
//
// VTKV_ASSERT is always on: going on after it failed could destroy data. INVARIANT is for audits too expensive for
// production: it runs with SWIM_CHECK_INVARIANTS, which the build sets without optimization and with a sanitizer.
// Neither is for what a disk or a caller can cause: that is a Status.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace vtkv {

[[noreturn]] inline void assertion_failed(const char* expression, const char* file, int line, const char* function) {
  std::fprintf(stderr, "%s:%d: %s: assertion failed: %s\n", file, line, function, expression);
  std::fflush(stderr);
  std::abort();
}

}  // namespace vtkv

#define VTKV_ASSERT(expression) \
  ((expression) ? (void)0 : ::vtkv::assertion_failed(#expression, __FILE__, __LINE__, __func__))

#if defined(SWIM_CHECK_INVARIANTS)
#define INVARIANT(...) ((__VA_ARGS__) ? (void)0 : ::vtkv::assertion_failed(#__VA_ARGS__, __FILE__, __LINE__, __func__))
#else
// Not evaluated, but compiled: an audit must not rot.
#define INVARIANT(...) ((void)sizeof((__VA_ARGS__) ? 1 : 0))
#endif
