// SPDX-License-Identifier: LGPL-2.1-or-later
// Objects out of a store into an archive, and back: what can be saved is, and what cannot is named.

#include "swimstore/tool/object_transfer.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "swimstore/format/collection_record.h"
#include "swimstore/testing/damage_fixture.h"
#include "swimstore/tool/object_archive.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {

namespace {

constexpr char kArchive[] = "the archive";

// Where each record of an archive begins; the last is its end.
std::vector<size_t> record_offsets(const std::string& archive) {
  std::vector<size_t> offsets = {28};
  while (offsets.back() < archive.size()) {
    offsets.push_back(offsets.back() + 9 + vtkv::decode_fixed32(archive.data() + offsets.back() + 1));
  }
  return offsets;
}

// As version 2 had it: no seed, and what behind an object's size names its collection is not there.
std::string without_seed(const std::string& archive) {
  const auto put_crc32c = [](std::string* bytes, std::string_view body) {
    vtkv::put_fixed32(bytes, vtkv::crc32c_extend(vtkv::crc32c(*bytes), body.data(), body.size()));
  };
  std::string old = archive.substr(0, 8);
  vtkv::put_fixed32(&old, 2);
  put_crc32c(&old, "");
  const auto offsets = record_offsets(archive);
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    std::string body = archive.substr(offsets[i] + 9, offsets[i + 1] - offsets[i] - 9);
    if (archive[offsets[i]] == 'O') {
      std::string_view rest = body, key;
      uint64_t size = 0;
      EXPECT_TRUE(vtkv::get_length_prefixed(&rest, &key) && vtkv::get_varint64(&rest, &size));
      body.resize(body.size() - rest.size());
    } else if (archive[offsets[i]] == 'Z') {
      body.resize(sizeof(uint64_t));
    }
    std::string record(1, archive[offsets[i]]);
    vtkv::put_fixed32(&record, static_cast<uint32_t>(body.size()));
    put_crc32c(&record, body);
    old += record + body;
  }
  return old;
}

// Takes so many bytes, as a disk that is full takes no more.
class FullDisk final : public std::stringbuf {
 public:
  explicit FullDisk(size_t room) : m_room(room) {}
  size_t refused() const { return m_refused; }

 protected:
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    if (static_cast<size_t>(count) > m_room) {
      ++m_refused;
      errno = ENOSPC;
      return 0;
    }
    m_room -= static_cast<size_t>(count);
    return std::stringbuf::xsputn(bytes, count);
  }

 private:
  size_t m_room, m_refused = 0;
};

// Some sectors cannot be read.
class BadDisk final : public std::stringbuf {
 public:
  BadDisk(const std::string& bytes, std::vector<size_t> sectors)
      : std::stringbuf(bytes, std::ios::in), m_sectors(std::move(sectors)) {}

 protected:
  std::streamsize xsgetn(char* bytes, std::streamsize count) override {
    const auto from = static_cast<size_t>(gptr() - eback());
    for (const size_t sector : m_sectors) {
      if (from < (sector + 1) * kSector && from + static_cast<size_t>(count) > sector * kSector) {
        throw std::ios_base::failure("input/output error");  // as a file's buffer does
      }
    }
    return std::stringbuf::xsgetn(bytes, count);
  }

 private:
  static constexpr size_t kSector = 4096;
  const std::vector<size_t> m_sectors;
};

class ObjectTransferTest : public DamageFixture {
 protected:
  std::string exported(StoreFiles::Purpose purpose = StoreFiles::Purpose::look) {
    std::ostringstream out;
    const vtkv::Status status = export_to(out, purpose);
    EXPECT_TRUE(status.ok()) << status.message();
    return out.str();
  }
  vtkv::Status export_to(std::ostream& out, StoreFiles::Purpose purpose) {
    std::unique_ptr<StoreFiles> files;
    m_exported = {};
    VTKV_RETURN_IF_ERROR(StoreFiles::open(m_env, m_path, 0, purpose, &files));
    return export_objects(*files, "", kArchive, &out, &m_exported);
  }

