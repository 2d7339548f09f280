// SPDX-License-Identifier: LGPL-2.1-or-later
// What happens to an object while another thread reads it from the database: here, inside of that read.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "swimstore/object/onode_cache.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {
namespace {

// Calls back after each read, before its result is returned. A read inside of that is not told of.
class TellingDatabase final : public vtkv::DB {
 public:
  explicit TellingDatabase(vtkv::DB& database) : m_database(database) {}

  std::function<void()> after_read;
  unsigned reads = 0;

  vtkv::Status get(std::string_view key, std::string* value, const vtkv::Snapshot* snapshot) override {
    const vtkv::Status status = m_database.get(key, value, snapshot);
    tell();
    return status;
  }
  // It sees what there is now, however late it is moved.
  std::unique_ptr<vtkv::Iterator> new_iterator(std::string_view lower, std::string_view upper,
                                               const vtkv::Snapshot* snapshot) override {
    auto iterator = m_database.new_iterator(lower, upper, snapshot);
    tell();
    return iterator;
  }

  void submit(vtkv::Submission* submission) override { m_database.submit(submission); }
  vtkv::Status write(vtkv::WriteBatch batch, const vtkv::WriteOptions& options) override {
    return m_database.write(std::move(batch), options);
  }
  const vtkv::Snapshot* take_snapshot() override { return m_database.take_snapshot(); }
  void release_snapshot(const vtkv::Snapshot* snapshot) override { m_database.release_snapshot(snapshot); }
  vtkv::SequenceNumber durable_sequence() const override { return m_database.durable_sequence(); }
  vtkv::SequenceNumber reuse_horizon() const override { return m_database.reuse_horizon(); }
  void advance_reuse_horizon() override { m_database.advance_reuse_horizon(); }
  vtkv::Status wait_durable(vtkv::SequenceNumber sequence) override { return m_database.wait_durable(sequence); }
  vtkv::Status flush() override { return m_database.flush(); }
  void request_checkpoint() override { m_database.request_checkpoint(); }
  vtkv::Status compact() override { return m_database.compact(); }
  vtkv::Status collect_garbage(bool full) override { return m_database.collect_garbage(full); }
  vtkv::Status begin_defragment(const vtkv::DefragmentOptions& options) override {
    return m_database.begin_defragment(options);
  }
  void stop_defragment() override { m_database.stop_defragment(); }
  vtkv::DefragmentReport defragment_report() const override { return m_database.defragment_report(); }
  vtkv::Status defragment(const vtkv::DefragmentOptions& options) override { return m_database.defragment(options); }
  void stop_background() override { m_database.stop_background(); }
  void verify(std::vector<std::string>* findings, const std::atomic<bool>* cancelled) override {
    m_database.verify(findings, cancelled);
  }
  void set_stitch_threshold(uint64_t bytes) override { m_database.set_stitch_threshold(bytes); }
  void set_block_cache_bytes(size_t bytes) override { m_database.set_block_cache_bytes(bytes); }
  vtkv::DBStatistics statistics() const override { return m_database.statistics(); }
  bool is_upgradable() const override { return m_database.is_upgradable(); }
  bool may_compress_blocks() const override { return m_database.may_compress_blocks(); }
  std::vector<vtkv::BackgroundError> background_errors() const override { return m_database.background_errors(); }

 private:
  void tell() {
    ++reads;
    if (const std::function<void()> meanwhile = std::exchange(after_read, nullptr)) {
      meanwhile();
    }
  }

