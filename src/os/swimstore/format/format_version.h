// SPDX-License-Identifier: LGPL-2.1-or-later
// The versions of everything SwimStore keeps on disk. doc/on_disk_format.md, "Versions", has their history.
//
// Onodes, extent shards and collections carry a version byte, too, by which a newer one is told from a damaged one.
// Whoever changes the form of anything gives it a new version and adds a feature, of the class that says what an older
// program may still do with the store; a mount gives no store a feature, ceph-swimstore-tool's upgrade does.
//
// A store of superblock version 1 is refused: its counts do not say which blocks of a slot are still in use.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "vtkv/status.h"
#include "vtkv/util/features.h"

namespace swimstore {

static_assert(std::endian::native == std::endian::little, "durable structs are little-endian");

inline constexpr uint32_t kSuperblockVersion = 3;
inline constexpr uint32_t kSuperblockVersionOldest = 2;  // that is read
inline constexpr uint32_t kContainerHeaderVersion = 1;
inline constexpr uint8_t kAllocationPageVersion = 1;
inline constexpr uint8_t kSplitSlotVersion = 1;
inline constexpr uint8_t kNoteVersion = 3;        // with sums of compressed blobs
inline constexpr uint8_t kNoteVersionOldest = 2;  // without, and written where there are none
inline constexpr uint8_t kSlotReferencesVersion = 2;
inline constexpr uint8_t kCounterVersion = 2;  // as a note's
inline constexpr uint8_t kCounterVersionOldest = 1;
inline constexpr uint32_t kQuarantineVersion = 1;

// All that this program knows.
const vtkv::Features& known_features();
// Those of a store with so many cubes that this program makes.
vtkv::Features features_of(unsigned cubes);
const vtkv::Features& features_of_version_2();
// With it, cube 0 keeps witnesses of placement groups (witness.h). An older program would let them fall behind.
inline constexpr const char* kWitnessFeature = "witness";
// Of a store that had one cube and got others: placement groups lie in cube 0, too. An older program would let their
// witnesses fall behind, and bring others there.
inline constexpr const char* kGroupsInCube0Feature = "groups_in_cube_0";

// With it, extent shards, notes and counters may tell of compressed blobs. An older program would read none of them.
inline constexpr const char* kCompressionFeature = "compressed_blobs";

// With it, log and tree of every cube lie in the directory that the file metadata_path names. An older program would
// find none.
inline constexpr const char* kMetadataElsewhereFeature = "metadata_elsewhere";

// Ok when `found` is from `oldest` to `known`. Otherwise one sentence that names them, and the remedy.
vtkv::Status check_version(std::string_view what, uint32_t found, uint32_t known, uint32_t oldest = 1);

}  // namespace swimstore
