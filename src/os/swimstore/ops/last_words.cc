// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/last_words.h"

namespace swimstore {

vtkv::Mutex& last_words() {
  static vtkv::Mutex mutex;
  return mutex;
}

}  // namespace swimstore
