// SPDX-License-Identifier: LGPL-2.1-or-later
// The structures that doc/on_disk_format.md describes, held against the code that writes and reads them.
//
// A section of the page whose table has the columns OFFSET, TYPE, FIELD, MEANING describes one structure, and has
// examples, blocks of code marked `hex NAME`. "How a table is read" on the page has the grammar of both. A test gives a
// FormatCheck the objects of the examples, and for each row another value:
//
//   FormatCheck<ValuePointer> check("Value pointer", encode, decode);
//   check.example("value pointer", example());
//   check.field("segment id", 0x1234, &ValuePointer::segment_id);
//   …
//   EXPECT_EQ(check.findings(), "");
//
// What is checked, of each example: its lines are the table's rows, in the table's order, at the table's offsets, each
// as long as its TYPE says; the code encodes the object to these bytes, and decodes them to the values that the TYPEs
// read there, byte order and all. Of each row: with another value the code writes, and reads, the example with the
// bytes of this row exchanged, and besides only sums, lengths and padding, as the table gives them. A row without a
// check, and a check without a row, are findings too.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "vtkv/testing/format_value.h"

namespace vtkv {

// One structure, as the page has it. Functions throw std::runtime_error for what is not on the page, or is not in its
// grammar.
class PageStructure {
 public:
  explicit PageStructure(std::string_view section);
  // Of another page, whose text this is.
  PageStructure(std::string_view section, const std::string& text);

  struct Row {
    std::string offset, type, name, meaning;
  };
  const std::vector<Row>& rows() const { return m_rows; }
  const Row& row(std::string_view name) const;
  static bool is_zeros(const Row& row);  // nothing but: needs no value
  static bool is_checksum(const Row& row);  // follows from the others

  std::vector<std::string> examples() const;
  std::string bytes(const std::string& example) const;
  bool has(const std::string& example, std::string_view row) const;
  PageValue value(const std::string& example, std::string_view row) const;
  // The example with other values; its checksums and padding follow. Of a TYPE that is described elsewhere: bytes.
  std::string with(const std::string& example, const std::map<std::string, PageValue>& values) const;
  // For checksums that cover what is not in the structure.
  void set_outside(const std::string& name, std::string bytes) { m_outside[name] = std::move(bytes); }
  // What MEANING says first, in backticks: `17`, `0x11` or `text`.
  PageValue constant(std::string_view row) const;
  // Numbers in backticks with a name behind them: `1` entries, `2` index.
  std::map<std::string, std::string> names(std::string_view row) const;

 private:
  struct Unit {  // one row, or those that share the bits of one number
    std::vector<size_t> rows;
    std::string type;
  };
  struct Field {
    size_t unit;
    std::string bytes;
    std::string stated;  // behind " = "
  };
  using Fields = std::vector<Field>;

  void parse(const std::vector<std::vector<std::vector<std::string>>>& tables,
             const std::vector<std::pair<std::string, std::vector<std::string>>>& examples);
  size_t index(std::string_view row) const;
  void parse_row(const std::vector<std::string>& cells);
  void parse_example(const std::string& name, const std::vector<std::string>& lines);
  static bool is_padding_up_to_an_offset(const Row& row);
  void check_offsets() const;
  void check_stated(const std::string& name, const Fields& fields) const;
  void check_filled(const std::string& name, const Fields& fields) const;
  size_t unit_of(size_t row) const;
  PageValue value_in(const Fields& fields, size_t row) const;
  void set(Fields* fields, size_t row, const PageValue& value) const;
  void fill(Fields* fields) const;
  void sum(Fields* fields) const;
  std::string covered(const Fields& fields, const Row& row) const;
  const Fields& fields_of(const std::string& example) const;

  std::string m_section;
  std::vector<Row> m_rows;
  std::vector<Unit> m_units;
  std::map<std::string, Fields> m_examples;
  std::map<std::string, std::string> m_outside;
};

// Of any example on the page, by its name.
std::string page_example(std::string_view name);
// The rows below the header of a section's table with these columns.
std::vector<std::vector<std::string>> page_table(std::string_view section, const std::vector<std::string>& columns);
// "" when equal; else both, 16 bytes a line.
std::string compare_bytes(std::string_view what, std::string_view page, std::string_view code);

template <typename T>
class FormatCheck {
 public:
  using Encode = std::function<std::string(const T&)>;
  // False: refused.
  using Decode = std::function<bool(const std::string&, T*)>;