  // Into an empty store; what is then in `cid`.
  ModelCollection imported(const std::string& archive, const coll_t& cid = kPg) {
    std::stringbuf buffer(archive, std::ios::in);
    return imported(&buffer, cid);
  }
  ModelCollection imported(std::streambuf* archive, const coll_t& cid = kPg) {
    std::filesystem::remove_all(m_copy);
    m_copy = m_path + ".copy";
    EXPECT_TRUE(m_env->create_directory(m_copy).ok());
    SwimStore store(g_ceph_context, m_copy, m_env);
    EXPECT_EQ(0, store.mkfs());
    EXPECT_EQ(0, store.mount());
    for (const coll_t& made : m_made) {
      ObjectStore::CollectionHandle collection = store.create_new_collection(made);
      Transaction create;
      create.create_collection(made, 0);
      store.queue_transaction(collection, std::move(create));
    }
    std::istream in(archive);
    m_imported = {};
    const vtkv::Status status = import_objects(store, kArchive, &in, m_with_doubtful, &m_imported);
    EXPECT_TRUE(status.ok()) << status.message();
    ModelCollection found;
    if (ObjectStore::CollectionHandle collection = store.open_collection(cid)) {
      std::string error;
      found = read_collection(store, collection, &error);
      EXPECT_EQ("", error);
    }
    EXPECT_EQ(0, store.umount());
    return found;
  }

  void TearDown() override {
    std::filesystem::remove_all(m_copy);
    DamageFixture::TearDown();
  }

  static bool says(const TransferResult& result, const std::string& words) {
    return std::any_of(result.omitted.begin(), result.omitted.end(),
                       [&](const std::string& text) { return text.find(words) != std::string::npos; });
  }

  // In the copy.
  StoredObject found(const std::string& name) {
    std::unique_ptr<StoreFiles> files;
    StoredObject object;
    EXPECT_TRUE(StoreFiles::open(m_env, m_copy, 0, StoreFiles::Purpose::look, &files).ok());
    EXPECT_TRUE(files->open_cube().ok());
    EXPECT_TRUE(files->find_object(name, &object).ok());
    return object;
  }

  TransferResult m_exported, m_imported;
  std::vector<coll_t> m_made;  // in the store that is imported into
  bool m_with_doubtful = false;
  std::string m_copy;          // that store
};

}  // namespace

TEST_P(ObjectTransferTest, WhatIsExportedIsImported) {
  EXPECT_EQ("", difference(m_before, imported(exported())));
  EXPECT_TRUE(m_exported.omitted.empty() && m_imported.omitted.empty());
}

TEST_P(ObjectTransferTest, AnArchiveOfVersion2IsImported) {
  const std::string archive = exported();
  EXPECT_EQ("", difference(m_before, imported(without_seed(archive))));
  EXPECT_TRUE(m_imported.omitted.empty());
}

TEST_P(ObjectTransferTest, HintsAreKept) {
  mounted([](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    Transaction txn;
    txn.set_alloc_hint(kPg, named("small"), 4 << 20, 1 << 16, CEPH_OSD_ALLOC_HINT_FLAG_INCOMPRESSIBLE);
    store.queue_transaction(pg, std::move(txn));
  });
  imported(exported());
  const OnodeRecord record = found("small").record;
  EXPECT_TRUE(record.test(OnodeRecord::has_hints));
  EXPECT_EQ(4u << 20, record.expected_object_size);
  EXPECT_EQ(1u << 16, record.expected_write_size);
  EXPECT_EQ(CEPH_OSD_ALLOC_HINT_FLAG_INCOMPRESSIBLE, record.alloc_hint_flags);
  EXPECT_FALSE(found("other").record.test(OnodeRecord::has_hints));
}

TEST_P(ObjectTransferTest, NamesMayHoldAnyByte) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) {
    every.push_back(static_cast<char>(byte));
  }
  const ghobject_t odd(hobject_t(object_t(every), every + "k", 5, 9, 1, every + "n"));
  mounted([&](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    Transaction txn;
    txn.touch(kPg, odd);
    auto value = bytes(10, 'x');
    txn.setattr(kPg, odd, every.substr(1), value);  // a name ends with a zero where Ceph passes it on
    txn.omap_setkeys(kPg, odd, std::map<std::string, ceph::bufferlist>{{every, value}});
    store.queue_transaction(pg, std::move(txn));
  });
  const ModelCollection before = contents();
  EXPECT_TRUE(before.contains(odd));
  EXPECT_EQ("", difference(before, imported(exported())));
}

