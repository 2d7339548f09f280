// SPDX-License-Identifier: LGPL-2.1-or-later
// What a program has to know to use what another one wrote: names, kept in SwimStore's superblock and in vtkv's
// manifest. Ceph's CompatSet and the three masks of ext4 do the same with numbers; a name lets a program that does not
// know a feature say which one.
//
//   class         a program that does not know it
//   0  compat     may use everything, and keeps the name
//   1  ro_compat  may read, and must not write
//   2  incompat   must not read either
//
// Encoded, per feature: doc/on_disk_format.md, "Features".
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "vtkv/status.h"

namespace vtkv {

struct Features {
  using Names = std::set<std::string>;
  Names compat, ro_compat, incompat;

  bool operator==(const Features&) const = default;
  bool empty() const { return compat.empty() && ro_compat.empty() && incompat.empty(); }
  void add(const Features& others);

  std::string encode() const;
  // False on malformed bytes, and for a class that does not exist.
  static bool decode(std::string_view bytes, Features* features);

  // May a program that knows `known` read what has these features, or with `to_write` change it? Otherwise
  // Code::unsupported, in one sentence that begins with `what` and names those that it lacks.
  Status check(std::string_view what, const Features& known, bool to_write) const;
};

// "a, b"; "-" when there are none.
std::string to_text(const Features::Names& names);

}  // namespace vtkv
