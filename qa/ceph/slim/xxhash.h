// SPDX-License-Identifier: LGPL-2.1-or-later
// Ceph's include path has an old copy of xxHash on it, which its own files name by
// folder. Everything else means the system's.
#pragma once
#include "/usr/include/xxhash.h"
