// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/throttle.h"

#include <algorithm>

namespace vtkv {

std::chrono::microseconds Throttle::delay(size_t closed_memtables, double pressure, double fullness) {
  std::chrono::microseconds delay{0};
  if (closed_memtables > kClosedMemtablesTolerated) {
    delay += kDelayPerMemtable * static_cast<int64_t>(closed_memtables - kClosedMemtablesTolerated);
  }
  if (const double excess = std::min(1.0, pressure) - kPressureTolerated; excess > 0) {
    delay += std::chrono::microseconds(static_cast<int64_t>(excess * static_cast<double>(kDelayPerPressure.count())));
  }
  // The collector falls behind: the more the log outgrows its target, the slower it grows.
  if (const double excess = fullness - kFullnessTolerated; excess > 0) {
    delay += std::chrono::microseconds(static_cast<int64_t>(excess * static_cast<double>(kDelayPerFullness.count())));
  }
  return std::min(kDelayMost, delay);
}

}  // namespace vtkv
