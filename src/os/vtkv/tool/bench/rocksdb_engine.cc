// SPDX-License-Identifier: LGPL-2.1-or-later
// RocksDB and BlobDB. Built when the packaged library is there.
#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "vtkv/tool/bench/engine.h"
#include "vtkv/tool/bench/peer_options.h"
#include "vtkv/tool/bench/peer_status.h"

namespace vtkv::bench {

namespace {

rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const rocksdb::Slice& text) { return {text.data(), text.size()}; }

Status translate(const rocksdb::Status& status) { return bench::translate("rocksdb", status); }

class RocksdbScan final : public Scan {
 public:
  RocksdbScan(rocksdb::DB* db, std::string_view lower, std::string_view upper, ScanLength length)
      : m_lower(lower), m_upper(upper), m_lower_slice(m_lower), m_upper_slice(m_upper) {
    rocksdb::ReadOptions options;
    options.iterate_lower_bound = &m_lower_slice;
    options.iterate_upper_bound = &m_upper_slice;
    if (length == ScanLength::whole) {
      options.readahead_size = peer::kLongScanReadaheadBytes;
      options.fill_cache = false;
    }
    m_iterator.reset(db->NewIterator(options));
  }

  void seek_to_first() override { m_iterator->SeekToFirst(); }
  void seek_to_last() override { m_iterator->SeekToLast(); }
  void seek(std::string_view target) override { m_iterator->Seek(slice(target)); }
  bool valid() const override { return m_iterator->Valid(); }
  void next() override { m_iterator->Next(); }
  void previous() override { m_iterator->Prev(); }
  std::string_view key() const override { return view(m_iterator->key()); }
  std::string_view value() const override { return view(m_iterator->value()); }
  Status status() const override { return translate(m_iterator->status()); }

 private:
  const std::string m_lower, m_upper;
  const rocksdb::Slice m_lower_slice, m_upper_slice;
  std::unique_ptr<rocksdb::Iterator> m_iterator;
};

class RocksdbEngine final : public Engine {
 public:
  RocksdbEngine(std::unique_ptr<rocksdb::DB> db, std::shared_ptr<rocksdb::Statistics> statistics, bool sync)
      : m_statistics(std::move(statistics)), m_db(std::move(db)) {
    m_write.sync = sync;
  }

  Status put(std::string_view key, std::string_view value) override {
    return translate(m_db->Put(m_write, slice(key), slice(value)));
  }
  Status put_many(const std::vector<KeyValue>& entries) override {
    rocksdb::WriteBatch batch;
    for (const KeyValue& entry : entries) {
      VTKV_RETURN_IF_ERROR(translate(batch.Put(slice(entry.key), slice(entry.value))));
    }
    return translate(m_db->Write(m_write, &batch));
  }
  Status remove(std::string_view key) override { return translate(m_db->Delete(m_write, slice(key))); }
  Status remove_range(std::string_view begin, std::string_view end) override {
    return translate(m_db->DeleteRange(m_write, m_db->DefaultColumnFamily(), slice(begin), slice(end)));
  }
  Status get(std::string_view key, std::string* value) override {
    return translate(m_db->Get(m_read, slice(key), value));
  }
  std::unique_ptr<Scan> new_scan(std::string_view lower, std::string_view upper, ScanLength length) override {
    return std::make_unique<RocksdbScan>(m_db.get(), lower, upper, length);
  }

  Status settle() override {
#ifdef VTKV_BENCH_ROCKSDB_WAITS
    rocksdb::WaitForCompactOptions options;
    options.flush = true;
    return translate(m_db->WaitForCompact(options));
#else
    VTKV_RETURN_IF_ERROR(translate(m_db->Flush(rocksdb::FlushOptions())));
    while (count_of(rocksdb::DB::Properties::kCompactionPending) > 0 ||
           count_of(rocksdb::DB::Properties::kNumRunningCompactions) > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return {};
#endif
  }
  Status collect_garbage() override {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
    options.blob_garbage_collection_policy = rocksdb::BlobGarbageCollectionPolicy::kForce;
    options.blob_garbage_collection_age_cutoff = 1.0;
    return translate(m_db->CompactRange(options, nullptr, nullptr));
  }

  EngineReport report() override {
    EngineReport report;
    std::map<std::string, std::string> family;
    if (m_db->GetMapProperty(rocksdb::DB::Properties::kCFStats, &family)) {
      for (const auto& [name, count] : family) {
        if (name == "io_stalls.total-stops" || name == "io_stalls.total-delays") {
          report.delays += std::stoull(count);
        }
      }
    }
    report.delay_us = m_statistics->getTickerCount(rocksdb::STALL_MICROS);
    report.log_bytes = m_statistics->getTickerCount(rocksdb::WAL_FILE_BYTES);
    report.flush_bytes = m_statistics->getTickerCount(rocksdb::FLUSH_WRITE_BYTES);
    report.compaction_bytes = m_statistics->getTickerCount(rocksdb::COMPACT_WRITE_BYTES);
    report.gc_bytes = m_statistics->getTickerCount(rocksdb::BLOB_DB_GC_BYTES_RELOCATED);
    rocksdb::TablePropertiesCollection tables;
    if (m_db->GetPropertiesOfAllTables(&tables).ok()) {
      report.filter_bytes = 0;
      for (const auto& [file, properties] : tables) {
        *report.filter_bytes += properties->filter_size;
      }
    }
    return report;
  }

 private:
#ifndef VTKV_BENCH_ROCKSDB_WAITS
  uint64_t count_of(const std::string& property) {
    uint64_t count = 0;
    return m_db->GetIntProperty(property, &count) ? count : 0;
  }
#endif

  std::shared_ptr<rocksdb::Statistics> m_statistics;
  std::unique_ptr<rocksdb::DB> m_db;
  rocksdb::WriteOptions m_write;
  const rocksdb::ReadOptions m_read;
};

rocksdb::BlockBasedTableOptions table_options(const EngineSettings& settings) {
  rocksdb::BlockBasedTableOptions table;
  table.block_size = peer::kBlockBytes;
  table.block_cache = rocksdb::NewLRUCache(peer::cache_bytes(settings.memory_bytes));
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(peer::kBloomBitsPerKey));
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.metadata_block_size = peer::kMetadataBlockBytes;
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.pin_top_level_index_and_filter = true;
  table.format_version = 5;
  table.optimize_filters_for_memory = true;
  return table;
}

rocksdb::Options base_options(const EngineSettings& settings, int background_jobs) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.bottommost_compression = rocksdb::kNoCompression;
  options.use_direct_reads = true;
  options.use_direct_io_for_flush_and_compaction = true;
  options.max_background_jobs = background_jobs;
  options.write_buffer_size = peer::write_buffer_bytes(settings.memory_bytes);
  options.max_write_buffer_number = peer::kWriteBuffers;
  options.level0_file_num_compaction_trigger = peer::kL0Trigger;
  options.level_compaction_dynamic_level_bytes = true;
  options.max_bytes_for_level_base = peer::level_base_bytes(settings.memory_bytes);
  options.target_file_size_base = options.max_bytes_for_level_base / peer::kFilesPerLevelBase;
  options.compaction_pri = rocksdb::kMinOverlappingRatio;
  options.compaction_readahead_size = peer::kCompactionReadaheadBytes;
  options.bytes_per_sync = peer::kBytesPerSync;
  options.wal_bytes_per_sync = peer::kBytesPerSync;
  options.max_open_files = -1;
  options.enable_pipelined_write = true;
  options.statistics = rocksdb::CreateDBStatistics();
  options.statistics->set_stats_level(rocksdb::StatsLevel::kExceptDetailedTimers);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table_options(settings)));
  return options;
}