TEST_P(ObjectTransferTest, ALargeOmapIsKeptWhole) {
  for (int part = 0; part < 18; ++part) {
    mounted([&](SwimStore& store, ObjectStore::CollectionHandle& pg) {
      Transaction txn;
      std::map<std::string, ceph::bufferlist> values;
      for (int number = 0; number < 16; ++number) {
        values[fmt::format("key{:02}.{:02}", part, number)] = bytes(1 << 16, 'v');
      }
      txn.omap_setkeys(kPg, named("omap"), values);
      store.queue_transaction(pg, std::move(txn));
    });
  }
  const ModelCollection before = contents();
  EXPECT_EQ("", difference(before, imported(exported())));
  EXPECT_TRUE(m_exported.omitted.empty());
}

TEST_P(ObjectTransferTest, WhatLiesBeyondAnObjectsSizeIsNobodys) {
  damage([](Cube& cube, Damage& damage) {
    Stored large = stored(cube, "large");
    large.record.size = 70'000;
    store(damage, "large", large);
  });
  const std::string archive = exported();
  EXPECT_TRUE(m_exported.omitted.empty());
  m_before[named("large")].data.resize(70'000);
  EXPECT_EQ("", difference(m_before, imported(archive)));
  EXPECT_TRUE(m_imported.omitted.empty());
}

TEST_P(ObjectTransferTest, ObjectsOfNoCollectionAreSaved) {
  damage([](Cube& cube, Damage& damage) {
    std::string value;
    ASSERT_TRUE(cube.database().get(object_key(named("omap")), &value).ok());
    damage.batch.put(object_key(named("stray", 9)), value);
  });
  const std::string archive = exported();
  EXPECT_EQ(6u, m_exported.objects);
  EXPECT_EQ(1u, m_exported.omitted.size());  // it says so
  EXPECT_EQ("", difference(m_before, imported(archive)));
  ASSERT_FALSE(m_imported.omitted.empty());
  EXPECT_NE(std::string::npos, m_imported.omitted[0].find("stray"));
  const coll_t other(spg_t(pg_t(0, 9)));
  m_made = {other};
  EXPECT_EQ(m_before[named("omap")], imported(archive, other)[named("stray", 9)]);
  EXPECT_TRUE(m_imported.omitted.empty());
}

TEST_P(ObjectTransferTest, ObjectsOfADamagedCollectionAreSaved) {
  put(collection_key(kPg), "damaged");
  const std::string archive = exported();
  EXPECT_EQ(5u, m_exported.objects);
  m_made = {kPg};
  EXPECT_EQ("", difference(m_before, imported(archive)));
}

// Whoever imports may not have seen what export said.
TEST_P(ObjectTransferTest, WhatExportLeavesOutTheArchiveNames) {
  put(object_key(named("other")), "damaged");
  const std::string archive = exported();
  const std::string left_out = "object " + describe_object_key(object_key(named("other"))) + " was left out";
  EXPECT_EQ(4u, m_exported.objects);
  EXPECT_TRUE(says(m_exported, left_out));
  m_before.erase(named("other"));
  EXPECT_EQ("", difference(m_before, imported(archive)));
  EXPECT_TRUE(says(m_imported, "the archive says: " + left_out));
}

// The archive has a sentence for each; memory and what is printed have not.
TEST_P(ObjectTransferTest, OfVeryManyObjectsLeftOutTheFirstThousandAreTold) {
  constexpr size_t kMore = 5;
  damage([](Cube&, Damage& damage) {
    for (size_t number = 0; number < TransferResult::kToldMax + kMore; ++number) {
      damage.batch.put(object_key(named("damaged" + std::to_string(number))), "damaged");
    }
  });
  const std::string archive = exported();
  EXPECT_EQ(5u, m_exported.objects);
  EXPECT_EQ(TransferResult::kToldMax, m_exported.omitted.size());
  EXPECT_EQ(kMore, m_exported.untold);
  size_t notes = 0;
  const auto offsets = record_offsets(archive);
  for (size_t record = 0; record + 1 < offsets.size(); ++record) {
    notes += archive[offsets[record]] == 'N';
  }
  EXPECT_EQ(TransferResult::kToldMax + kMore, notes);
  EXPECT_EQ("", difference(m_before, imported(archive)));
  EXPECT_EQ(TransferResult::kToldMax + 2, m_imported.omitted.size());  // and what to do about them and about the PG
  EXPECT_EQ(kMore, m_imported.untold);
  EXPECT_TRUE(says(m_imported, "ceph pg repair"));
}

// The store was split, or was not, since the archive was written.
TEST_P(ObjectTransferTest, ObjectsGoWhereTheyBelongNow) {
  std::string archive = exported();
  m_made = {coll_t(spg_t(pg_t(0, 1)))};
  const auto offsets = record_offsets(archive);
  std::ostringstream other;
  ArchiveWriter writer(&other, kArchive, vtkv::decode_fixed64(archive.data() + 16));
  std::string body;
  vtkv::put_length_prefixed(&body, coll_t(spg_t(pg_t(1, 1))).to_str());
  vtkv::put_varint32(&body, 1);
  ASSERT_TRUE(writer.write(ArchiveRecord::collection, body).ok());
  EXPECT_EQ("", difference(m_before, imported(other.str() + archive.substr(offsets[1]))));
  EXPECT_EQ(0u, m_imported.collections);
}

// Else the import would be taken for whole.
TEST_P(ObjectTransferTest, WhereTheStoreCannotSayWhetherAnObjectIsThereTheImportFails) {
  const std::string archive = exported();
  put(object_key(named("other")), "no onode");
  damage([](Cube&, Damage& damage) { damage.batch.remove(object_key(named("small"))); });
  SwimStore store(g_ceph_context, m_path, m_env);
  ASSERT_EQ(0, store.mount());
  std::istringstream in(archive);
  TransferResult result;
  const vtkv::Status status = import_objects(store, kArchive, &in, false, &result);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("whether it has object"), std::string_view::npos) << status.message();
  EXPECT_TRUE(says(result, "other"));
  EXPECT_EQ(result.objects, 1u) << "it goes on with the others";
  EXPECT_EQ(0, store.umount());
}

