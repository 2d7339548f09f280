// SPDX-License-Identifier: LGPL-2.1-or-later
// What `export --salvage` saves of a store in which one block of one file is damaged, against what could be saved:
// every block of superblock, container header, manifest, log and tree in turn, some of the data, and every small file
// removed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "swimstore/testing/damage_fixture.h"
#include "swimstore/tool/object_archive.h"
#include "swimstore/tool/object_transfer.h"
#include "vtkv/span/block.h"
#include "vtkv/util/coding.h"

namespace swimstore {

namespace {

constexpr size_t kBlock = 4096;
constexpr uint64_t kInTree = 600, kInLog = 24, kChanged = 8;
// Of objects whose keys the filter of the damaged run takes for its own.
constexpr size_t kMistakenMax = 12;

struct SavedObject {
  std::string records;
  bool is_doubtful = false;
};
using Saved = std::map<std::string, SavedObject>;  // by the object's key
using Keys = std::set<std::string>;

struct Tally {
  uint64_t damages = 0, saved = 0, doubtful_most = 0, missing_most = 0;
};

class SalvageTest : public DamageFixture {
 protected:
  // Two runs: many objects; changes and tombstones of some. And a log behind them.
  void SetUp() override {
    DamageFixture::SetUp();
    add("object", 0, kInTree);
    add("removed", 0, kChanged);
    flush();
    damage([](Cube& cube, Damage&) { ASSERT_TRUE(cube.database().compact().ok()); });  // the changes stay above
    mounted([](SwimStore& store, ObjectStore::CollectionHandle& pg) {
      for (uint64_t number = 0; number < kChanged; ++number) {
        Transaction txn;
        txn.remove(kPg, numbered("removed", number));
        auto attribute = bytes(150, 'x');
        txn.setattr(kPg, numbered("object", 5 * number + 1), "attribute", attribute);
        const ghobject_t with_omap = numbered("object", 16 * number);
        txn.omap_clear(kPg, with_omap);
        txn.omap_setkeys(kPg, with_omap, std::map<std::string, ceph::bufferlist>{{"new", bytes(40, 'p')}});
        store.queue_transaction(pg, std::move(txn));
      }
    });
    flush();  // no third time: compaction merges the runs of four flushes, and an open may have made one
    add("between", 0, 1);
    add("logged", 0, kInLog);
    std::vector<std::string> said;
    ASSERT_TRUE(salvage(&m_whole, &said).ok());
    ASSERT_TRUE(said.empty()) << said.front();
    ASSERT_EQ(5 + kInTree + 1 + kInLog, m_whole.size());
    find_owners();
  }