  FormatCheck(std::string section, Encode encode, Decode decode)
      : m_section(std::move(section)), m_encode(std::move(encode)), m_decode(std::move(decode)) {}

  // `object` is what the page's example says.
  void example(const std::string& name, T object) { m_objects.emplace_back(name, std::move(object)); }
  // `access`: a pointer to a member, or what returns a reference to it, of a T&.
  template <typename Access>
  void field(const std::string& row, PageValue other, Access access) {
    field(
        row, std::move(other), [access](T& object) { return PageValue(std::invoke(access, object)); },
        [access](T& object, const PageValue& value) { assign(std::invoke(access, object), value); });
  }
  void field(const std::string& row, PageValue other, std::function<PageValue(T&)> get,
             std::function<void(T&, const PageValue&)> set) {
    m_fields.emplace(row, Change{std::move(other), std::move(get), std::move(set)});
  }
  // Of a TYPE that another section describes, or a list: `other` is what the row holds after `change`.
  void part(const std::string& row, std::string other, std::function<void(T&)> change) {
    m_fields.emplace(row, Change{std::move(other), {}, [change](T& object, const PageValue&) { change(object); }});
  }
  // Follows from the object: a number of records, a length.
  void derived(const std::string& row, std::function<PageValue(const T&)> value) { m_derived[row] = std::move(value); }
  // The same in every structure, and the code refuses another one. `value` is the code's.
  void constant(const std::string& row, PageValue value) { m_constants.emplace(row, std::move(value)); }
  // The page's names for the numbers that the row may hold; the numbers are the code's.
  void names(const std::string& row, const std::map<std::string, PageValue>& names) { m_names[row] = names; }
  void outside(const std::string& name, std::string bytes) { m_outside[name] = std::move(bytes); }

  // "" when page and code agree.
  std::string findings() {
    return findings_of([this] { return PageStructure(m_section); });
  }
  // Of another page, whose text this is.
  std::string findings_on(const std::string& text) {
    return findings_of([this, &text] { return PageStructure(m_section, text); });
  }

 private:
  std::string findings_of(const std::function<PageStructure()>& read) {
    std::string found;
    try {
      PageStructure page = read();
      for (const auto& [name, bytes] : m_outside) {
        page.set_outside(name, bytes);
      }
      check(page, &found);
    } catch (const std::exception& error) {
      found += error.what();
    }
    return found;
  }

  struct Change {
    PageValue other;
    std::function<PageValue(T&)> get;
    std::function<void(T&, const PageValue&)> set;
  };

  static void assign(std::string& to, const PageValue& value) { to = value.bytes.value(); }
  template <size_t Size>
  static void assign(std::array<uint8_t, Size>& to, const PageValue& value) {
    std::copy_n(value.bytes.value().begin(), Size, to.begin());
  }
  template <typename Number>
    requires std::integral<Number> || std::is_enum_v<Number>
  static void assign(Number& to, const PageValue& value) {
    to = static_cast<Number>(value.number.value());
  }

  void check(const PageStructure& page, std::string* found) {
    check_rows(page, found);
    std::set<std::string> left;
    for (const std::string& name : page.examples()) {
      left.insert(name);
    }
    for (auto& [name, object] : m_objects) {
      if (left.erase(name) == 0) {
        *found += "example '" + name + "' is given twice, or is none of the section's\n";
        continue;
      }
      *found += compare_bytes("example '" + name + "'", page.bytes(name), m_encode(object));
      *found += compare_bytes("sums of example '" + name + "'", page.bytes(name), page.with(name, {}));
      check_decoded(page, name, page.bytes(name), {}, found);
    }
    for (const std::string& name : left) {
      *found += "example '" + name + "' is not checked\n";
    }
    for (const auto& [row, change] : m_fields) {
      check_change(page, row, change, found);
    }
    for (const auto& [row, value] : m_constants) {
      check_constant(page, row, value, found);
    }
    for (const auto& [row, names] : m_names) {
      check_names(page, row, names, found);
    }
  }

