// SPDX-License-Identifier: LGPL-2.1-or-later
// Given to the compiler with -include, for Tentacle, which was written for older ones.
#pragma once

// Formatter.h does without it.
#include <cstdint>

// Since Boost's intrusive_ptr is constexpr, compilers look for these where the classes are still incomplete, and nobody
// but the classes declares them, as friends.
class TrackedOp;
inline void intrusive_ptr_add_ref(TrackedOp* op);
inline void intrusive_ptr_release(TrackedOp* op);

class PG;
inline void intrusive_ptr_add_ref(PG* pg);
inline void intrusive_ptr_release(PG* pg);
