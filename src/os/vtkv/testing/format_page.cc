// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/format_page.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "vtkv/testing/golden.h"
#include "vtkv/util/crc32c.h"

namespace vtkv {

namespace {

const std::vector<std::string> kColumns = {"OFFSET", "TYPE", "FIELD", "MEANING"};
constexpr std::string_view kOpen = "…";  // an offset that depends on what comes before
constexpr std::string_view kTimes = "*";

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error("doc/on_disk_format.md: " + what + "\n"); }

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string()
                                         : std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(trimmed(text.substr(0, end)));
    text.remove_prefix(end + separator.size());
  }
  parts.push_back(trimmed(text));
  return parts;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells = split(line, "|");
  return cells.size() < 2 ? cells : std::vector<std::string>(cells.begin() + 1, cells.end() - 1);
}

std::optional<uint64_t> number_of(const std::string& text) {
  size_t end = 0;
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) {
    return {};
  }
  const uint64_t number = std::stoull(text, &end, text.starts_with("0x") ? 16 : 10);
  return end == text.size() ? std::optional(number) : std::nullopt;
}

struct Section {
  std::vector<std::vector<std::vector<std::string>>> tables;  // rows of cells, the header first
  std::vector<std::pair<std::string, std::vector<std::string>>> examples;
};

struct Page {
  std::map<std::string, Section> sections;
  std::map<std::string, std::string> examples;  // which section has it
};

Page read_page(std::istream& file) {
  Page page;
  Section* section = nullptr;
  bool in_block = false, in_example = false, in_table = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      in_example = !in_block && line.starts_with("```hex ");
      in_block = !in_block;
      if (in_example) {
        const std::string name = line.substr(7);
        if (section == nullptr || !page.examples.emplace(name, "").second) {
          fail("there are two examples called '" + name + "'");
        }
        section->examples.emplace_back(name, std::vector<std::string>());
      }
    } else if (in_example) {
      section->examples.back().second.push_back(line);
    } else if (!in_block && line.starts_with("#")) {
      const std::string name = trimmed(line.substr(line.find_first_not_of('#')));
      if (page.sections.contains(name)) {
        fail("there are two sections called '" + name + "'");
      }
      section = &page.sections[name];
    } else if (section != nullptr && !in_block && line.starts_with("|")) {
      if (!in_table) {
        section->tables.emplace_back();
      }
      if (line.find_first_not_of("|-: ") != std::string::npos) {
        section->tables.back().push_back(cells_of(line));
      }
    }
    in_table = !in_block && line.starts_with("|");
  }
  if (page.sections.empty()) {
    fail("it cannot be read");
  }
  return page;
}

const Page& the_page() {
  static const Page page = [] {
    std::ifstream file(SWIM_FORMAT_PAGE);
    return read_page(file);
  }();
  return page;
}

const Section& section_of(const Page& page, const std::string& name) {
  const auto found = page.sections.find(name);
  if (found == page.sections.end()) {
    fail("there is no section '" + name + "'");
  }
  return found->second;
}

// "01 ff 00*30" -> the bytes. A count times a byte, or nothing but pairs of digits.
std::string bytes_of(const std::string& text) {
  std::string bytes;
  for (const std::string& word : split(text, " ")) {
    const std::vector<std::string> times = split(word, kTimes);
    if (word.empty()) {
      continue;
    }
    if (times.size() > 2 || times[0].size() != 2 || !std::isxdigit(times[0][0]) || !std::isxdigit(times[0][1])) {
      fail("'" + word + "' is no byte in hex");
    }
    bytes.append(times.size() == 2 ? std::stoul(times[1]) : 1, static_cast<char>(std::stoi(times[0], nullptr, 16)));
  }
  return bytes;
}

}  // namespace

bool PageStructure::is_zeros(const Row& row) { return row.type.ends_with("zeros"); }
bool PageStructure::is_checksum(const Row& row) { return row.type == "crc32c"; }

PageStructure::PageStructure(std::string_view section) : m_section(section) {
  const Section& found = section_of(the_page(), m_section);
  parse(found.tables, found.examples);
}

PageStructure::PageStructure(std::string_view section, const std::string& text) : m_section(section) {
  std::istringstream stream(text);
  const Page page = read_page(stream);
  const Section& found = section_of(page, m_section);
  parse(found.tables, found.examples);
}