  void check_rows(const PageStructure& page, std::string* found) const {
    std::set<std::string> checked;
    for (const auto& [row, change] : m_fields) {
      checked.insert(row);
    }
    for (const auto& [row, value] : m_derived) {
      checked.insert(row);
    }
    for (const auto& [row, value] : m_constants) {
      checked.insert(row);
    }
    for (const PageStructure::Row& row : page.rows()) {
      const bool follows = PageStructure::is_zeros(row) || PageStructure::is_checksum(row);
      if (checked.erase(row.name) == 0 && !follows) {
        *found += "row '" + row.name + "' is not checked\n";
      }
      if (page.names(row.name).size() > 1 && !m_names.contains(row.name)) {
        *found += "the names of row '" + row.name + "' are not checked\n";
      }
    }
    for (const std::string& row : checked) {
      *found += "there is no row '" + row + "'\n";
    }
  }

  // The objects' values at each row of the example, but for `changed`, which has another one.
  void check_decoded(const PageStructure& page, const std::string& example, const std::string& bytes,
                     const std::string& changed, std::string* found) const {
    T object{};
    if (!m_decode(bytes, &object)) {
      *found +=
          "the code refuses example '" + example + "'" + (changed.empty() ? "" : " with another " + changed) + "\n";
      return;
    }
    for (const auto& [row, change] : m_fields) {
      if (!change.get || !page.has(example, row)) {
        continue;
      }
      const PageValue expected = row == changed ? change.other : page.value(example, row);
      if (change.get(object) != expected) {
        *found += "the code reads something else at '" + row + "' of example '" + example + "'" +
                  (changed.empty() ? "" : " with another " + changed) + "\n";
      }
    }
    *found += compare_bytes("'" + example + "', read and written" + (changed.empty() ? "" : ", another " + changed),
                            bytes, m_encode(object));
  }

  void check_change(const PageStructure& page, const std::string& row, const Change& change, std::string* found) {
    for (const auto& [name, object] : m_objects) {
      if (!page.has(name, row)) {
        continue;
      }
      T changed = object;
      change.set(changed, change.other);
      std::map<std::string, PageValue> values{{row, change.other}};
      for (const auto& [derived, value] : m_derived) {
        if (page.has(name, derived)) {
          values.emplace(derived, value(changed));
        }
      }
      const std::string expected = page.with(name, values);
      if (expected == page.bytes(name)) {
        *found += "'" + row + "' of example '" + name + "' is not another one\n";
      }
      *found += compare_bytes("example '" + name + "' with another '" + row + "'", expected, m_encode(changed));
      check_decoded(page, name, expected, row, found);
      return;
    }
    *found += "no example has '" + row + "'\n";
  }

  void check_constant(const PageStructure& page, const std::string& row, const PageValue& value, std::string* found) {
    if (page.constant(row) != value) {
      *found += "'" + row + "': the page names another value than the code has\n";
    }
    for (const auto& [name, object] : m_objects) {
      if (!page.has(name, row)) {
        continue;
      }
      PageValue other = value;
      if (other.number) {
        *other.number ^= 0x18;
      } else {
        other.bytes->front() ^= 0x18;
      }
      T read{};
      if (page.value(name, row) != value) {
        *found += "example '" + name + "' has another '" + row + "' than the code\n";
      }
      if (m_decode(page.with(name, {{row, other}}), &read)) {
        *found += "the code takes any '" + row + "'\n";
      }
      return;
    }
    *found += "no example has '" + row + "'\n";
  }

  void check_names(const PageStructure& page, const std::string& row, const std::map<std::string, PageValue>& names,
                   std::string* found) const {
    std::map<std::string, std::string> expected;
    for (const auto& [name, value] : names) {
      expected[name] = value.number ? std::to_string(*value.number) : *value.bytes;
    }
    if (page.names(row) != expected) {
      *found += "'" + row + "': the page's names are\n";
      for (const auto& [name, value] : page.names(row)) {
        *found += "  " + value + " " + name + "\n";
      }
    }
  }

  const std::string m_section;
  const Encode m_encode;
  const Decode m_decode;
  std::vector<std::pair<std::string, T>> m_objects;
  std::map<std::string, Change> m_fields;
  std::map<std::string, std::function<PageValue(const T&)>> m_derived;
  std::map<std::string, PageValue> m_constants;
  std::map<std::string, std::map<std::string, PageValue>> m_names;
  std::map<std::string, std::string> m_outside;
};

}  // namespace vtkv