TEST_P(ObjectTransferTest, AFullDiskEndsTheExport) {
  const size_t whole = exported().size();
  for (const size_t room : {whole / 8, whole / 2, whole - 10}) {
    FullDisk disk(room);
    std::ostream out(&disk);
    const vtkv::Status status = export_to(out, StoreFiles::Purpose::look);
    EXPECT_TRUE(status.is_no_space()) << status.message();
    EXPECT_NE(std::string::npos, status.message().find(kArchive));
    EXPECT_EQ(1u, disk.refused());
  }
}

TEST_P(ObjectTransferTest, ImportGoesOnBehindADamagedRecord) {
  const std::string archive = exported();
  const auto offsets = record_offsets(archive);
  for (size_t record = 0; record + 1 < offsets.size(); ++record) {
    const size_t at = std::array{1, 0, 4, 3, 9, 6}[record % 6];  // kind, length, checksum, body
    std::string damaged = archive;
    damaged[offsets[record] + at] ^= 0x15;
    const ModelCollection saved = imported(damaged);
    EXPECT_FALSE(m_imported.omitted.empty());
    EXPECT_GE(saved.size() + 1, m_before.size()) << record << " " << at;
    for (const auto& [oid, object] : saved) {
      EXPECT_EQ(m_before[oid], object);
    }
  }
}

// Its records have good checksums, too.
TEST_P(ObjectTransferTest, AnArchiveInAnObjectIsDataWhereverImportSearches) {
  const std::string inner = exported();
  mounted([&](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    Transaction txn;
    txn.remove(kPg, named("small"));  // of which the inner archive tells
    ceph::bufferlist data;
    data.append(inner);
    txn.write(kPg, named("archive"), 0, data.length(), data);
    store.queue_transaction(pg, std::move(txn));
  });
  const ModelCollection before = contents();
  std::string archive = exported();
  const auto offsets = record_offsets(archive);
  const size_t at = archive.find(inner.substr(0, 100));
  ASSERT_NE(std::string::npos, at);
  const auto record = std::upper_bound(offsets.begin(), offsets.end(), at) - 1;
  archive[*record + 3] ^= 0x40;  // of its length
  const ModelCollection saved = imported(archive);
  EXPECT_FALSE(m_imported.omitted.empty());
  EXPECT_EQ(before.size(), saved.size() + 1);
  for (const auto& [oid, object] : saved) {
    ASSERT_TRUE(before.contains(oid)) << oid;
    EXPECT_EQ(before.at(oid), object);
  }
}