void PageStructure::parse(const std::vector<std::vector<std::vector<std::string>>>& tables,
                          const std::vector<std::pair<std::string, std::vector<std::string>>>& examples) {
  for (const auto& table : tables) {
    if (table.front() != kColumns) {
      continue;
    }
    if (!m_rows.empty()) {
      fail("section '" + m_section + "' has two tables");
    }
    for (size_t i = 1; i < table.size(); ++i) {
      parse_row(table[i]);
    }
  }
  if (m_rows.empty() || examples.empty()) {
    fail("section '" + m_section + "' lacks a table or an example");
  }
  for (const auto& [name, lines] : examples) {
    parse_example(name, lines);
  }
  check_offsets();
}

void PageStructure::parse_row(const std::vector<std::string>& cells) {
  if (cells.size() != kColumns.size()) {
    fail("section '" + m_section + "': a row does not have " + std::to_string(kColumns.size()) + " columns");
  }
  for (const Row& row : m_rows) {
    if (row.name == cells[2]) {
      fail("section '" + m_section + "' has two rows called '" + cells[2] + "'");
    }
  }
  m_rows.push_back({cells[0], cells[1], cells[2], cells[3]});
  const std::optional<PageBits> bits = PageBits::of(cells[1]);
  if (bits && !m_units.empty() && m_units.back().type == bits->unit) {
    // Of the same number, until all of its bits have a row.
    uint64_t taken = 0;
    bool has_bits = false;
    for (const size_t row : m_units.back().rows) {
      if (const std::optional<PageBits> others = PageBits::of(m_rows[row].type)) {
        taken |= others->mask();
        has_bits = true;
      }
    }
    if (has_bits && (taken & bits->mask()) == 0) {
      m_units.back().rows.push_back(m_rows.size() - 1);
      return;
    }
  }
  m_units.push_back({{m_rows.size() - 1}, bits ? bits->unit : cells[1]});
}

// "01 02   name", "01 02   name = value", "01 02   name: remark", "03 04" (the line before goes on). Rows that share
// the bits of a number: "01   name | name".
void PageStructure::parse_example(const std::string& name, const std::vector<std::string>& lines) {
  Fields fields;
  for (const std::string& line : lines) {
    const size_t gap = std::min(line.find("  "), line.size());
    const std::string bytes = bytes_of(line.substr(0, gap));
    const std::string words = trimmed(std::string_view(line).substr(gap));
    if (words.empty()) {
      if (fields.empty()) {
        fail("example '" + name + "' begins without a name");
      }
      fields.back().bytes += bytes;
      continue;
    }
    const size_t value = words.find(" = ");
    const std::string rows = words.substr(0, std::min(value, words.find(": ")));
    size_t unit = fields.empty() ? 0 : fields.back().unit + 1;
    for (; unit < m_units.size(); ++unit) {
      std::string joined;
      for (const size_t row : m_units[unit].rows) {
        joined += (joined.empty() ? "" : " | ") + m_rows[row].name;
      }
      if (joined == rows) {
        break;
      }
    }
    if (unit == m_units.size()) {
      fail("example '" + name + "': '" + rows + "' is no row of the table, or not behind the one before");
    }
    fields.push_back({unit, bytes, value == std::string::npos ? "" : words.substr(value + 3)});
  }
  for (const Field& field : fields) {
    if (!decode_page_value(m_units[field.unit].type, field.bytes)) {
      fail("example '" + name + "': the bytes of '" + m_rows[m_units[field.unit].rows[0]].name +
           "' are none of its TYPE");
    }
  }
  check_stated(name, fields);
  check_filled(name, fields);
  m_examples[name] = fields;
}

// Zeros "up to 4096": what follows lies there.
bool PageStructure::is_padding_up_to_an_offset(const Row& row) {
  return row.type == "zeros" && row.meaning.starts_with("up to ") && !row.meaning.starts_with("up to a multiple");
}

// A number: where all rows before are always there, each of one length, or are padded up to it. "…": elsewhere.
void PageStructure::check_offsets() const {
  bool fixed = true;
  for (size_t unit = 0; unit < m_units.size(); ++unit) {
    bool everywhere = true;
    for (const auto& [name, fields] : m_examples) {
      size_t offset = 0;
      auto field = fields.begin();
      for (; field != fields.end() && field->unit < unit; ++field) {
        offset += field->bytes.size();
      }
      const bool is_there = field != fields.end() && field->unit == unit;
      everywhere = everywhere && (is_there || field == fields.end());
      for (const size_t row : m_units[unit].rows) {
        const std::string& stated = m_rows[row].offset;
        if (is_there && !(stated == kOpen ? !fixed : fixed && number_of(stated) == offset)) {
          fail("example '" + name + "' has '" + m_rows[row].name + "' at " + std::to_string(offset) +
               ", the table at " + stated);
        }
      }
    }
    fixed = (fixed && everywhere && page_type_bytes(m_units[unit].type).has_value()) ||
            is_padding_up_to_an_offset(m_rows[m_units[unit].rows[0]]);
  }
}

