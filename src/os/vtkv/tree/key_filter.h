// Says of a key that a run certainly does not hold it, or that it may: a Bloom filter whose probes for
// one key lie in one cache line. About 10 bits per key, 1 % wrong "may".
//
// On disk: 64-byte lines as they lie in memory, cut into blocks of kind filter; the probes are those of
// probe() for hash64(key), for good.
//
// Immutable once built; then thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vtkv {

class KeyFilter {
 public:
  KeyFilter() = default;  // says "may" to everything
  // No filter is made for 0 keys or for more than a run's filter may take in memory.
  explicit KeyFilter(uint64_t expected_keys);

  bool active() const { return !m_words.empty(); }
  void add(uint64_t key_hash);
  bool may_hold(uint64_t key_hash) const;

  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(m_words.data()), m_words.size() * sizeof(uint64_t)};
  }
  // False when `bytes` is no whole number of lines.
  static bool from_bytes(std::string_view bytes, KeyFilter* filter);

 private:
  static constexpr size_t kWordsPerLine = 8;
  static constexpr int kProbes = 6;
  size_t line_of(uint64_t key_hash) const;
  static uint32_t probe(uint64_t key_hash, int index);

  std::vector<uint64_t> m_words;
};

}  // namespace vtkv
