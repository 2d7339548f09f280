// SPDX-License-Identifier: LGPL-2.1-or-later
// Scripts of the crash explorer: one violation, as text.

#include <charconv>
#include <sstream>

#include "vtkv/testing/crash_explorer.h"
#include "vtkv/testing/mutations.h"

namespace vtkv {

namespace {

void add_state(const CrashState& state, const std::string& prefix, std::string* out) {
  *out +=
      prefix + "cut " + std::to_string(state.cut_index) + " " + std::to_string(state.cut) + "\n" + prefix + "landed";
  for (const uint32_t op : state.landed) {
    *out += " " + std::to_string(op);
  }
  *out += "\n";
  if (state.tear) {
    *out += prefix + "torn " + std::to_string(state.tear->op) + " " + std::to_string(state.tear->granule) + " ";
    for (const bool fragment : state.tear->fragments) {
      *out += fragment ? '1' : '0';
    }
    *out += "\n";
  }
}

template <class Number>
bool to_number(const std::string& word, Number* number) {
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, *number);
  return error == std::errc() && rest == end;
}

bool parse_state_line(const std::string& key, const std::vector<std::string>& words, CrashState* state) {
  if (key == "cut") {
    return words.size() == 2 && to_number(words[0], &state->cut_index) && to_number(words[1], &state->cut);
  }
  if (key == "landed") {
    for (const std::string& word : words) {
      if (!to_number(word, &state->landed.emplace_back())) {
        return false;
      }
    }
    return true;
  }
  if (key == "torn" && words.size() == 3) {
    CrashTear tear;
    for (const char fragment : words[2]) {
      tear.fragments.push_back(fragment == '1');
    }
    state->tear = tear;
    return to_number(words[0], &state->tear->op) && to_number(words[1], &state->tear->granule) &&
           state->tear->granule > 0;
  }
  return false;
}

bool parse_line(std::string key, const std::vector<std::string>& words, CrashViolation* violation) {
  constexpr std::string_view kSecond = "second-";
  if (key.starts_with(kSecond)) {
    if (!violation->second) {
      violation->second.emplace();
    }
    return parse_state_line(key.substr(kSecond.size()), words, &*violation->second);
  }
  if (key == "cut" || key == "landed" || key == "torn") {
    return parse_state_line(key, words, &violation->state);
  }
  if (words.size() != 1) {
    return false;
  }
  CrashRun& run = violation->run;
  const std::string& word = words[0];
  if (key == "stack") {
    run.stack = word;
    return true;
  }
  if (key == "mutation") {
    return parse_mutation(word, &run.mutation.emplace()).ok();
  }
  return key == "profile"       ? parse_profile(word, &run.profile)
         : key == "seed"        ? to_number(word, &run.seed)
         : key == "steps"       ? to_number(word, &run.steps)
         : key == "interleaved" ? (run.interleaved = word == "yes", true)
         : key == "check-seed"  ? to_number(word, &violation->check_seed)
         : key == "image"       ? to_number(word, &violation->image)
                                : false;
}

}  // namespace

std::string to_script(const CrashViolation& violation) {
  std::string out = "# " + violation.what + "\n";
  for (const std::string& line : violation.story) {
    out += "#   " + line + "\n";
  }
  const CrashRun& run = violation.run;
  out += "stack " + run.stack + "\nprofile " + std::string(to_string(run.profile)) + "\nseed " +
         std::to_string(run.seed) + "\nsteps " + std::to_string(run.steps) + "\n";
  if (run.interleaved) {
    out += "interleaved yes\n";
  }
  if (run.mutation) {
    out += "mutation " + std::string(to_string(*run.mutation)) + "\n";
  }
  add_state(violation.state, "", &out);
  out += "check-seed " + std::to_string(violation.check_seed) + "\n";
  if (violation.second) {
    add_state(*violation.second, "second-", &out);
  }
  return out + "image " + std::to_string(violation.image) + "\n";
}

Status parse_script(std::string_view script, CrashViolation* violation) {
  *violation = CrashViolation();
  std::istringstream lines{std::string(script)};
  std::string line;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    std::istringstream text(line.substr(0, line.find('#')));
    std::string key;
    if (!(text >> key)) {
      continue;
    }
    std::vector<std::string> words;
    for (std::string word; text >> word;) {
      words.push_back(word);
    }
    if (!parse_line(key, words, violation)) {
      return Status::invalid_argument("line " + std::to_string(number) + " of the script is not understood: " + line);
    }
  }
  if (violation->run.stack.empty()) {
    return Status::invalid_argument("the script names no stack; use one that the explorer has printed");
  }
  return Status();
}

bool parse_profile(std::string_view name, SimProfile* profile) {
  for (const SimProfile one : {SimProfile::ext4, SimProfile::xfs, SimProfile::btrfs, SimProfile::weakest}) {
    if (to_string(one) == name) {
      *profile = one;
      return true;
    }
  }
  return false;
}

}  // namespace vtkv
