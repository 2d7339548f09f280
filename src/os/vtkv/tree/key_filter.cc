#include "vtkv/tree/key_filter.h"

#include <cstring>

#include "vtkv/util/hash.h"

namespace vtkv {

namespace {
constexpr uint64_t kBitsPerKey = 10;
constexpr uint64_t kLineBits = 512;
constexpr uint64_t kKeysMax = 100'000'000;  // 125 MB
}  // namespace

KeyFilter::KeyFilter(uint64_t expected_keys) {
  if (expected_keys > 0 && expected_keys <= kKeysMax) {
    m_words.resize((expected_keys * kBitsPerKey + kLineBits - 1) / kLineBits * kWordsPerLine);
  }
}

size_t KeyFilter::line_of(uint64_t key_hash) const {
  const uint64_t lines = m_words.size() / kWordsPerLine;
  return static_cast<size_t>(static_cast<unsigned __int128>(key_hash) * lines >> 64);
}

uint32_t KeyFilter::probe(uint64_t key_hash, int index) {
  // The line comes from the high bits; mix, so that the probes do not.
  return mix64(key_hash) >> (index * 9) & (kLineBits - 1);
}

void KeyFilter::add(uint64_t key_hash) {
  if (!active()) {
    return;
  }
  uint64_t* line = m_words.data() + line_of(key_hash) * kWordsPerLine;
  for (int i = 0; i < kProbes; ++i) {
    const uint32_t bit = probe(key_hash, i);
    line[bit / 64] |= uint64_t{1} << bit % 64;
  }
}

bool KeyFilter::may_hold(uint64_t key_hash) const {
  if (!active()) {
    return true;
  }
  const uint64_t* line = m_words.data() + line_of(key_hash) * kWordsPerLine;
  for (int i = 0; i < kProbes; ++i) {
    const uint32_t bit = probe(key_hash, i);
    if ((line[bit / 64] >> bit % 64 & 1) == 0) {
      return false;
    }
  }
  return true;
}

bool KeyFilter::from_bytes(std::string_view bytes, KeyFilter* filter) {
  if (bytes.size() % (kWordsPerLine * sizeof(uint64_t)) != 0) {
    return false;
  }
  filter->m_words.resize(bytes.size() / sizeof(uint64_t));
  if (!bytes.empty()) {
    std::memcpy(filter->m_words.data(), bytes.data(), bytes.size());
  }
  return true;
}

}  // namespace vtkv
