// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/program_version.h"

#include <fmt/format.h>

#include "vtkv/tree/manifest_format.h"
#include "vtkv/wal/log_format.h"

#ifndef SWIM_VERSION
#define SWIM_VERSION "unknown"
#endif

namespace vtkv {

std::string_view program_version() { return SWIM_VERSION; }

std::vector<FormatSupport> format_support() {
  return {{"manifest", kManifestVersion, kManifestVersion, kManifestVersion},
          {"log segment", kSegmentVersion, kSegmentVersionOldest, kSegmentVersion}};
}

std::string version_text(std::string_view program, const std::vector<FormatSupport>& formats) {
  std::string text = fmt::format("{} {}", program, program_version());
  for (const FormatSupport& format : formats) {
    text += fmt::format("\n{}: makes {}, reads {}", format.name, format.made, format.oldest_read);
    if (format.newest_read > format.oldest_read) {
      text += fmt::format(" to {}", format.newest_read);
    }
  }
  return text;
}

}  // namespace vtkv
