// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/bench/key_space.h"

#include <bit>
#include <cstring>

#include "vtkv/util/hash.h"

namespace vtkv::bench {

namespace {

constexpr size_t kNoiseBytes = 4 << 20;
constexpr int kFeistelRounds = 4;

void print_decimal(uint64_t number, char* begin, char* end) {
  while (end != begin) {
    *--end = static_cast<char>('0' + number % 10);
    number /= 10;
  }
}

}  // namespace

Key::Key(uint64_t number) { print_decimal(number, m_text.data(), m_text.data() + kKeyBytes); }

Key Key::missing(uint64_t number) {
  Key key(number / 10);
  // One digit less and a mark behind it: longer than any number that was printed.
  std::memmove(key.m_text.data(), key.m_text.data() + 1, kKeyBytes - 1);
  key.m_text.back() = ':';
  return key;
}

Key Key::in_log(uint32_t log, uint64_t entry) {
  Key key(entry);
  key.m_text[0] = 'p';
  print_decimal(log, key.m_text.data() + 1, key.m_text.data() + 5);
  return key;
}

Values::Values(size_t value_bytes, uint64_t seed) : m_value_bytes(value_bytes) {
  m_noise.resize(kNoiseBytes + value_bytes);
  for (size_t i = 0; i + sizeof(uint64_t) <= m_noise.size(); i += sizeof(uint64_t)) {
    const uint64_t word = mix64(seed + i + 1);
    std::memcpy(m_noise.data() + i, &word, sizeof(word));
  }
}

std::string_view Values::make(uint64_t number, uint64_t version, std::string* buffer) const {
  const size_t at = mix64(number * 31 + version) % kNoiseBytes;
  buffer->assign(m_noise, at, m_value_bytes);
  if (m_value_bytes >= sizeof(number)) {
    std::memcpy(buffer->data(), &number, sizeof(number));
  }
  return *buffer;
}

bool Values::belongs(std::string_view value, uint64_t number) const {
  return value.size() == m_value_bytes &&
         (m_value_bytes < sizeof(number) || std::memcmp(value.data(), &number, sizeof(number)) == 0);
}

Permutation::Permutation(uint64_t count, uint64_t seed)
    : m_count(count), m_seed(seed), m_half_bits((std::bit_width(count > 0 ? count - 1 : 0) + 1) / 2) {
  m_half_bits = m_half_bits == 0 ? 1 : m_half_bits;
}

uint64_t Permutation::operator()(uint64_t index) const {
  const uint64_t mask = (uint64_t{1} << m_half_bits) - 1;
  do {
    uint64_t left = index >> m_half_bits, right = index & mask;
    for (int round = 0; round < kFeistelRounds; ++round) {
      const uint64_t next =
          left ^ (mix64(right + m_seed + static_cast<uint64_t>(round) * 0x9e3779b97f4a7c15ULL) & mask);
      left = right;
      right = next;
    }
    index = (left << m_half_bits) | right;
  } while (index >= m_count);
  return index;
}

}  // namespace vtkv::bench
