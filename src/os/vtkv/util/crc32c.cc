// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>

namespace vtkv {

namespace {

// Polynomials over GF(2) of degree below 32, bit-reflected: bit 31 is the coefficient of x^0.
constexpr uint32_t kPolynomial = 0x82f63b78;
constexpr uint32_t kOne = 0x80000000;
constexpr size_t kTableLength = 4096;

constexpr uint32_t times_x(uint32_t a) { return (a >> 1) ^ ((a & 1) != 0 ? kPolynomial : 0); }

constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) {
      product ^= b;
    }
    b = times_x(b);
  }
  return product;
}

// x^(8 * length): what a checksum is multiplied by when `length` zero bytes follow.
constexpr uint32_t shift_operator(uint64_t length) {
  uint32_t result = kOne;
  uint32_t power = kOne >> 8;  // x^8
  for (; length != 0; length >>= 1) {
    if ((length & 1) != 0) {
      result = multiply(result, power);
    }
    power = multiply(power, power);
  }
  return result;
}

using ShiftTable = std::array<std::array<uint32_t, 256>, 4>;

// One row per byte of the checksum: multiplication is linear, so the rows' entries add up.
constexpr ShiftTable make_shift_table(uint64_t length) {
  ShiftTable table{};
  const uint32_t shift = shift_operator(length);
  for (uint32_t row = 0; row < 4; ++row) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      table[row][byte] = multiply(byte << (8 * row), shift);
    }
  }
  return table;
}

constexpr ShiftTable kShiftTable = make_shift_table(kTableLength);

}  // namespace

uint32_t crc32c_extend(uint32_t crc, const void* data, size_t length) {
  // The library takes an int and a pointer that is not const, and leaves both inversions to its caller.
  constexpr size_t kMaxSlice = 1U << 30;
  auto* bytes = static_cast<unsigned char*>(const_cast<void*>(data));
  uint32_t state = ~crc;
  while (length != 0) {
    const size_t slice = std::min(length, kMaxSlice);
    state = crc32_iscsi(bytes, static_cast<int>(slice), state);
    bytes += slice;
    length -= slice;
  }
  return ~state;
}

uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t length_b) {
  if (length_b == kTableLength) {
    return kShiftTable[0][crc_a & 0xff] ^ kShiftTable[1][(crc_a >> 8) & 0xff] ^ kShiftTable[2][(crc_a >> 16) & 0xff] ^
           kShiftTable[3][crc_a >> 24] ^ crc_b;
  }
  return multiply(crc_a, shift_operator(length_b)) ^ crc_b;
}

}  // namespace vtkv
