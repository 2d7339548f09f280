// SPDX-License-Identifier: LGPL-2.1-or-later
// What a command found, for people or for programs, written as it is found: a database may be larger than
// memory.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace vtkv {

using ReportValue = std::variant<std::string, uint64_t, double, bool>;
using ReportFields = std::vector<std::pair<const char*, ReportValue>>;

// Either single fields, or tables of rows with the same fields each, one after the other.
class Report {
 public:
  virtual ~Report() = default;
  virtual void field(const char* name, ReportValue value) = 0;
  // People get the names above the columns if `titled`.
  virtual void begin_table(const char* name, bool titled) = 0;
  virtual void row(const ReportFields& fields) = 0;
  virtual void end_table() = 0;
  // REQUIRES: no table is open. Nothing comes after it.
  virtual void finish() = 0;
  // The same for a command that did not come to its end, at any time. Programs get the reason as a last member "error"
  // behind what was found until then; for people, who see it on standard error, nothing is added.
  virtual void fail(std::string_view reason) = 0;
};

// "name: value" lines; rows with a tab between the columns.
std::unique_ptr<Report> make_text_report(std::ostream* out);
// One object; a table is an array of objects. Bytes that are no UTF-8 are written as \xHH.
std::unique_ptr<Report> make_json_report(std::ostream* out);

}  // namespace vtkv
