// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tree/run_version.h"

#include "vtkv/table/parts_iterator.h"
#include "vtkv/table/run_iterator.h"
#include "vtkv/util/hash.h"

namespace vtkv {

namespace {

// Keeps an iterator in each sorted run that was read.
class RunLookups final : public AscendingLookups {
 public:
  explicit RunLookups(const SortedRuns& sorted_runs) {
    for (const SortedRun& sorted_run : sorted_runs) {
      m_cursors.push_back({&sorted_run, nullptr, nullptr});
    }
  }
  Status get(std::string_view key, Lookup* result, std::string* value) override {
    *result = Lookup::absent;
    const uint64_t key_hash = hash64(key);
    for (Cursor& cursor : m_cursors) {
      const auto* const part = cursor.sorted_run->find(key);
      if (!part) {
        continue;
      }
      if (part->get() != cursor.part) {
        cursor.part = part->get();
        cursor.iterator.reset();
      }
      VTKV_RETURN_IF_ERROR(cursor.part->get_ahead(key, key_hash, &cursor.iterator, result, value));
      if (*result != Lookup::absent) {
        return {};
      }
    }
    return {};
  }

 private:
  struct Cursor {
    const SortedRun* sorted_run;
    const Run* part;  // that the iterator is in
    std::unique_ptr<RunIterator> iterator;
  };
  std::vector<Cursor> m_cursors;
};

}  // namespace

Status RunVersion::get(std::string_view key, SequenceNumber at_most, Lookup* result, std::string* value) const {
  *result = Lookup::absent;
  const uint64_t key_hash = hash64(key);
  for (const SortedRun& sorted_run : m_sorted_runs) {
    const auto* const part = sorted_run.find(key);
    if (!part) {
      continue;
    }
    VTKV_RETURN_IF_ERROR((*part)->get(key, key_hash, at_most, result, value));
    if (*result != Lookup::absent) {
      return {};  // every entry of an older sorted run is older
    }
  }
  return {};
}

std::unique_ptr<AscendingLookups> RunVersion::ascending_lookups() const {
  return std::make_unique<RunLookups>(m_sorted_runs);
}

// Neighbouring parts without range tombstones are one source. A part with some is a source by itself, because a source
// has one set of them.
void RunVersion::new_iterators(std::string_view lower, std::string_view upper,
                               std::vector<std::unique_ptr<EntryIterator>>* iterators,
                               std::vector<std::shared_ptr<const RangeTombstones>>* tombstones) const {
  for (const SortedRun& sorted_run : m_sorted_runs) {
    Runs plain;
    const auto add_plain = [&] {
      if (!plain.empty()) {
        iterators->push_back(plain.size() == 1 ? plain.front()->new_iterator()
                                               : std::make_unique<PartsIterator>(std::move(plain)));
        tombstones->push_back(nullptr);
        plain.clear();
      }
    };
    for (size_t i = sorted_run.first_behind(lower); i < sorted_run.parts.size(); ++i) {
      const auto& part = sorted_run.parts[i];
      if (!upper.empty() && part->begin_key() >= upper) {
        break;
      }
      if (!part->overlaps(lower, upper)) {
        continue;
      }
      if (!part->range_tombstones()->overlaps(lower, upper)) {
        plain.push_back(part);
        continue;
      }
      add_plain();
      iterators->push_back(part->new_iterator());
      tombstones->push_back(part->range_tombstones());
    }
    add_plain();
  }
}

}  // namespace vtkv
