// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/tool/object_archive.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "vtkv/testing/format_page.h"
#include "vtkv/util/coding.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;

constexpr uint64_t kSeed = 0x1122334455667788;

// The first bytes of an archive of that seed, and what a writer then writes.
struct Archive {
  uint64_t seed = kSeed;
  char kind = 'H';
  std::string body;
  uint64_t objects = 0;

  std::string header() const {
    std::ostringstream out;
    ArchiveWriter writer(&out, "archive", seed);
    return out.str();
  }
  std::string record() const {
    std::ostringstream out;
    ArchiveWriter writer(&out, "archive", seed);
    EXPECT_TRUE(writer.write(static_cast<ArchiveRecord>(kind), body).ok());
    return out.str().substr(header().size());
  }
  std::string end() const {
    std::ostringstream out;
    ArchiveWriter writer(&out, "archive", seed);
    EXPECT_TRUE(writer.end(objects).ok());
    return out.str().substr(header().size() + 9);
  }
};

bool opens(const std::string& bytes) {
  std::istringstream in(bytes);
  std::string note;
  return ArchiveReader(&in, "archive").open(&note).ok() && note.empty();
}

bool reads(const std::string& bytes, ArchiveRecord* kind, std::string* body) {
  std::istringstream in(Archive{}.header() + bytes);
  ArchiveReader reader(&in, "archive");
  std::string note;
  return reader.open(&note).ok() && reader.read(kind, body).ok();
}

TEST(ObjectArchive, ArchiveIsAsOnThePage) {
  FormatCheck<Archive> check(
      "Archive", [](const Archive& archive) { return archive.header(); },
      [](const std::string& bytes, Archive* archive) {
        archive->seed = vtkv::decode_fixed64(bytes.data() + 16);
        return opens(bytes);
      });
  check.example("archive", {});
  check.constant("magic", "SWIMARCH");
  check.constant("version", kArchiveVersion);
  check.field("seed", 0x2233445566778899, &Archive::seed);
  EXPECT_EQ(check.findings(), "");
}

TEST(ObjectArchive, ArchiveRecordIsAsOnThePage) {
  const auto decode = [](const std::string& bytes, Archive* archive) {
    ArchiveRecord kind{};
    const bool good = reads(bytes, &kind, &archive->body);
    archive->kind = static_cast<char>(kind);
    return good;
  };
  FormatCheck<Archive> check("Archive record", [](const Archive& archive) { return archive.record(); }, decode);
  Archive archive;
  archive.body = "hi";
  check.example("archive record", archive);
  check.outside("seed", vtkv::raw_bytes(kSeed));
  check.field(
      "kind", "M", [](Archive& it) { return PageValue(std::string(1, it.kind)); },
      [](Archive& it, const PageValue& value) { it.kind = value.bytes->front(); });
  const auto name = [](ArchiveRecord kind) { return PageValue(std::string(1, static_cast<char>(kind))); };
  check.names("kind", {{"note", name(ArchiveRecord::note)},
                       {"collection", name(ArchiveRecord::collection)},
                       {"object", name(ArchiveRecord::object)},
                       {"doubtful", name(ArchiveRecord::doubtful)},
                       {"hints", name(ArchiveRecord::hints)},
                       {"attribute", name(ArchiveRecord::attribute)},
                       {"data", name(ArchiveRecord::data)},
                       {"omap header", name(ArchiveRecord::omap_header)},
                       {"omap values", name(ArchiveRecord::omap_values)},
                       {"end of the object", name(ArchiveRecord::object_end)},
                       {"end of the archive", name(ArchiveRecord::end)}});
  check.derived("length", [](const Archive& it) { return PageValue(it.body.size()); });
  check.field("body", "another body", &Archive::body);
  EXPECT_EQ(check.findings(), "");
}

TEST(ObjectArchive, EndOfAnArchiveIsAsOnThePage) {
  const auto decode = [](const std::string& bytes, Archive* archive) {
    archive->objects = vtkv::decode_fixed64(bytes.data());
    archive->seed = vtkv::decode_fixed64(bytes.data() + 8);
    return true;
  };
  FormatCheck<Archive> check("End of an archive", [](const Archive& archive) { return archive.end(); }, decode);
  Archive archive;
  archive.objects = 0x0102;
  check.example("end of an archive", archive);
  check.field("objects", 0x2233445566778899, &Archive::objects);
  check.field("seed", 0x33445566778899aa, &Archive::seed);
  EXPECT_EQ(check.findings(), "");
}

}  // namespace
}  // namespace swimstore
