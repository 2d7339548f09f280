// SPDX-License-Identifier: LGPL-2.1-or-later
// How much memory the memtables of a database may take together, the active one and those that wait to be flushed, as
// multiples of Options::memtable_bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vtkv {

// At most. A writer who can wait does so before a batch would go beyond it.
inline uint64_t memtables_bytes_most(size_t memtable_bytes) { return 3 * uint64_t{memtable_bytes} + (1u << 20); }

// From here on no record is formed behind the newest flush point, and no value is relocated. What lies between the two
// bounds is for those who cannot wait: DB::submit inserts at once, and its callers are held by what they have under
// way.
inline uint64_t memtables_bytes_crowded(size_t memtable_bytes) { return 2 * uint64_t{memtable_bytes} + (512u << 10); }

}  // namespace vtkv