void PageStructure::check_stated(const std::string& name, const Fields& fields) const {
  for (const Field& field : fields) {
    if (field.stated.empty()) {
      continue;
    }
    const std::vector<std::string> values = split(field.stated, " | ");
    for (size_t i = 0; i < m_units[field.unit].rows.size(); ++i) {
      const size_t row = m_units[field.unit].rows[i];
      const PageValue value = value_in(fields, row);
      std::string stated = values.size() == m_units[field.unit].rows.size() ? values[i] : "";
      if (stated.starts_with("−")) {
        stated = std::to_string(-std::stoll(stated.substr(std::string_view("−").size())));
        if (value.number && std::to_string(static_cast<int64_t>(*value.number)) == stated) {
          continue;
        }
      }
      const bool right = value.number ? number_of(stated) == value.number : stated == '"' + *value.bytes + '"';
      if (!right) {
        fail("example '" + name + "': the bytes of '" + m_rows[row].name + "' do not say " + field.stated);
      }
    }
  }
}

// Its checksums and its padding are what their rows say.
void PageStructure::check_filled(const std::string& name, const Fields& fields) const {
  Fields filled = fields;
  fill(&filled);
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].bytes != filled[i].bytes) {
      fail("example '" + name + "': '" + m_rows[m_units[fields[i].unit].rows[0]].name +
           "' does not reach as far as it says");
    }
  }
}

size_t PageStructure::index(std::string_view row) const {
  for (size_t i = 0; i < m_rows.size(); ++i) {
    if (m_rows[i].name == row) {
      return i;
    }
  }
  fail("section '" + m_section + "' has no row '" + std::string(row) + "'");
}

const PageStructure::Row& PageStructure::row(std::string_view name) const { return m_rows[index(name)]; }

size_t PageStructure::unit_of(size_t row) const {
  size_t unit = 0;
  while (std::find(m_units[unit].rows.begin(), m_units[unit].rows.end(), row) == m_units[unit].rows.end()) {
    ++unit;
  }
  return unit;
}

PageValue PageStructure::value_in(const Fields& fields, size_t row) const {
  for (const Field& field : fields) {
    if (field.unit == unit_of(row)) {
      PageValue value = decode_page_value(m_units[field.unit].type, field.bytes).value();
      if (const std::optional<PageBits> bits = PageBits::of(m_rows[row].type)) {
        return PageValue((*value.number & bits->mask()) >> bits->first);
      }
      return value;
    }
  }
  fail("an example of section '" + m_section + "' lacks '" + m_rows[row].name + "'");
}

void PageStructure::set(Fields* fields, size_t row, const PageValue& value) const {
  for (Field& field : *fields) {
    if (field.unit != unit_of(row)) {
      continue;
    }
    PageValue whole = value;
    if (const std::optional<PageBits> bits = PageBits::of(m_rows[row].type)) {
      const uint64_t before = *decode_page_value(m_units[field.unit].type, field.bytes)->number;
      whole = PageValue((before & ~bits->mask()) | (*value.number << bits->first & bits->mask()));
    }
    field.bytes = encode_page_value(m_units[field.unit].type, whole);
    return;
  }
  fail("an example of section '" + m_section + "' lacks '" + m_rows[row].name + "'");
}

// Zeros "up to 4096", or "up to a multiple of 4096".
void PageStructure::fill(Fields* fields) const {
  static const std::regex pattern("up to (a multiple of )?([0-9]+).*");
  size_t offset = 0;
  for (Field& field : *fields) {
    const Row& row = m_rows[m_units[field.unit].rows[0]];
    std::smatch match;
    if (row.type == "zeros" && std::regex_match(row.meaning, match, pattern)) {
      const size_t unit = std::stoul(match[2]);
      const size_t end = match[1].matched ? (offset + unit - 1) / unit * unit : unit;
      field.bytes.assign(end > offset ? end - offset : 0, '\0');
    }
    offset += field.bytes.size();
  }
}

// "of `magic` to `zone bytes` and `features`"; up to a semicolon, or the end.
std::string PageStructure::covered(const Fields& fields, const Row& row) const {
  static const std::regex name("`([^`]+)`(?: to `([^`]+)`)?");
  if (!row.meaning.starts_with("of ")) {
    fail("section '" + m_section + "': the meaning of a crc32c begins with 'of' and names what it covers");
  }
  const std::string names = row.meaning.substr(0, row.meaning.find(';'));
  std::string bytes;
  for (std::sregex_iterator match(names.begin(), names.end(), name), end; match != end; ++match) {
    if (const auto outside = m_outside.find((*match)[1]); outside != m_outside.end()) {
      bytes += outside->second;
      continue;
    }
    const size_t first = unit_of(index((*match)[1].str()));
    const size_t last = (*match)[2].matched ? unit_of(index((*match)[2].str())) : first;
    for (const Field& field : fields) {
      bytes += field.unit >= first && field.unit <= last ? field.bytes : "";
    }
  }
  return bytes;
}