// An OSD would not load it, and end when it is to make it.
TEST_P(ObjectTransferTest, APgWithoutItsOwnObjectIsNamed) {
  spg_t pgid;
  ASSERT_TRUE(kPg.is_pg(&pgid));
  mounted([&](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    Transaction txn;
    txn.touch(kPg, pgid.make_pgmeta_oid());
    store.queue_transaction(pg, std::move(txn));
  });
  const std::string archive = exported();
  const auto offsets = record_offsets(archive);
  ASSERT_EQ('C', archive[offsets[0]]);
  ASSERT_EQ('O', archive[offsets[1]]);
  for (const bool both : {false, true}) {
    std::string damaged = archive;
    damaged[offsets[0] + 9] ^= 0x15;
    damaged[offsets[1] + 9] ^= both ? 0x15 : 0;
    EXPECT_EQ(both ? 5u : 6u, imported(damaged).size());
    const bool told = std::any_of(m_imported.omitted.begin(), m_imported.omitted.end(), [](const std::string& text) {
      return text.find("lacks its own object") != std::string::npos;
    });
    EXPECT_EQ(both, told);
    EXPECT_NE(std::string::npos, m_imported.omitted.back().find("ceph pg repair"));
  }
}

TEST_P(ObjectTransferTest, ImportGoesOnBehindBadSectors) {
  const std::string archive = exported();
  ASSERT_GT(archive.size(), 8 * 4096u);
  size_t saved_of_all = 0;
  for (size_t sector = 0; sector * 4096 < archive.size(); sector += 3) {
    BadDisk disk(archive, {sector});
    const ModelCollection saved = imported(&disk);
    EXPECT_FALSE(m_imported.omitted.empty()) << sector;
    for (const auto& [oid, object] : saved) {
      EXPECT_EQ(m_before[oid], object);
    }
    saved_of_all += m_before.size() - saved.size() <= 1;
  }
  EXPECT_GT(saved_of_all, archive.size() / 4096 / 3 * 3 / 4);
}

TEST_P(ObjectTransferTest, AnArchiveWhoseFirstBytesAreDamagedIsReadByItsLastRecord) {
  const std::string archive = exported();
  for (const size_t at : {0, 9, 14, 17, 25}) {
    std::string damaged = archive;
    damaged[at] ^= 0x15;
    EXPECT_EQ("", difference(m_before, imported(damaged))) << at;
    ASSERT_EQ(1u, m_imported.omitted.size());
    EXPECT_NE(std::string::npos, m_imported.omitted[0].find("its first bytes are damaged"));
  }
}

TEST_P(ObjectTransferTest, WhatIsDoubtfulIsImportedOnRequestOnly) {
  const std::string archive = exported();
  const auto offsets = record_offsets(archive);
  std::ostringstream marks;
  ArchiveWriter writer(&marks, kArchive, vtkv::decode_fixed64(archive.data() + 16));
  ASSERT_TRUE(writer.write(ArchiveRecord::note, "a block is lost").ok());
  const std::string beginning = marks.str();
  ASSERT_TRUE(writer.write(ArchiveRecord::doubtful, "it may be older").ok());
  const std::string doubt = marks.str().substr(beginning.size());
  size_t object = 0;
  while (archive[offsets[object]] != 'O') {
    ++object;
  }
  const size_t behind = offsets[object + 1];
  const std::string marked =
      beginning + archive.substr(offsets[0], behind - offsets[0]) + doubt + archive.substr(behind);
  const ModelCollection saved = imported(marked);
  EXPECT_EQ(m_before.size(), saved.size() + 1);
  for (const auto& [oid, one] : saved) {
    EXPECT_EQ(m_before[oid], one);
  }
  ASSERT_GT(m_imported.omitted.size(), 2u);
  EXPECT_NE(std::string::npos, m_imported.omitted[0].find("a block is lost"));
  EXPECT_NE(std::string::npos, m_imported.omitted[1].find("--doubtful"));
  EXPECT_NE(std::string::npos, m_imported.omitted[1].find("it may be older"));
  EXPECT_NE(std::string::npos, m_imported.omitted.back().find("PGs of what was left out are incomplete"));
  m_with_doubtful = true;
  EXPECT_EQ("", difference(m_before, imported(marked)));
  EXPECT_EQ(1u, m_imported.doubtful);
}

