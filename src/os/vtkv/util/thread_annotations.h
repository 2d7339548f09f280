// SPDX-License-Identifier: LGPL-2.1-or-later
// Which lock guards what, in the words of clang's -Wthread-safety, which checks them (qa/clang_checks.py
// thread-safety). They are about util/mutex.h's Mutex: of a std::mutex clang knows nothing. For any other compiler they
// are nothing.
//
// A lambda is a function of its own: one that is called under a lock says REQUIRES behind its parameters.
#pragma once

#if defined(__clang__)
#define VTKV_ANNOTATION(x) __attribute__((x))
#else
#define VTKV_ANNOTATION(x)
#endif

// A member: read and written only under the lock (PT_: what it points to).
#define GUARDED_BY(lock) VTKV_ANNOTATION(guarded_by(lock))
#define PT_GUARDED_BY(lock) VTKV_ANNOTATION(pt_guarded_by(lock))
// A lock: taken while none of these is, or while none of these is held. Checked with -Wthread-safety-beta alone.
#define ACQUIRED_BEFORE(...) VTKV_ANNOTATION(acquired_before(__VA_ARGS__))
#define ACQUIRED_AFTER(...) VTKV_ANNOTATION(acquired_after(__VA_ARGS__))

// A function: its caller holds the lock, or does not hold it.
#define REQUIRES(...) VTKV_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) VTKV_ANNOTATION(locks_excluded(__VA_ARGS__))
// It takes the lock (with TRY_ when it returns the first argument), or releases it.
#define ACQUIRE(...) VTKV_ANNOTATION(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) VTKV_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) VTKV_ANNOTATION(release_capability(__VA_ARGS__))
// What it does is right, and clang cannot see it: the comment says why.
#define NO_THREAD_SAFETY_ANALYSIS VTKV_ANNOTATION(no_thread_safety_analysis)

// A class that is a lock, or that holds one as long as it lives.
#define CAPABILITY(name) VTKV_ANNOTATION(capability(name))
#define SCOPED_CAPABILITY VTKV_ANNOTATION(scoped_lockable)
