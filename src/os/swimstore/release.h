// SPDX-License-Identifier: LGPL-2.1-or-later
// How the interfaces of the releases of Ceph differ that SwimStore is built for: Reef (18) and Tentacle (20).
#pragma once

#include "ceph_ver.h"

// ObjectStore hands out iterators over an omap; later it calls back for each of its entries.
#define SWIM_CEPH_HAS_OMAP_ITERATOR (CEPH_RELEASE < 20)
#define SWIM_CEPH_HAS_OMAP_ITERATE (CEPH_RELEASE >= 20)

// Tools mount a store that they only read by another call.
#define SWIM_CEPH_MOUNTS_TO_READ (CEPH_RELEASE >= 20)

// The OSD asks its store how many objects are best listed at a time; later it has an option for that.
#define SWIM_CEPH_ASKS_FOR_LIST_MAX (CEPH_RELEASE < 20)

// A transaction whose peers all are of Tentacle may keep whole pages of its data apart.
#define SWIM_CEPH_HAS_ALIGNED_TRANSACTIONS (CEPH_RELEASE >= 20)

// A dump of counters tells by an enumeration, not by a bool, whether it is of those with labels.
#if CEPH_RELEASE >= 20
#define SWIM_CEPH_UNLABELED select_labeled_t::unlabeled
#else
#define SWIM_CEPH_UNLABELED false
#endif

// An observer names the options that it wants to hear of as strings; before, as an array of characters.
#define SWIM_CEPH_OBSERVERS_NAME_STRINGS (CEPH_RELEASE >= 20)