TEST_P(ObjectTransferTest, APgWhoseOwnObjectIsDoubtfulIsNamedAndHowToGetIt) {
  spg_t pgid;
  ASSERT_TRUE(kPg.is_pg(&pgid));
  mounted([&](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    Transaction txn;
    txn.touch(kPg, pgid.make_pgmeta_oid());
    store.queue_transaction(pg, std::move(txn));
  });
  const std::string archive = exported();
  const auto offsets = record_offsets(archive);
  ASSERT_EQ('O', archive[offsets[1]]);  // its own, which is the first
  std::ostringstream doubt;
  ArchiveWriter writer(&doubt, kArchive, vtkv::decode_fixed64(archive.data() + 16));
  ASSERT_TRUE(writer.write(ArchiveRecord::doubtful, "it may be older").ok());
  const std::string marked = archive.substr(0, offsets[2]) + doubt.str().substr(28) + archive.substr(offsets[2]);
  imported(marked);
  EXPECT_TRUE(says(m_imported, "lacks its own object"));
  EXPECT_TRUE(says(m_imported, "import again with --doubtful if it was left out for that"));
  m_with_doubtful = true;
  imported(marked);
  EXPECT_FALSE(says(m_imported, "lacks its own object"));
  EXPECT_EQ(1u, m_imported.doubtful);
}

TEST_P(ObjectTransferTest, ImportOfACutArchiveKeepsWhatIsWhole) {
  const std::string archive = exported();
  const auto offsets = record_offsets(archive);
  m_made = {kPg};
  size_t saved = 0;
  for (size_t record = 0; record + 1 < offsets.size(); record += 3) {
    const size_t now = imported(archive.substr(0, offsets[record + 1] - 5)).size();
    EXPECT_FALSE(m_imported.omitted.empty());
    EXPECT_GE(now, saved);
    saved = now;
  }
  EXPECT_GT(saved, 2u);
}

TEST_P(ObjectTransferTest, TheLastRecordCountsTheObjects) {
  const std::string archive = exported();
  const auto offsets = record_offsets(archive);
  size_t first = 0;  // object
  while (archive[offsets[first]] != 'O') {
    ++first;
  }
  size_t behind = first;
  while (archive[offsets[behind++]] != 'E') {
  }
  imported(archive.substr(0, offsets[first]) + archive.substr(offsets[behind]));
  ASSERT_FALSE(m_imported.omitted.empty());
  EXPECT_NE(std::string::npos, m_imported.omitted[0].find("written with 5 objects, and 4"));
}

// Import waits as a program does, which the simulator's one thread cannot.
// The name of a collection does not tell whose they are.
TEST_P(ObjectTransferTest, QuarantinedEntriesAreNamedInAnArchiveOfOneCollection) {
  put(quarantined_key(0, object_key(named("gone"))), "no onode");
  std::unique_ptr<StoreFiles> files;
  TransferResult result;
  std::ostringstream out;
  ASSERT_TRUE(StoreFiles::open(m_env, m_path, 0, StoreFiles::Purpose::salvage, &files).ok());
  ASSERT_TRUE(export_objects(*files, kPg.to_str(), "archive", &out, &result).ok());
  ASSERT_EQ(1u, result.omitted.size());
  EXPECT_NE(std::string::npos, result.omitted.front().find("1 entries that repair quarantined"));
}

INSTANTIATE_TEST_SUITE_P(OnTheHost, ObjectTransferTest, ::testing::Values(Host::real));

}  // namespace swimstore
