// SPDX-License-Identifier: LGPL-2.1-or-later
// DB::open_read_only: shows what an open would show, and leaves the disk as it was.

#include <gtest/gtest.h>

#include <map>

#include "vtkv/db.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/env/read_only_env.h"
#include "vtkv/testing/db_fixture.h"

namespace vtkv {
namespace {

class DbReadOnlyTest : public DbFixture {
 protected:
  // In the tree: a to y; in the log only: a changed, b removed, z new.
  void fill() {
    std::unique_ptr<DB> db;
    ASSERT_TRUE(DB::open(m_env, m_directory, m_options, &db).ok());
    WriteBatch first;
    for (char key = 'a'; key < 'z'; ++key) {
      first.put(std::string(1, key), "tree");
    }
    ASSERT_TRUE(db->write(std::move(first)).ok());
    ASSERT_TRUE(db->flush().ok());
    WriteBatch second;
    second.put("a", "log");
    second.remove("b");
    second.put("z", "log");
    ASSERT_TRUE(db->write(std::move(second)).ok());
  }
  Status open() { return DB::open_read_only(m_env, m_directory, m_options, &m_db); }
  std::string get(const std::string& key) {
    std::string value;
    return m_db->get(key, &value).ok() ? value : "none";
  }
  void add_files(const std::string& directory, std::map<std::string, std::string>* all) {
    std::vector<std::string> names;
    ASSERT_TRUE(m_env->list_directory(directory, &names).ok());
    for (const std::string& name : names) {
      std::unique_ptr<File> file;
      const std::string path = directory + "/" + name;
      if (name == "log") {
        add_files(path, all);
        continue;
      }
      ASSERT_TRUE(m_env->open_file(path, {.read_only = true}, &file).ok());
      uint64_t bytes = 0;
      ASSERT_TRUE(file->size(&bytes).ok());
      AlignedBuffer buffer(std::max<uint64_t>(bytes, kIoAlignment));
      if (bytes > 0) {
        ASSERT_TRUE(file->read(0, bytes, buffer.data()).ok());
      }
      (*all)[path].assign(buffer.data(), bytes);
    }
  }
  std::map<std::string, std::string> disk() {
    std::map<std::string, std::string> all;
    add_files(m_directory, &all);
    return all;
  }
};

TEST_P(DbReadOnlyTest, ShowsTreeAndLog) {
  fill();
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(get("a"), "log");
  EXPECT_EQ(get("b"), "none");
  EXPECT_EQ(get("c"), "tree");
  EXPECT_EQ(get("z"), "log");
  auto iterator = m_db->new_iterator("x", "zz");
  std::string seen;
  for (iterator->seek_to_last(); iterator->valid(); iterator->previous()) {
    seen.append(iterator->key()).append("=").append(iterator->value()).append(" ");
  }
  EXPECT_EQ(seen, "z=log y=tree x=tree ");
  EXPECT_EQ(m_db->statistics().last_sequence, m_db->durable_sequence());
}

TEST_P(DbReadOnlyTest, ChangesNothingOnDisk) {
  fill();
  const auto before = disk();
  ASSERT_GE(before.size(), 5u);
  ASSERT_TRUE(open().ok());
  std::vector<std::string> findings;
  m_db->verify(&findings);
  EXPECT_TRUE(findings.empty()) << findings.front();
  m_db->request_checkpoint();
  m_db->advance_reuse_horizon();
  m_db.reset();
  EXPECT_TRUE(disk() == before);
}

TEST_P(DbReadOnlyTest, RefusesWrites) {
  fill();
  ASSERT_TRUE(open().ok());
  WriteBatch batch;
  batch.put("a", "new");
  EXPECT_EQ(m_db->write(std::move(batch)).code(), Status::Code::invalid_argument);
  EXPECT_EQ(m_db->flush().code(), Status::Code::invalid_argument);
  EXPECT_EQ(m_db->compact().code(), Status::Code::invalid_argument);
  EXPECT_EQ(get("a"), "log");
}

TEST_P(DbReadOnlyTest, IsBusyWhileSomebodyWrites) {
  std::unique_ptr<DB> writer;
  ASSERT_TRUE(DB::open(m_env, m_directory, m_options, &writer).ok());
  EXPECT_EQ(open().code(), Status::Code::busy);
  writer.reset();
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(DB::open(m_env, m_directory, m_options, &writer).code(), Status::Code::busy);
}

TEST_P(DbReadOnlyTest, MakesNoLockFile) {
  fill();
  ASSERT_TRUE(m_env->remove_file(m_directory + "/lock").ok());
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(get("a"), "log");
  EXPECT_FALSE(m_env->exists(m_directory + "/lock"));
}

TEST_P(DbReadOnlyTest, TheDoorRefusesEveryChange) {
  fill();
  const auto before = disk();
  ReadOnlyEnv env(m_env);
  std::unique_ptr<File> file;
  EXPECT_FALSE(env.open_file(m_directory + "/new", {.create = true}, &file).ok());
  EXPECT_FALSE(env.create_directory(m_directory + "/sub").ok());
  EXPECT_FALSE(env.remove_file(m_directory + "/tree").ok());
  EXPECT_FALSE(env.rename_file(m_directory + "/tree", m_directory + "/old").ok());
  EXPECT_TRUE(disk() == before);
}

INSTANTIATE_TEST_SUITE_P(, DbReadOnlyTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Host" : "Simulator"; });

}  // namespace
}  // namespace vtkv
