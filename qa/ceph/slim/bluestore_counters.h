// SPDX-License-Identifier: LGPL-2.1-or-later
// store_test.cc names these counters even where BlueStore is left out, in a body that
// no instance then runs. Given to the compiler with -include.
#pragma once

enum {
  l_bluestore_write_new,
  l_bluestore_write_big_deferred,
  l_bluestore_issued_deferred_writes,
};
