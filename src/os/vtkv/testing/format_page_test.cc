// SPDX-License-Identifier: LGPL-2.1-or-later
// A page that is wrong is noticed: each kind of mistake once.
#include "vtkv/testing/format_page.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace vtkv {
namespace {

enum class Color : uint8_t { red = 1, blue = 2 };

struct Car {
  uint16_t wheels = 0;
  uint32_t owner = 0;
  Color color = Color::red;
};

constexpr uint8_t kVersion = 2;
constexpr size_t kBytes = 12;

std::string encode(const Car& car) {
  std::string bytes;
  put_fixed8(&bytes, kVersion);
  put_fixed16(&bytes, car.wheels);
  put_ordered32(&bytes, car.owner);
  put_fixed8(&bytes, static_cast<uint8_t>(car.color));
  put_fixed32(&bytes, crc32c(bytes));
  return bytes;
}

bool decode(const std::string& bytes, Car* car) {
  std::string_view cursor = bytes;
  uint8_t version = 0, color = 0;
  uint32_t crc = 0;
  const bool read = bytes.size() == kBytes && get_fixed8(&cursor, &version) && get_fixed16(&cursor, &car->wheels) &&
                    get_ordered32(&cursor, &car->owner) && get_fixed8(&cursor, &color) && get_fixed32(&cursor, &crc);
  car->color = static_cast<Color>(color);
  return read && version == kVersion && crc == crc32c(bytes.data(), kBytes - sizeof(crc));
}

constexpr const char* kPage = R"(# A page

## Car

| OFFSET | TYPE | FIELD | MEANING |
|---|---|---|---|
| 0 | u8 | version | `2` |
| 1 | u16 | wheels | |
| 3 | u32 BE | owner | |
| 7 | u8 | color | `1` red, `2` blue |
| 8 | crc32c | checksum | of `version` to `color` |

```hex car
02            version = 2
02 01         wheels = 258
01 02 03 04   owner = 0x01020304
01            color = 1
cc 14 df f0   checksum
```
)";

class FormatPageTest : public testing::Test {
 protected:
  FormatPageTest() {
    m_check.example("car", {.wheels = 0x0102, .owner = 0x01020304, .color = Color::red});
    m_check.constant("version", kVersion);
    m_check.field("wheels", 0x0506, &Car::wheels);
    m_check.field("owner", 0x05060708, &Car::owner);
    m_check.field("color", Color::blue, &Car::color);
    m_check.names("color", {{"red", Color::red}, {"blue", Color::blue}});
  }

  // Of the page with each `from` exchanged.
  static std::string page(std::initializer_list<std::pair<std::string_view, std::string_view>> changes) {
    std::string text = kPage;
    for (const auto& [from, to] : changes) {
      const size_t at = text.find(from);
      EXPECT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    }
    return text;
  }
  void expect_finding(const std::string& text, std::string_view words) {
    EXPECT_NE(m_check.findings_on(text).find(words), std::string::npos) << m_check.findings_on(text);
  }

  FormatCheck<Car> m_check{"Car", encode, decode};
};

TEST_F(FormatPageTest, APageThatIsRightHasNoFindings) { EXPECT_EQ(m_check.findings_on(kPage), ""); }

TEST_F(FormatPageTest, AnotherByteOrder) {
  expect_finding(page({{"u32 BE", "u32"}}), "do not say 0x01020304");
  expect_finding(page({{"u32 BE", "u32"}, {"owner = 0x01020304", "owner"}}), "with another 'owner'");
}

TEST_F(FormatPageTest, RowsInAnotherOrder) {
  constexpr std::string_view wheels = "| 1 | u16 | wheels | |\n", owner = "| 3 | u32 BE | owner | |\n";
  const std::string rows = std::string(wheels) + std::string(owner);
  expect_finding(page({{rows, "| 1 | u32 BE | owner | |\n| 5 | u16 | wheels | |\n"}}), "not behind the one before");
}

TEST_F(FormatPageTest, AnotherOffset) { expect_finding(page({{"| 3 |", "| 4 |"}}), "the table at 4"); }

TEST_F(FormatPageTest, AnOffsetThatIsLeftOpen) { expect_finding(page({{"| 3 |", "| … |"}}), "the table at …"); }

TEST_F(FormatPageTest, ANumberBehindWhatMayBeOfAnyLength) {
  expect_finding(page({{"| 1 | u16 | wheels |", "| 1 | varint | wheels |"},
                       {"02 01         wheels = 258", "82 02         wheels"}}),
                 "the table at 3");
}

TEST_F(FormatPageTest, AnotherWidth) { expect_finding(page({{"u16", "u32"}}), "are none of its TYPE"); }

TEST_F(FormatPageTest, AnotherConstant) {
  expect_finding(page({{"| `2` |", "| `3` |"}}), "the page names another value");
}

TEST_F(FormatPageTest, ANumberWithAnotherName) {
  expect_finding(page({{"`1` red, `2` blue", "`1` blue, `2` red"}}), "the page's names are");
  expect_finding(page({{"`1` red, `2` blue", "`1` red"}}), "the page's names are");
}

TEST_F(FormatPageTest, NamesThatNobodyAsksFor) {
  expect_finding(page({{"| 1 | u16 | wheels | |", "| 1 | u16 | wheels | `4` car, `2` bicycle |"}}),
                 "the names of row 'wheels' are not checked");
}

TEST_F(FormatPageTest, AChecksumThatCoversSomethingElse) {
  expect_finding(page({{"of `version` to", "of `wheels` to"}}), "sums of example 'car'");
}

TEST_F(FormatPageTest, OtherBytesInTheExample) { expect_finding(page({{"02 01 ", "02 02 "}}), "do not say 258"); }

TEST_F(FormatPageTest, ARowThatTheCodeDoesNotHave) {
  expect_finding(
      page({{"| 8 | crc32c", "| 8 | u8 | doors | |\n| 9 | crc32c"}, {"cc 14", "04            doors\ncc 14"}}),
      "row 'doors' is not checked");
}

TEST_F(FormatPageTest, ARowThatThePageDoesNotHave) {
  expect_finding(page({{"| 7 | u8 | color | `1` red, `2` blue |\n| 8 |", "| 7 |"},
                       {"to `color`", "to `owner`"},
                       {"01            color = 1\n", ""}}),
                 "there is no row 'color'");
}

TEST_F(FormatPageTest, TwoExamplesOfOneName) {
  const std::string text = kPage;
  const std::string example = text.substr(text.find("```hex"));
  expect_finding(text + "\n" + example, "two examples called 'car'");
}

TEST_F(FormatPageTest, AnExampleWithoutACheck) {
  const std::string text = kPage;
  std::string example = text.substr(text.find("```hex"));
  example.replace(0, std::string_view("```hex car").size(), "```hex van");
  expect_finding(text + "\n" + example, "example 'van' is not checked");
}

TEST_F(FormatPageTest, CodeThatReadsWhatItDoesNotWrite) {
  const auto read_wrongly = [](const std::string& bytes, Car* car) {
    const bool read = decode(bytes, car);
    car->color = Color::red;
    return read;
  };
  FormatCheck<Car> check("Car", encode, read_wrongly);
  check.example("car", {.wheels = 0x0102, .owner = 0x01020304, .color = Color::red});
  check.constant("version", kVersion);
  check.field("wheels", 0x0506, &Car::wheels);
  check.field("owner", 0x05060708, &Car::owner);
  check.field("color", Color::blue, &Car::color);
  EXPECT_NE(check.findings_on(kPage).find("reads something else at 'color'"), std::string::npos);
}

}  // namespace
}  // namespace vtkv