  static ghobject_t numbered(const std::string& name, uint64_t number) {
    return ghobject_t(hobject_t(object_t(fmt::format("{}{}", name, number)), "", CEPH_NOSNAP,
                                static_cast<uint32_t>((number + name.size()) * 2'654'435'761u), 1, ""));
  }

  void flush() {
    damage([](Cube& cube, Damage&) { ASSERT_TRUE(cube.database().flush().ok()); });
  }

  void add(const std::string& name, uint64_t first, uint64_t end) {
    mounted([&](SwimStore& store, ObjectStore::CollectionHandle& pg) {
      for (uint64_t number = first; number < end; ++number) {
        const ghobject_t oid = numbered(name, number);
        Transaction txn;
        auto attribute = bytes(150, static_cast<char>('a' + number % 7));
        txn.touch(kPg, oid);
        txn.setattr(kPg, oid, "attribute", attribute);
        if (number % 16 == 0) {
          auto data = bytes(70'000, 'd');  // extents of its own
          txn.write(kPg, oid, 0, 70'000, data);
          txn.omap_setkeys(kPg, oid, std::map<std::string, ceph::bufferlist>{{"key", bytes(40, 'o')}});
        }
        store.queue_transaction(pg, std::move(txn));
      }
    });
  }

  // Whose extents and omap an entry of the tree is.
  void find_owners() {
    std::unique_ptr<StoreFiles> files;
    ASSERT_TRUE(StoreFiles::open(m_env, m_path, 0, StoreFiles::Purpose::look, &files).ok());
    ASSERT_TRUE(files->open_cube().ok());
    ASSERT_TRUE(files
                    ->for_each_object([this](const StoredObject& object) {
                      m_owners[object.record.nid] = object.key;
                      if (object.record.test(OnodeRecord::has_omap)) {
                        m_with_omap.insert(object.key);
                      }
                      return vtkv::Status();
                    })
                    .ok());
  }

  vtkv::Status salvage(Saved* saved, std::vector<std::string>* said) {
    std::unique_ptr<StoreFiles> files;
    TransferResult result;
    std::ostringstream out;
    saved->clear();
    VTKV_RETURN_IF_ERROR(StoreFiles::open(m_env, m_path, 0, StoreFiles::Purpose::salvage, &files));
    VTKV_RETURN_IF_ERROR(export_objects(*files, "", "archive", &out, &result));
    *said = result.omitted;
    std::istringstream in(out.str());
    ArchiveReader reader(&in, "archive");
    std::string note;
    EXPECT_TRUE(reader.open(&note).ok());
    SavedObject* object = nullptr;
    for (;;) {
      ArchiveRecord kind;
      std::string body;
      VTKV_RETURN_IF_ERROR(reader.read(&kind, &body));
      if (kind == ArchiveRecord::end) {
        return {};
      }
      if (kind == ArchiveRecord::object) {
        std::string_view rest(body), key;
        uint64_t size = 0;
        EXPECT_TRUE(vtkv::get_length_prefixed(&rest, &key) && vtkv::get_varint64(&rest, &size));
        object = &(*saved)[std::string(key)];
        object->records = std::to_string(size);  // its collection may be what is lost
      } else if (kind == ArchiveRecord::doubtful) {
        object->is_doubtful = true;
      } else if (kind != ArchiveRecord::collection && kind != ArchiveRecord::note) {
        object->records.append(1, static_cast<char>(kind)).append(body);
      }
    }
  }

  std::string read(const std::string& path) {
    std::unique_ptr<vtkv::File> file;
    uint64_t size = 0;
    EXPECT_TRUE(m_env->open_file(path, {.direct = false}, &file).ok());
    EXPECT_TRUE(file->size(&size).ok());
    std::string content(size, '\0');
    EXPECT_TRUE(file->read(0, size, content.data()).ok());
    return content;
  }
  void write(const std::string& path, size_t at, std::string_view content) {
    std::unique_ptr<vtkv::File> file;
    EXPECT_TRUE(m_env->open_file(path, {.create = true, .direct = false}, &file).ok());
    EXPECT_TRUE(file->write(at, content.data(), content.size()).ok());
  }
  std::vector<std::string> list(const std::string& directory) {
    std::vector<std::string> names;
    EXPECT_TRUE(m_env->list_directory(directory, &names).ok());
    std::sort(names.begin(), names.end());
    return names;
  }

  // What became of the objects with one thing damaged, or a file gone.
  struct Loss {
    Keys missing, doubtful;
    std::vector<std::string> said;
    bool says(const std::string& words) const {
      return std::any_of(said.begin(), said.end(),
                         [&](const std::string& line) { return line.find(words) != std::string::npos; });
    }
  };
  // What is saved is what was there, or is called doubtful; and what is not saved is told of.
  Loss look(const std::string& structure, const std::string& where) {
    Saved saved;
    Loss loss;
    const vtkv::Status status = salvage(&saved, &loss.said);
    EXPECT_TRUE(status.ok()) << where << ": " << status.message();
    for (const auto& [key, object] : saved) {
      const auto whole = m_whole.find(key);
      EXPECT_TRUE(object.is_doubtful || (whole != m_whole.end() && whole->second.records == object.records))
          << where << ": " << describe_object_key(key) << " is not what it was, and nothing says so";
      if (object.is_doubtful && whole != m_whole.end()) {
        loss.doubtful.insert(key);
        EXPECT_TRUE(loss.says("object " + describe_object_key(key) + " is doubtful"));
      }
    }
    for (const auto& [key, object] : m_whole) {
      if (!saved.contains(key)) {
        loss.missing.insert(key);
      }
    }
    EXPECT_TRUE(loss.missing.empty() || !loss.said.empty()) << where;
    Tally& tally = m_tallies[structure];
    ++tally.damages;
    tally.saved += m_whole.size() - loss.missing.size() - loss.doubtful.size();
    tally.missing_most = std::max<uint64_t>(tally.missing_most, loss.missing.size());
    tally.doubtful_most = std::max<uint64_t>(tally.doubtful_most, loss.doubtful.size());
    return loss;
  }
  void expect_nothing_lost(const std::string& structure, const std::string& where) {
    const Loss loss = look(structure, where);
    EXPECT_TRUE(loss.missing.empty() && loss.doubtful.empty()) << where;
  }

  // Looks at the store with each used block of the file overwritten; judge(offset).
  template <typename Judge>
  void overwrite_each(const std::string& path, Judge judge, size_t step = 1) {
    const std::string content = read(path);
    size_t number = 0;
    for (size_t at = 0; at < content.size(); at += kBlock) {
      const std::string_view block = std::string_view(content).substr(at, kBlock);
      if (block.find_first_not_of('\0') != std::string_view::npos && number++ % step == 0) {
        write(path, at, std::string(block.size(), '\xa5'));
        judge(at);
        write(path, at, block);
      }
    }
  }
  // With each of its blocks in turn that cannot be read.
  template <typename Judge>
  void refuse_each(const std::string& path, Judge judge) {
    const std::string content = read(path);
    for (size_t at = 0; at < content.size(); at += kBlock) {
      if (std::string_view(content).substr(at, kBlock).find_first_not_of('\0') != std::string_view::npos) {
        m_simulated.set_bad(vtkv::SimBad::reads, path, at, at + kBlock);
        judge(at);
        m_simulated.clear_faults();
      }
    }
  }
  template <typename Judge>
  void remove_each(const std::string& directory, Judge judge) {
    for (const std::string& name : list(directory)) {
      const std::string path = directory + "/" + name;
      std::unique_ptr<vtkv::File> file;
      if (name != "lock" && m_env->open_file(path, {.read_only = true, .direct = false}, &file).ok()) {
        file.reset();
        const std::string content = read(path);
        ASSERT_TRUE(m_env->remove_file(path).ok());
        judge(path);
        write(path, 0, content);
      }
    }
  }

  // A block of the tree's file: what it is, and the objects of which it has an entry.
  struct TreeBlock {
    vtkv::BlockKind kind{};
    Keys objects;
    Keys removed;  // of them, objects whose record it removes
  };
  // By the offset of each of its pages.
  std::map<size_t, TreeBlock> tree_blocks() {
    std::map<size_t, TreeBlock> blocks;
    const std::string content = read(tree_path());
    for (size_t at = 0; at + kBlock <= content.size(); at += kBlock) {
      vtkv::block_header_t header;
      std::memcpy(&header, content.data() + at, sizeof(header));
      std::shared_ptr<const vtkv::Block> block;
      const auto kind = static_cast<vtkv::BlockKind>(header.kind);
      if (!vtkv::Block::parse(std::string_view(content).substr(at), {kind, header.span_id, header.unit}, &block).ok()) {
        continue;
      }
      TreeBlock one{kind, {}, {}};
      vtkv::BlockIterator entries(kind == vtkv::BlockKind::entries ? block : nullptr);
      for (entries.seek_to_first(); entries.valid(); entries.next()) {
        const vtkv::Entry& entry = entries.entry();
        add_owner(entry.key, &one.objects);
        if (entry.key.starts_with(key_prefix::object) && entry.type == vtkv::EntryType::tombstone) {
          one.removed.emplace(entry.key);
        }
      }
      for (size_t page = 0; page < vtkv::units_of(sizeof(header) + header.body_bytes); ++page) {
        blocks[at + page * kBlock] = one;
      }
    }
    return blocks;
  }
  void add_owner(std::string_view key, Keys* objects) const {
    uint64_t nid = 0;
    uint32_t shard = 0;
    std::string_view rest;
    if (key.starts_with(key_prefix::object)) {
      objects->emplace(key);
    } else if ((decode_extent_key(key, &nid, &shard) || decode_omap_header_key(key, &nid) ||
                decode_omap_key(key, &nid, &rest)) &&
               m_owners.contains(nid)) {
      objects->insert(m_owners.at(nid));
    }
  }
  std::string tree_path() const { return m_path + "/cubes/0/tree"; }

  // Only objects with an entry in the damaged blocks are missing; and doubtful besides are those with omap, whose keys
  // nobody knows, and a few.
  void expect_no_other_lost(const Loss& loss, const Keys& objects) {
    EXPECT_TRUE(std::includes(objects.begin(), objects.end(), loss.missing.begin(), loss.missing.end()));
    const auto is_mistaken = [&](const std::string& key) {
      return !objects.contains(key) && !m_with_omap.contains(key);
    };
    EXPECT_LE(std::count_if(loss.doubtful.begin(), loss.doubtful.end(), is_mistaken), kMistakenMax);
    EXPECT_TRUE(loss.missing.empty() || loss.says("entries of the tree are lost"));
  }

  void print() const {
    for (const auto& [structure, tally] : m_tallies) {
      std::cout << fmt::format("{:22} {:4} damages; {} of {} objects saved; of {} at most {} missing and {} doubtful\n",
                               structure, tally.damages, tally.saved, tally.damages * m_whole.size(), m_whole.size(),
                               tally.missing_most, tally.doubtful_most);
    }
  }

  Saved m_whole;
  std::map<uint64_t, std::string> m_owners;  // object keys by object number
  Keys m_with_omap;
  std::map<std::string, Tally> m_tallies;
};

}  // namespace

// Record and data of a transaction are written at the same time. Where the end came in between, what was acknowledged
// before counts.
TEST_P(SalvageTest, AnObjectWhoseNewDataHadNotArrivedIsAsItWasBefore) {
  const ghobject_t oid = numbered("object", 16);
  const std::string text = bytes(70'000, 'Z').to_str();
  mounted([&](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    Transaction txn;
    auto data = bytes(70'000, 'Z');
    txn.write(kPg, oid, 0, 70'000, data);
    store.queue_transaction(pg, std::move(txn));
  });
  const std::string containers = m_path + "/cubes/0/containers/";
  bool found = false;
  for (const std::string& name : list(containers)) {
    const size_t at = read(containers + name).find(text.substr(0, kBlock));
    if (at != std::string::npos) {
      write(containers + name, at, std::string(kBlock, '\0'));
      found = true;
    }
  }
  ASSERT_TRUE(found);
  expect_nothing_lost("data", "the last transaction's");
}

// That is damage, and not what had not arrived: what follows in the log is as it was.
TEST_P(SalvageTest, AContainerThatWasCutShortCostsOnlyWhatLayThere) {
  std::unique_ptr<vtkv::File> file;
  ASSERT_TRUE(m_env->open_file(m_path + "/cubes/0/containers/128K", {.direct = false}, &file).ok());
  mounted([&](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    Transaction large, small;
    auto data = bytes(128 << 10, 'Z');
    large.write(kPg, numbered("object", 16), 0, 128 << 10, data);
    store.queue_transaction(pg, std::move(large));
    auto attribute = bytes(150, 'y');
    small.setattr(kPg, numbered("object", 3), "attribute", attribute);
    store.queue_transaction(pg, std::move(small));
  });
  ASSERT_TRUE(file->truncate(0).ok());
  Saved saved;
  std::vector<std::string> said;
  ASSERT_TRUE(salvage(&saved, &said).ok());
  const std::string key = object_key(numbered("object", 3));
  EXPECT_NE(saved[key].records, m_whole[key].records) << "the last change of it";
}

TEST_P(SalvageTest, WhatTheStoreCanDoWithout) {
  const std::string cube = m_path + "/cubes/0";
  const std::string superblock = read(m_path + "/superblock");
  write(m_path + "/superblock", 0, std::string(superblock.size(), '\0'));
  expect_nothing_lost("superblock", "both copies");
  write(m_path + "/superblock", 0, superblock);
  remove_each(m_path, [&](const std::string& path) { expect_nothing_lost("file of the store", path); });
  overwrite_each(cube + "/containers/header", [&](size_t) { expect_nothing_lost("container header", ""); });
  // One slot at a time: the other one will do.
  overwrite_each(cube + "/manifest", [&](size_t at) { expect_nothing_lost("manifest, one copy", std::to_string(at)); });
  print();
}

TEST_P(SalvageTest, EachBlockOfTheLog) {
  const std::string log = m_path + "/cubes/0/log";
  uint64_t most = 0;
  std::map<std::string, size_t> missing;  // by where the block was overwritten
  for (const std::string& name : list(log)) {
    const std::string path = log + "/" + name;
    overwrite_each(path, [&](size_t at) {
      const std::string where = fmt::format("{} at {}", path, at);
      const Loss loss = look(at == 0 ? "log, header" : "log", where);
      EXPECT_LE(loss.missing.size(), at == 0 ? 0 : kInLog);
      EXPECT_TRUE(loss.missing.empty() || loss.says("not seen")) << where;
      most = std::max<uint64_t>(most, loss.missing.size());
      missing[where] = loss.missing.size();
    });
    refuse_each(path, [&](size_t at) {
      const std::string where = fmt::format("{} at {}", path, at);
      const Loss loss = look(at == 0 ? "log, header that cannot be read" : "log that cannot be read", where);
      EXPECT_EQ(missing[where], loss.missing.size()) << where;
      EXPECT_TRUE(loss.missing.empty() || loss.says("not seen")) << where;
    });
  }
  EXPECT_GT(most, 0u);
  remove_each(log, [&](const std::string& path) {
    const Loss loss = look("log segment, removed", path);
    EXPECT_LE(loss.missing.size(), kInLog) << path;
    EXPECT_TRUE(loss.missing.empty() || loss.says("not seen")) << path;
  });
  print();
}

TEST_P(SalvageTest, EachBlockOfTheTree) {
  const std::map<size_t, TreeBlock> blocks = tree_blocks();
  const char* const kinds[] = {"?", "entries", "index", "tombstones", "filter", "descriptor"};
  uint64_t lost_of_entries = 0;
  std::set<std::string> seen;
  overwrite_each(tree_path(), [&](size_t at) {
    const TreeBlock block = blocks.contains(at) ? blocks.at(at) : TreeBlock();
    const std::string kind = kinds[static_cast<int>(block.kind)];
    seen.insert(kind);
    SCOPED_TRACE(fmt::format("{} at {}", kind, at));
    const Loss loss = look("tree: " + kind, std::to_string(at));
    switch (block.kind) {
      case vtkv::BlockKind::entries:
        expect_no_other_lost(loss, block.objects);
        lost_of_entries += loss.missing.size();
        break;
      case vtkv::BlockKind::filter:
      case vtkv::BlockKind::index:  // made anew
        EXPECT_TRUE(loss.missing.empty() && loss.doubtful.empty());
        break;
      case vtkv::BlockKind::tombstones:  // the entries are all there
        EXPECT_TRUE(loss.missing.empty());
        break;
      default:
        break;
    }
  });
  EXPECT_EQ(5u, seen.size() - seen.count("?"));
  EXPECT_GT(lost_of_entries, 0u);
  print();
}

// A block that can be read when the store is opened, and not later.
TEST_P(SalvageTest, WhatFailsAfterTheOpenEndsNothing) {
  std::unique_ptr<StoreFiles> files;
  ASSERT_TRUE(StoreFiles::open(m_env, m_path, 0, StoreFiles::Purpose::salvage, &files).ok());
  ASSERT_TRUE(files->open_cube().ok());
  files->database().set_block_cache_bytes(0);
  TransferResult result;
  std::ostringstream out;
  m_simulated.set_bad(vtkv::SimBad::reads, tree_path(), 0, UINT64_MAX);
  const vtkv::Status status = export_objects(*files, "", "archive", &out, &result);
  m_simulated.clear_faults();
  EXPECT_TRUE(status.ok()) << status.message();
  const auto says = [&](const std::string& words) {
    return std::any_of(result.omitted.begin(), result.omitted.end(),
                       [&](const std::string& line) { return line.find(words) != std::string::npos; });
  };
  EXPECT_TRUE(says("further collections cannot be read any more"));
  EXPECT_TRUE(says("Export again"));
}

// From the n-th read on nothing can be read, for n = 1, 2, …: what the sweep of the log could read, and the replay
// cannot, is no zeros.
TEST_P(SalvageTest, ABlockOfTheLogThatFailsLaterIsNoContent) {
  uint64_t cut = 0;
  const uint64_t before = m_simulated.calls(vtkv::SimCall::read);
  Saved saved;
  std::vector<std::string> said;
  ASSERT_TRUE(salvage(&saved, &said).ok());
  const uint64_t reads = m_simulated.calls(vtkv::SimCall::read) - before;
  for (uint64_t nth = 1; nth <= reads; ++nth) {
    m_simulated.fail_nth(vtkv::SimCall::read, nth, vtkv::Status::from_errno(EIO, "injected"), true);
    const vtkv::Status status = salvage(&saved, &said);
    m_simulated.clear_faults();
    cut += std::any_of(said.begin(), said.end(), [](const std::string& line) {
      return line.find("it could be read at first, and no more") != std::string::npos;
    });
    if (status.ok()) {
      for (const auto& [key, object] : saved) {
        const auto whole = m_whole.find(key);
        EXPECT_TRUE(object.is_doubtful || (whole != m_whole.end() && whole->second.records == object.records)) << nth;
      }
    }
  }
  EXPECT_GT(cut, 0u);
}

// The newest copy's loss is the smaller one where the log does not lead on from the older: what was committed stays.
TEST_P(SalvageTest, TheOlderManifestIsTakenOnlyIfTheLogLeadsAsFar) {
  const std::string log = m_path + "/cubes/0/log";
  uint64_t taken = 0;
  for (const auto& [at, block] : tree_blocks()) {
    if (block.kind != vtkv::BlockKind::descriptor) {
      continue;
    }
    const std::string content = read(tree_path()).substr(at, kBlock);
    write(tree_path(), at, std::string(kBlock, '\xa5'));
    const Loss with_log = look("tree: descriptor", std::to_string(at));
    if (with_log.says("went back to the checkpoint before")) {
      ++taken;
      for (const std::string& name : list(log)) {
        overwrite_each(log + "/" + name, [&](size_t in_log) {
          const Loss loss = look("tree: descriptor, and log", fmt::format("{} and {} at {}", at, name, in_log));
          // What only the log holds is lost with its block, and nothing that a checkpoint holds.
          EXPECT_TRUE(!loss.says("went back") || loss.missing.size() <= with_log.missing.size() + kInLog);
        });
      }
    }
    write(tree_path(), at, content);
  }
  EXPECT_GT(taken, 0u);
}

// Nearly a third of the tree: what lies between damaged blocks is saved as well.
TEST_P(SalvageTest, EveryThirdBlockOfTheTree) {
  Keys objects;
  uint64_t number = 0, damaged = 0;
  for (const auto& [at, block] : tree_blocks()) {
    if (block.kind == vtkv::BlockKind::entries && number++ % 3 == 1) {
      write(tree_path(), at, std::string(kBlock, '\xa5'));
      objects.insert(block.objects.begin(), block.objects.end());
      ++damaged;
    }
  }
  ASSERT_GT(damaged, 5u);
  const Loss loss = look("tree", "every third block");
  expect_no_other_lost(loss, objects);
  EXPECT_LT(loss.missing.size(), m_whole.size() / 2);
  print();
}

TEST_P(SalvageTest, WhatALostChangeOrTombstoneHidIsDoubtful) {
  Keys objects, removed;
  for (const auto& [at, block] : tree_blocks()) {
    if (!block.removed.empty()) {
      write(tree_path(), at, std::string(kBlock, '\xa5'));
      objects.insert(block.objects.begin(), block.objects.end());
      removed.insert(block.removed.begin(), block.removed.end());
    }
  }
  EXPECT_EQ(kChanged, removed.size());
  const Loss loss = look("tree", "changes");
  expect_no_other_lost(loss, objects);
  uint64_t changed = 0, back = 0;
  for (uint64_t number = 0; number < kChanged; ++number) {
    // What a compaction has removed for good does not come back; look() has seen that nothing else does unmarked.
    back += loss.says("object " + describe_object_key(object_key(numbered("removed", number))) + " is doubtful");
    const std::string key = object_key(numbered("object", 5 * number + 1));
    EXPECT_EQ(objects.contains(key), loss.doubtful.contains(key)) << number;
    changed += loss.doubtful.contains(key);
  }
  EXPECT_GT(changed, 0u);
  EXPECT_GT(back, 0u);
}

TEST_P(SalvageTest, DataThatIsDamaged) {
  mounted([](SwimStore&, ObjectStore::CollectionHandle&) {});  // all that the log names has arrived, it says then
  const std::string containers = m_path + "/cubes/0/containers";
  uint64_t lost = 0;
  for (const std::string& name : list(containers)) {
    if (name == "header" || name == "quarantine") {
      continue;
    }
    overwrite_each(
        containers + "/" + name,
        [&](size_t at) {
          const Loss loss = look("data", fmt::format("{} at {}", name, at));
          EXPECT_TRUE(loss.doubtful.empty());
          EXPECT_LE(loss.missing.size(), 2u);  // that share it
          for (const std::string& key : loss.missing) {
            EXPECT_TRUE(loss.says("object " + describe_object_key(key) + " was left out"));
          }
          lost += loss.missing.size();
        },
        41);
  }
  EXPECT_GT(lost, 5u);
  print();
}

TEST_P(SalvageTest, WithoutAnyManifestThereIsNothingToGoBy) {
  const std::string path = m_path + "/cubes/0/manifest";
  write(path, 0, std::string(read(path).size(), '\xff'));
  Saved saved;
  std::vector<std::string> said;
  const vtkv::Status status = salvage(&saved, &said);
  EXPECT_TRUE(status.is_corruption());
  EXPECT_NE(std::string::npos, status.message().find("manifest"));
}

INSTANTIATE_TEST_SUITE_P(Simulated, SalvageTest, ::testing::Values(Host::simulated));

}  // namespace swimstore