  vtkv::DB& m_database;
};

constexpr uint64_t kNid = 42;
constexpr SlotAddress kSlot{0, 7}, kOtherSlot{0, 8};

class OnodeLoadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    vtkv::Options options;
    options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
    ASSERT_TRUE(vtkv::DB::create(&m_env, "/db", options).ok());
    ASSERT_TRUE(vtkv::DB::open(&m_env, "/db", options, &m_database).ok());
    m_telling = std::make_unique<TellingDatabase>(*m_database);
    m_cache = std::make_unique<OnodeCache>(*m_telling, 1 << 20);
    store(1);
  }

  static ghobject_t named(const std::string& name) {
    return ghobject_t(hobject_t(object_t(name), "", CEPH_NOSNAP, 7, 1, ""));
  }
  // What the planner leaves in the database of an object that is larger than one shard.
  void store(uint64_t size) {
    OnodeRecord record;
    record.nid = kNid;
    record.size = size;
    std::string value;
    encode_onode(record, {}, &value);
    vtkv::WriteBatch batch;
    batch.put(object_key(m_oid), value);
    write(std::move(batch));
  }
  void store_shard(uint32_t number, SlotAddress slot) {
    ExtentShard shard;
    shard.extents.push_back({.block = 0, .count = 1, .slot = slot, .slot_written_blocks = 1});
    std::string value;
    encode_extent_shard(shard, &value);
    vtkv::WriteBatch batch;
    batch.put(extent_key(kNid, number), value);
    write(std::move(batch));
  }
  void write(vtkv::WriteBatch batch) { ASSERT_TRUE(m_database->write(std::move(batch)).ok()); }

  OnodeRef find() {
    OnodeRef onode;
    const vtkv::Status status = m_cache->find(m_oid, &onode);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return onode;
  }
  static std::vector<SlotAddress> slots(const Onode& onode, uint32_t shard) {
    MappedRuns runs;
    onode.extents.resolve(uint64_t{shard} * kShardBlocks, kShardBlocks, &runs);
    std::vector<SlotAddress> all;
    for (const MappedRun& run : runs) {
      all.push_back(run.slot);
    }
    return all;
  }

  const ghobject_t m_oid = named("object");
  vtkv::SimEnv m_env;
  std::unique_ptr<vtkv::DB> m_database;
  std::unique_ptr<TellingDatabase> m_telling;
  std::unique_ptr<OnodeCache> m_cache;
};

TEST_F(OnodeLoadTest, WhoIsSecondTakesTheOnodeOfTheFirst) {
  OnodeRef first;
  m_telling->after_read = [&] { first = find(); };
  EXPECT_EQ(find(), first);
  EXPECT_EQ(m_telling->reads, 2u);
  EXPECT_EQ(m_cache->size(), 1u);
  EXPECT_EQ(m_cache->misses(), 2u);
  EXPECT_EQ(find(), first);
  EXPECT_EQ(m_cache->hits(), 1u);
}

TEST_F(OnodeLoadTest, AReadThatFailsLeavesNothingBehind) {
  vtkv::WriteBatch batch;
  batch.put(object_key(m_oid), "not a record");
  write(std::move(batch));
  OnodeRef onode;
  EXPECT_TRUE(m_cache->find(m_oid, &onode).is_corruption());
  EXPECT_EQ(onode, nullptr);
  EXPECT_EQ(m_cache->size(), 0u);
  store(3);
  EXPECT_EQ(find()->record.size, 3u);
}

TEST_F(OnodeLoadTest, ExtentsAreReadWithoutALock) {
  store_shard(3, kSlot);
  const OnodeRef onode = find();
  size_t bytes = 0;
  m_telling->after_read = [&] {
    ASSERT_TRUE(m_cache->load_extents(*onode, 3, 3).ok());
    bytes = onode->memory_bytes();
  };
  ASSERT_TRUE(m_cache->load_extents(*onode, 3, 3).ok());
  EXPECT_EQ(slots(*onode, 3), std::vector<SlotAddress>{kSlot});
  EXPECT_EQ(onode->memory_bytes(), bytes);
}

// By each way to read them: one shard, some, and all.
TEST_F(OnodeLoadTest, ExtentsThatAnotherHasLoadedAreNotReplaced) {
  for (const uint32_t last : {3u, 6u, 1000u}) {
    SCOPED_TRACE(last);
    store_shard(3, kSlot);
    m_cache->clear();
    const OnodeRef onode = find();
    m_telling->after_read = [&] {
      ASSERT_TRUE(m_cache->load_extents(*onode, 3, 3).ok());
      Unmapped released;
      onode->extents.punch(3 * kShardBlocks, 1, &released);
      ASSERT_EQ(released.extents.size(), 1u);
      const uint32_t crc32c = 0;
      onode->extents.insert(3 * kShardBlocks, 1, kOtherSlot, 0, 1, false, &crc32c);
    };
    ASSERT_TRUE(m_cache->load_extents(*onode, 3, last).ok());
    EXPECT_EQ(slots(*onode, 3), std::vector<SlotAddress>{kOtherSlot});
  }
}

TEST_F(OnodeLoadTest, NoExtentsEnterAMapThatWasClearedMeanwhile) {
  store_shard(3, kSlot);
  const OnodeRef onode = find();
  for (const uint32_t last : {3u, 6u, 1000u}) {
    m_telling->after_read = [&] { onode->extents.clear(); };
    EXPECT_DEATH((void)m_cache->load_extents(*onode, 3, last), "assertion failed");
  }
}

}  // namespace
}  // namespace swimstore
