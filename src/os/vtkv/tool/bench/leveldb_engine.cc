// SPDX-License-Identifier: LGPL-2.1-or-later
// LevelDB. Built when the packaged library is there.
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/options.h>
#include <leveldb/write_batch.h>

#include "vtkv/tool/bench/engine.h"
#include "vtkv/tool/bench/leveldb_env.h"
#include "vtkv/tool/bench/peer_options.h"
#include "vtkv/tool/bench/peer_status.h"

namespace vtkv::bench {

namespace {

leveldb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const leveldb::Slice& text) { return {text.data(), text.size()}; }

Status translate(const leveldb::Status& status) { return bench::translate("leveldb", status); }

class LeveldbScan final : public Scan {
 public:
  LeveldbScan(leveldb::DB* db, std::string_view lower, std::string_view upper, ScanLength length)
      : m_lower(lower), m_upper(upper) {
    leveldb::ReadOptions options;
    options.fill_cache = length == ScanLength::few;
    m_iterator.reset(db->NewIterator(options));
  }

  void seek_to_first() override { m_iterator->Seek(slice(m_lower)); }
  void seek_to_last() override {
    m_iterator->Seek(slice(m_upper));
    if (m_iterator->Valid()) {
      m_iterator->Prev();
    } else {
      m_iterator->SeekToLast();
    }
  }
  void seek(std::string_view target) override { m_iterator->Seek(slice(target)); }
  bool valid() const override { return m_iterator->Valid() && key() >= m_lower && key() < m_upper; }
  void next() override { m_iterator->Next(); }
  void previous() override { m_iterator->Prev(); }
  std::string_view key() const override { return view(m_iterator->key()); }
  std::string_view value() const override { return view(m_iterator->value()); }
  Status status() const override { return translate(m_iterator->status()); }

 private:
  const std::string m_lower, m_upper;
  std::unique_ptr<leveldb::Iterator> m_iterator;
};

class LeveldbEngine final : public Engine {
 public:
  Status open(const EngineSettings& settings) {
    m_path = settings.path;
    m_cache.reset(leveldb::NewLRUCache(peer::cache_bytes(settings.memory_bytes)));
    m_filter.reset(leveldb::NewBloomFilterPolicy(static_cast<int>(peer::kBloomBitsPerKey)));
    leveldb::Options options;
    options.env = direct_leveldb_env();
    options.create_if_missing = true;
    options.compression = leveldb::kNoCompression;
    options.write_buffer_size = peer::write_buffer_bytes(settings.memory_bytes);
    options.block_cache = m_cache.get();
    options.filter_policy = m_filter.get();
    options.block_size = peer::kBlockBytes;
    options.max_file_size = peer::kLeveldbFileBytes;
    options.max_open_files = 10000;
    m_write.sync = settings.sync;
    leveldb::DB* db = nullptr;
    VTKV_RETURN_IF_ERROR(translate(leveldb::DB::Open(options, settings.path, &db)));
    m_db.reset(db);
    return {};
  }

  Status put(std::string_view key, std::string_view value) override {
    return translate(m_db->Put(m_write, slice(key), slice(value)));
  }
  Status put_many(const std::vector<KeyValue>& entries) override {
    leveldb::WriteBatch batch;
    for (const KeyValue& entry : entries) {
      batch.Put(slice(entry.key), slice(entry.value));
    }
    return translate(m_db->Write(m_write, &batch));
  }
  Status remove(std::string_view key) override { return translate(m_db->Delete(m_write, slice(key))); }
  // LevelDB has no range deletes: its users read the keys and delete each.
  Status remove_range(std::string_view begin, std::string_view end) override {
    constexpr int kBatchKeys = 1000;
    LeveldbScan scan(m_db.get(), begin, end, ScanLength::few);
    leveldb::WriteBatch batch;
    int keys = 0;
    for (scan.seek(begin); scan.valid(); scan.next()) {
      batch.Delete(slice(scan.key()));
      if (++keys == kBatchKeys) {
        VTKV_RETURN_IF_ERROR(translate(m_db->Write(m_write, &batch)));
        batch.Clear();
        keys = 0;
      }
    }
    VTKV_RETURN_IF_ERROR(scan.status());
    return translate(m_db->Write(m_write, &batch));
  }
  Status get(std::string_view key, std::string* value) override {
    return translate(m_db->Get(leveldb::ReadOptions(), slice(key), value));
  }
  std::unique_ptr<Scan> new_scan(std::string_view lower, std::string_view upper, ScanLength length) override {
    return std::make_unique<LeveldbScan>(m_db.get(), lower, upper, length);
  }
  // There is nothing to ask; a full compaction would be more than others do here.
  Status settle() override {
    wait_until_quiet(m_path);
    return {};
  }
  Status collect_garbage() override {
    m_db->CompactRange(nullptr, nullptr);
    return {};
  }
  EngineReport report() override { return {}; }

 private:
  std::string m_path;
  std::unique_ptr<leveldb::Cache> m_cache;
  std::unique_ptr<const leveldb::FilterPolicy> m_filter;
  std::unique_ptr<leveldb::DB> m_db;  // uses the two above
  leveldb::WriteOptions m_write;
};

}  // namespace

Status open_leveldb(const EngineSettings& settings, std::unique_ptr<Engine>* engine) {
  auto opened = std::make_unique<LeveldbEngine>();
  VTKV_RETURN_IF_ERROR(opened->open(settings));
  *engine = std::move(opened);
  return {};
}

}  // namespace vtkv::bench