Status open(const EngineSettings& settings, const rocksdb::Options& options, std::unique_ptr<Engine>* engine) {
  rocksdb::DB* db = nullptr;
  VTKV_RETURN_IF_ERROR(translate(rocksdb::DB::Open(options, settings.path, &db)));
  *engine = std::make_unique<RocksdbEngine>(std::unique_ptr<rocksdb::DB>(db), options.statistics, settings.sync);
  return {};
}

}  // namespace

Status open_rocksdb(const EngineSettings& settings, std::unique_ptr<Engine>* engine) {
  double jobs = 0, universal = 0;
  VTKV_RETURN_IF_ERROR(number_option(settings, "background_jobs", peer::kBackgroundJobs, &jobs));
  VTKV_RETURN_IF_ERROR(number_option(settings, "universal", 0, &universal));
  rocksdb::Options options = base_options(settings, static_cast<int>(jobs));
  if (universal != 0) {
    options.compaction_style = rocksdb::kCompactionStyleUniversal;
  }
  return open(settings, options, engine);
}

Status open_blobdb(const EngineSettings& settings, std::unique_ptr<Engine>* engine) {
  double jobs = 0, min_bytes = 0, cutoff = 0, threshold = 0, file_bytes = 0;
  VTKV_RETURN_IF_ERROR(number_option(settings, "background_jobs", peer::kBackgroundJobs, &jobs));
  VTKV_RETURN_IF_ERROR(number_option(settings, "min_blob_size", peer::kMinBlobBytes, &min_bytes));
  VTKV_RETURN_IF_ERROR(number_option(settings, "gc_age_cutoff", peer::kGcAgeCutoff, &cutoff));
  VTKV_RETURN_IF_ERROR(number_option(settings, "gc_force_threshold", peer::kGcForceThreshold, &threshold));
  VTKV_RETURN_IF_ERROR(number_option(settings, "blob_file_bytes",
                                     static_cast<double>(peer::blob_file_bytes(settings.data_bytes)), &file_bytes));
  if (cutoff > 1 || threshold > 1) {
    return Status::invalid_argument("--engines blobdb: gc_age_cutoff and gc_force_threshold are from 0 to 1");
  }
  rocksdb::Options options = base_options(settings, static_cast<int>(jobs));
  options.enable_blob_files = true;
  options.min_blob_size = static_cast<uint64_t>(min_bytes);
  options.blob_file_size = static_cast<uint64_t>(file_bytes);
  options.blob_compression_type = rocksdb::kNoCompression;
  options.blob_cache = options.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>()->block_cache;
  options.enable_blob_garbage_collection = true;
  options.blob_garbage_collection_age_cutoff = cutoff;
  options.blob_garbage_collection_force_threshold = threshold;
  options.blob_compaction_readahead_size = peer::kCompactionReadaheadBytes;
  if (settings.value_bytes >= options.min_blob_size) {
    // A flush leaves a table of references only: the tree's files and levels are sized by those.
    const uint64_t entry = 16 + settings.value_bytes;
    const uint64_t table = options.write_buffer_size * (16 + peer::kBlobReferenceBytes) / entry;
    options.target_file_size_base = std::max<uint64_t>(table, 256 << 10);
    options.max_bytes_for_level_base = peer::kFilesPerLevelBase * options.target_file_size_base;
  }
  return open(settings, options, engine);
}

}  // namespace vtkv::bench