void PageStructure::sum(Fields* fields) const {
  // A checksum may cover another one.
  for (int round = 0; round < 2; ++round) {
    for (Field& field : *fields) {
      const Row& row = m_rows[m_units[field.unit].rows[0]];
      if (is_checksum(row)) {
        field.bytes = encode_page_value("u32", crc32c(covered(*fields, row)));
      }
    }
  }
}

const PageStructure::Fields& PageStructure::fields_of(const std::string& example) const {
  const auto found = m_examples.find(example);
  if (found == m_examples.end()) {
    fail("section '" + m_section + "' has no example '" + example + "'");
  }
  return found->second;
}

std::vector<std::string> PageStructure::examples() const {
  std::vector<std::string> names;
  for (const auto& [name, fields] : m_examples) {
    names.push_back(name);
  }
  return names;
}

std::string PageStructure::bytes(const std::string& example) const {
  std::string bytes;
  for (const Field& field : fields_of(example)) {
    bytes += field.bytes;
  }
  return bytes;
}

bool PageStructure::has(const std::string& example, std::string_view row) const {
  const size_t unit = unit_of(index(row));
  const Fields& fields = fields_of(example);
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) { return field.unit == unit; });
}

PageValue PageStructure::value(const std::string& example, std::string_view row) const {
  return value_in(fields_of(example), index(row));
}

std::string PageStructure::with(const std::string& example, const std::map<std::string, PageValue>& values) const {
  Fields fields = fields_of(example);
  for (const auto& [row, value] : values) {
    set(&fields, index(row), value);
  }
  fill(&fields);
  sum(&fields);
  std::string bytes;
  for (const Field& field : fields) {
    bytes += field.bytes;
  }
  return bytes;
}

PageValue PageStructure::constant(std::string_view row) const {
  static const std::regex pattern("`([^`]+)`.*");
  std::smatch match;
  const Row& found = m_rows[index(row)];
  if (!std::regex_match(found.meaning, match, pattern)) {
    fail("section '" + m_section + "': the meaning of '" + found.name + "' does not begin with its value in backticks");
  }
  const std::string text = match[1];
  const std::optional<uint64_t> number = number_of(text);
  return number ? PageValue(*number) : PageValue(text);
}

std::map<std::string, std::string> PageStructure::names(std::string_view row) const {
  static const std::regex pattern("`([0-9]+|[A-Z=<>])` ([^,;:.`(]+)");
  std::map<std::string, std::string> found;
  const std::string& meaning = m_rows[index(row)].meaning;
  for (std::sregex_iterator match(meaning.begin(), meaning.end(), pattern), end; match != end; ++match) {
    found[trimmed((*match)[2].str())] = (*match)[1];
  }
  return found;
}

std::string page_example(std::string_view name) {
  for (const auto& [section, found] : the_page().sections) {
    for (const auto& [example, lines] : found.examples) {
      if (example != name) {
        continue;
      }
      std::string bytes;
      for (const std::string& line : lines) {
        bytes += bytes_of(line.substr(0, std::min(line.find("  "), line.size())));
      }
      return bytes;
    }
  }
  fail("there is no example '" + std::string(name) + "'");
}

std::vector<std::vector<std::string>> page_table(std::string_view section, const std::vector<std::string>& columns) {
  for (const auto& table : section_of(the_page(), std::string(section)).tables) {
    if (table.front() == columns) {
      return {table.begin() + 1, table.end()};
    }
  }
  fail("section '" + std::string(section) + "' has no table with these columns");
}

std::string compare_bytes(std::string_view what, std::string_view page, std::string_view code) {
  if (page == code) {
    return "";
  }
  const size_t first = static_cast<size_t>(
      std::mismatch(page.begin(), page.begin() + std::min(page.size(), code.size()), code.begin()).first -
      page.begin());
  const auto dump = [](std::string_view bytes) {
    const size_t end = bytes.find_last_not_of('\0');
    return hex_dump(bytes.substr(0, end == std::string_view::npos ? 0 : end + 1));
  };
  return std::string(what) + ": page and code differ from byte " + std::to_string(first) + " on. The page, " +
         std::to_string(page.size()) + " bytes:\n" + dump(page) + "\nThe code, " + std::to_string(code.size()) + ":\n" +
         dump(code) + "\n";
}

}  // namespace vtkv
