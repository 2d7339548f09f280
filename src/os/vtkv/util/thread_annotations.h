// Which lock guards what, in a form that clang's -Wthread-safety checks.
//
// std::mutex is a capability only under libc++ with _LIBCPP_ENABLE_THREAD_SAFETY_ANNOTATIONS; in every
// other build these are documentation.
#pragma once

#if defined(__clang__) && defined(_LIBCPP_ENABLE_THREAD_SAFETY_ANNOTATIONS)
#define VTKV_ANNOTATION(x) __attribute__((x))
#else
#define VTKV_ANNOTATION(x)
#endif

// Read and written only under the lock (the pointee of a pointer, for PT_).
#define GUARDED_BY(lock) VTKV_ANNOTATION(guarded_by(lock))
#define PT_GUARDED_BY(lock) VTKV_ANNOTATION(pt_guarded_by(lock))
// The caller holds the lock, or must not hold it.
#define REQUIRES_LOCK(...) VTKV_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES_LOCK(...) VTKV_ANNOTATION(locks_excluded(__VA_ARGS__))
// The function takes or releases the lock.
#define ACQUIRES_LOCK(...) VTKV_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASES_LOCK(...) VTKV_ANNOTATION(release_capability(__VA_ARGS__))
#define NO_LOCK_ANALYSIS VTKV_ANNOTATION(no_thread_safety_analysis)
