// SPDX-License-Identifier: LGPL-2.1-or-later
// Found before Ceph's own configuration header, which it takes over, except for the
// stores that the slim build leaves out.
#pragma once
#include_next <acconfig.h>
#ifndef SWIM_WITH_BLUESTORE
#undef WITH_BLUESTORE
#endif
#undef HAVE_BLUESTORE_PMEM
