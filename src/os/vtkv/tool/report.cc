// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/report.h"

#include <fmt/format.h>

#include <cmath>

#include "vtkv/util/utf8.h"

namespace vtkv {

namespace {

std::string plain(const ReportValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return *text;
  }
  if (const auto* number = std::get_if<uint64_t>(&value)) {
    return std::to_string(*number);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return fmt::format("{:.6g}", *number);
  }
  return std::get<bool>(value) ? "true" : "false";
}

class TextReport final : public Report {
 public:
  explicit TextReport(std::ostream* out) : m_out(*out) {}
  void field(const char* name, ReportValue value) override { m_out << name << ": " << plain(value) << "\n"; }
  void begin_table(const char*, bool titled) override { m_title_due = titled; }
  void row(const ReportFields& fields) override {
    if (std::exchange(m_title_due, false)) {
      line(fields, [](const auto& field) { return std::string(field.first); });
    }
    line(fields, [](const auto& field) { return plain(field.second); });
  }
  void end_table() override {}
  void finish() override { m_out.flush(); }
  void fail(std::string_view) override { m_out.flush(); }

 private:
  template <typename Column>
  void line(const ReportFields& fields, Column column) {
    const char* separator = "";
    for (const auto& field : fields) {
      m_out << separator << column(field);
      separator = "\t";
    }
    m_out << "\n";
  }

  std::ostream& m_out;
  bool m_title_due = false;
};

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : to_utf8(text)) {
    if (c == '"' || c == '\\') {
      result.push_back('\\');
      result.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result.push_back(c);
    }
  }
  return result + "\"";
}

std::string json(const ReportValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return quoted(*text);
  }
  const auto* number = std::get_if<double>(&value);
  return number != nullptr && !std::isfinite(*number) ? "null" : plain(value);
}

class JsonReport final : public Report {
 public:
  explicit JsonReport(std::ostream* out) : m_out(*out) {}
  void field(const char* name, ReportValue value) override { member(name) << json(value); }
  void begin_table(const char* name, bool) override {
    member(name) << "[";
    m_first_row = m_in_table = true;
  }
  void row(const ReportFields& fields) override {
    m_out << (std::exchange(m_first_row, false) ? "\n  {" : ",\n  {");
    const char* separator = "";
    for (const auto& [name, value] : fields) {
      m_out << separator << quoted(name) << ": " << json(value);
      separator = ", ";
    }
    m_out << "}";
  }
  void end_table() override {
    m_out << (m_first_row ? "]" : "\n]");
    m_in_table = false;
  }
  void finish() override {
    m_out << (m_first ? "{}\n" : "}\n");
    m_out.flush();
  }
  void fail(std::string_view reason) override {
    if (m_in_table) {
      end_table();
    }
    field("error", std::string(reason));
    finish();
  }

 private:
  std::ostream& member(const char* name) {
    return m_out << (std::exchange(m_first, false) ? "{" : ",\n") << quoted(name) << ": ";
  }

  std::ostream& m_out;
  bool m_first = true;
  bool m_first_row = true, m_in_table = false;
};

}  // namespace

std::unique_ptr<Report> make_text_report(std::ostream* out) { return std::make_unique<TextReport>(out); }
std::unique_ptr<Report> make_json_report(std::ostream* out) { return std::make_unique<JsonReport>(out); }

}  // namespace vtkv
