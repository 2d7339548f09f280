// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/features.h"

#include <algorithm>
#include <utility>

#include "vtkv/util/coding.h"

namespace vtkv {

namespace {

constexpr size_t kNameBytesMax = 63;
constexpr Features::Names Features::* kClasses[] = {&Features::compat, &Features::ro_compat, &Features::incompat};

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kNameBytesMax && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Features::Names unknown(const Features::Names& names, const Features::Names& known) {
  Features::Names left;
  std::set_difference(names.begin(), names.end(), known.begin(), known.end(), std::inserter(left, left.end()));
  return left;
}

}  // namespace

void Features::add(const Features& others) {
  for (Names Features::* const names : kClasses) {
    (this->*names).insert((others.*names).begin(), (others.*names).end());
  }
}

std::string Features::encode() const {
  std::string bytes;
  for (uint8_t number = 0; number < std::size(kClasses); ++number) {
    for (const std::string& name : this->*kClasses[number]) {
      put_fixed8(&bytes, number);
      put_fixed8(&bytes, static_cast<uint8_t>(name.size()));
      bytes += name;
    }
  }
  return bytes;
}

bool Features::decode(std::string_view bytes, Features* features) {
  *features = {};
  std::pair<uint8_t, std::string> last;
  while (!bytes.empty()) {
    uint8_t number = 0, length = 0;
    if (!get_fixed8(&bytes, &number) || !get_fixed8(&bytes, &length) || number >= std::size(kClasses) ||
        length > bytes.size() || !is_name(bytes.substr(0, length))) {
      return false;
    }
    std::pair<uint8_t, std::string> next(number, bytes.substr(0, length));
    if (next <= last) {
      return false;
    }
    (features->*kClasses[number]).insert(next.second);
    last = std::move(next);
    bytes.remove_prefix(length);
  }
  return true;
}

Status Features::check(std::string_view what, const Features& known, bool to_write) const {
  const std::string has(std::string(what) + ": a newer program wrote here, with ");
  const std::string remedy = "; use that program, or a later one";
  if (const Names names = unknown(incompat, known.incompat); !names.empty()) {
    return Status::unsupported(
        has + "features that this program does not know and cannot read without: " + to_text(names) + remedy);
  }
  if (const Names names = unknown(ro_compat, known.ro_compat); to_write && !names.empty()) {
    return Status::unsupported(has + "features that this program does not know: " + to_text(names) +
                               ". It may be read by this program, not written to" + remedy);
  }
  return {};
}

std::string to_text(const Features::Names& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? "-" : text;
}

}  // namespace vtkv
