// SPDX-License-Identifier: LGPL-2.1-or-later
// What a scan has read that is fragmented over the log, one read for each value, is relocated in the order of its
// keys: the next scan there has it with one read. So only what is scanned is written again, and once; WiscKey (section
// 3.3.1) bears with the random reads. What it gains, and the command that shows it: doc/benchmarks.md, "YCSB alone",
// how E develops.
//
// Not thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vtkv/blob/relocator.h"

namespace vtkv {

class FragmentedValues {
 public:
  FragmentedValues() = default;  // gathers nothing
  // Values have to be the newest of their keys at `checked`; fewer than `values_min` are not worth it.
  FragmentedValues(Relocator* relocator, SequenceNumber checked, size_t values_min)
      : m_relocator(relocator), m_checked(checked), m_values_min(values_min) {}

  bool gathers() const { return m_relocator != nullptr; }
  // Does it pay for a value of so many bytes? Larger ones are read at nearly the same speed wherever they lie.
  bool wants(size_t value_bytes) const { return gathers() && value_bytes <= kValueBytesMost; }
  // In the order of the keys, which follow one another in the database.
  void add(std::string_view key, std::string_view value);
  // What was added, if it is worth it.
  void relocate();

 private:
  static constexpr size_t kValueBytesMost = 16u << 10;
  static constexpr size_t kValuesMost = 64;  // a look-up of each under the write lock

  struct Lengths {
    size_t key_bytes, value_bytes;
  };

  Relocator* m_relocator = nullptr;
  SequenceNumber m_checked = 0;
  size_t m_values_min = 0;
  std::string m_bytes;  // key, value, key, value…
  std::vector<Lengths> m_lengths;
};

}  // namespace vtkv
