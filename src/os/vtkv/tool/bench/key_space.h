// SPDX-License-Identifier: LGPL-2.1-or-later
// Keys and values of the benchmark: 16-byte keys in number order; values that do not compress and that say
// whose they are, so that every read is checked.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace vtkv::bench {

inline constexpr size_t kKeyBytes = 16;

class Key {
 public:
  // The number in decimal: keys sort as their numbers do.
  explicit Key(uint64_t number);
  // Sorts directly behind Key(number) and is never written.
  static Key missing(uint64_t number);
  // Of one of many logs: the log's number, then the entry's.
  static Key in_log(uint32_t log, uint64_t entry);

  std::string_view view() const { return {m_text.data(), m_text.size()}; }
  operator std::string_view() const { return view(); }

 private:
  std::array<char, kKeyBytes> m_text;
};

// Behind every key.
inline constexpr std::string_view kEndOfKeys = "~";

class Values {
 public:
  Values(size_t value_bytes, uint64_t seed);
  // A value for key `number`, different for each `version`. Valid until the next call with the same `buffer`.
  std::string_view make(uint64_t number, uint64_t version, std::string* buffer) const;
  bool belongs(std::string_view value, uint64_t number) const;

 private:
  const size_t m_value_bytes;
  std::string m_noise;
};

// A random order of 0 .. count-1, without a table of it: a Feistel network, walked until it lands inside.
class Permutation {
 public:
  Permutation(uint64_t count, uint64_t seed);
  uint64_t operator()(uint64_t index) const;

 private:
  const uint64_t m_count, m_seed;
  unsigned m_half_bits;
};

}  // namespace vtkv::bench
