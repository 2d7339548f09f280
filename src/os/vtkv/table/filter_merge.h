// SPDX-License-Identifier: LGPL-2.1-or-later
// The filter of a compaction of runs, without their keys where that is possible.
#pragma once

#include <memory>
#include <vector>

#include "vtkv/status.h"
#include "vtkv/table/pace.h"
#include "vtkv/table/quotient_filter.h"
#include "vtkv/table/run.h"

namespace vtkv {

// Most of the filter's fingerprints are of no entry: of those that were dropped unread, by a purge, or as part of a
// very long compaction.
bool is_mostly_surplus(const Run& run);

// A filter with one fingerprint per entry of each of `runs`: the caller removes those of the entries that its
// compaction drops (QuotientFilter::remove with hash64 of the key) and calls fit() at the end. Runs whose
// fingerprints are too short for the sum are read, every key of them, and given fingerprints of `bits` bits
// (QuotientFilter::fingerprint_bits), as are runs with more surplus fingerprints than entries; that happens once per
// doubling of the tree at most. *read_bytes counts what had to be read. Code::corruption, io_error, and what `pace`
// says.
Status merge_filters(const std::vector<std::shared_ptr<const Run>>& runs, int bits, double rate,
                     const CompactionPace& pace, QuotientFilter* filter, uint64_t* read_bytes);

}  // namespace vtkv
