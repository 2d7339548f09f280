// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/format_version.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "swimstore/format/collection_record.h"
#include "swimstore/format/extent_record.h"
#include "swimstore/format/omap_row.h"
#include "swimstore/format/onode_record.h"
#include "swimstore/format/unowned_range.h"
#include "swimstore/format/witness.h"
#include "swimstore/tool/object_archive.h"
#include "vtkv/span/block_format.h"
#include "vtkv/testing/format_page.h"
#include "vtkv/tree/manifest.h"
#include "vtkv/tree/manifest_format.h"
#include "vtkv/wal/log_format.h"

namespace swimstore {
namespace {

// Of each structure that has a version: what is written, and the greatest that is known.
struct Versions {
  uint32_t written = 0, greatest = 0;
  bool operator==(const Versions&) const = default;
};

TEST(FormatVersion, VersionsAreAsOnThePage) {
  const std::map<std::string, Versions> expected = {
      {"superblock", {kSuperblockVersion, kSuperblockVersion}},
      {"container header", {kContainerHeaderVersion, kContainerHeaderVersion}},
      {"quarantine", {kQuarantineVersion, kQuarantineVersion}},
      {"log segment", {vtkv::kSegmentVersion, vtkv::kSegmentVersion}},
      {"log record", {vtkv::kRecordVersion, vtkv::kRecordVersion}},
      {"manifest", {vtkv::kManifestVersion, vtkv::kManifestVersion}},
      {"block", {vtkv::kCompressedBlockVersion, vtkv::kCompressedBlockVersion}},
      {"note", {kNoteVersion, kNoteVersion}},
      {"allocation page", {kAllocationPageVersion, kAllocationPageVersion}},
      {"split slot", {kSplitSlotVersion, kSplitSlotVersion}},
      {"collection", {kCollectionRecordVersion, kCollectionRecordVersion}},
      {"extent shard", {kExtentRecordVersion, kExtentRecordVersion}},
      {"counter", {kCounterVersion, kCounterVersion}},
      {"onode", {kOnodeRecordVersion, kOnodeRecordVersion}},
      {"slot references", {kSlotReferencesVersion, kSlotReferencesVersion}},
      {"row of an omap in parts", {kOmapRowVersion, kOmapRowVersion}},
      {"floor of an omap in parts", {kOmapFloorVersion, kOmapFloorVersion}},
      {"witness", {kWitnessVersion, kWitnessVersion}},
      {"unowned range", {kUnownedRangeVersion, kUnownedRangeVersion}},
      {"archive", {kArchiveVersion, kArchiveVersion}},
  };
  std::map<std::string, Versions> found;
  for (const std::vector<std::string>& row :
       vtkv::page_table("Versions", {"structure", "version", "since", "what changed"})) {
    Versions& versions = found[row.at(0)];
    EXPECT_EQ(std::stoul(row.at(1)), ++versions.greatest) << row[0] << ": none left out, in order";
    versions.written = row[1].ends_with(", now") ? versions.greatest : versions.written;
  }
  for (const auto& [structure, versions] : found) {
    EXPECT_EQ(expected.contains(structure), true) << structure;
  }
  for (const auto& [structure, versions] : expected) {
    EXPECT_EQ(found[structure], versions)
        << structure << ": " << found[structure].written << ", at most " << found[structure].greatest;
  }
}

TEST(FormatVersion, FeaturesAreAsOnThePage) {
  vtkv::Features found, of_databases;
  for (const std::vector<std::string>& row :
       vtkv::page_table("Features", {"where", "class", "name", "since", "what"})) {
    vtkv::Features& features = row.at(0) == "superblock" ? found : of_databases;
    ASSERT_TRUE(row.at(1) == "incompat" || row.at(1) == "ro_compat") << row[1];
    (row[1] == "incompat" ? features.incompat : features.ro_compat).insert(row.at(2).substr(1, row[2].size() - 2));
  }
  EXPECT_EQ(found, known_features());
  EXPECT_EQ(of_databases, vtkv::known_features());
}

}  // namespace
}  // namespace swimstore
