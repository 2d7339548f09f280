// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tree/run_version.h"

#include "vtkv/table/run_iterator.h"
#include "vtkv/util/hash.h"

namespace vtkv {

namespace {

// Keeps an iterator in each run that was read.
class RunLookups final : public AscendingLookups {
 public:
  explicit RunLookups(const std::vector<std::shared_ptr<const Run>>& runs) {
    for (const auto& run : runs) {
      m_cursors.push_back({run.get(), nullptr});
    }
  }
  Status get(std::string_view key, Lookup* result, std::string* value) override {
    *result = Lookup::absent;
    const uint64_t key_hash = hash64(key);
    for (Cursor& cursor : m_cursors) {
      VTKV_RETURN_IF_ERROR(cursor.run->get_ahead(key, key_hash, &cursor.iterator, result, value));
      if (*result != Lookup::absent) {
        return {};
      }
    }
    return {};
  }

 private:
  struct Cursor {
    const Run* run;
    std::unique_ptr<RunIterator> iterator;
  };
  std::vector<Cursor> m_cursors;
};

}  // namespace

Status RunVersion::get(std::string_view key, SequenceNumber at_most, Lookup* result, std::string* value) const {
  *result = Lookup::absent;
  const uint64_t key_hash = hash64(key);
  for (const auto& run : m_runs) {
    VTKV_RETURN_IF_ERROR(run->get(key, key_hash, at_most, result, value));
    if (*result != Lookup::absent) {
      return {};  // every entry of an older run is older
    }
  }
  return {};
}

std::unique_ptr<AscendingLookups> RunVersion::ascending_lookups() const { return std::make_unique<RunLookups>(m_runs); }

void RunVersion::new_iterators(std::string_view lower, std::string_view upper,
                               std::vector<std::unique_ptr<EntryIterator>>* iterators,
                               std::vector<std::shared_ptr<const RangeTombstones>>* tombstones) const {
  for (const auto& run : m_runs) {
    if (!run->overlaps(lower, upper)) {
      continue;
    }
    iterators->push_back(run->new_iterator());
    const bool any = run->range_tombstones()->overlaps(lower, upper);
    tombstones->push_back(any ? run->range_tombstones() : nullptr);
  }
}

}  // namespace vtkv
