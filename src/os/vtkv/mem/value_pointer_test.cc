// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/mem/value_pointer.h"

#include <gtest/gtest.h>

#include "vtkv/testing/format_page.h"

namespace vtkv {
namespace {

TEST(ValuePointer, IsAsOnThePage) {
  const auto encode = [](const ValuePointer& pointer) {
    std::string bytes;
    pointer.encode(&bytes);
    return bytes;
  };
  FormatCheck<ValuePointer> check(
      "Value pointer", encode, [](const std::string& bytes, ValuePointer* pointer) { return pointer->decode(bytes); });
  check.example("value pointer", {7, 300, 0x11000, 2048, 0x01020304});
  check.field("segment id", 0x1122334455667788, &ValuePointer::segment_id);
  check.field("epoch", 0x1122334455667788, &ValuePointer::epoch);
  check.field("offset", 0x1122334455667788, &ValuePointer::offset);
  check.field("length", 0x11223344, &ValuePointer::length);
  check.field("checksum", 0x11223344, &ValuePointer::crc32c);
  EXPECT_EQ(check.findings(), "");
}

}  // namespace
}  // namespace vtkv
