// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/memory_manager.h"

#include <algorithm>

#include "common/ceph_context.h"
#include "common/config.h"

namespace swimstore {

using PriorityCache::Priority;

namespace {

uint64_t size_value(CephContext* cct, const char* name) { return cct->_conf.get_val<Option::size_t>(name); }

// What the caches may have when nothing else needs memory.
uint64_t cache_bytes_max(CephContext* cct, uint64_t target, uint64_t least) {
  const double usable = target * (1.0 - cct->_conf.get_val<double>("osd_memory_expected_fragmentation"));
  const uint64_t base = size_value(cct, "osd_memory_base");
  return std::max(least, usable > base ? static_cast<uint64_t>(usable) - base : 0);
}

}  // namespace

// One cache's part in the division. It asks for what it holds and as much again, to grow into until the next turn: the
// ratios decide only when that is more than there is, and who gets what nobody asks for.
//
// Not at the lowest priority, where the division takes no notice of what is asked for.
class MemoryManager::Share : public PriorityCache::PriCache {
 public:
  explicit Share(ManagedCache cache) : m_cache(std::move(cache)) {}
  const ManagedCache& cache() const { return m_cache; }

  int64_t request_cache_bytes(Priority priority, uint64_t) const override {
    if (priority != Priority::PRI1) {
      return 0;
    }
    return std::max<int64_t>(0, static_cast<int64_t>(2 * m_cache.memory_bytes()) - get_cache_bytes(priority));
  }
  int64_t get_cache_bytes(Priority priority) const override { return m_bytes[priority]; }
  int64_t get_cache_bytes() const override {
    int64_t sum = 0;
    for (const int64_t bytes : m_bytes) {
      sum += bytes;
    }
    return sum;
  }
  void set_cache_bytes(Priority priority, int64_t bytes) override { m_bytes[priority] = bytes; }
  void add_cache_bytes(Priority priority, int64_t bytes) override { m_bytes[priority] += bytes; }
  int64_t commit_cache_size(uint64_t total) override {
    m_committed_bytes = PriorityCache::get_chunk(get_cache_bytes(), total);
    return m_committed_bytes;
  }
  int64_t get_committed_size() const override { return m_committed_bytes; }
  double get_cache_ratio() const override { return m_ratio; }
  void set_cache_ratio(double ratio) override { m_ratio = ratio; }
  std::string get_cache_name() const override { return m_cache.name; }
  // Nothing here is sorted by age.
  void shift_bins() override {}
  void import_bins(const std::vector<uint64_t>&) override {}
  void set_bins(Priority, uint64_t) override {}
  uint64_t get_bins(Priority) const override { return 0; }

 private:
  ManagedCache m_cache;
  int64_t m_bytes[Priority::LAST + 1] = {};
  int64_t m_committed_bytes = 0;
  double m_ratio = 0;
};

std::vector<std::shared_ptr<MemoryManager::Share>> MemoryManager::shares_of(std::vector<ManagedCache> caches) {
  std::vector<std::shared_ptr<Share>> shares;
  for (ManagedCache& cache : caches) {
    shares.push_back(std::make_shared<Share>(std::move(cache)));
  }
  return shares;
}

MemoryManager::MemoryManager(CephContext* cct, std::vector<ManagedCache> caches)
    : m_cct(cct),
      m_autotunes(cct->_conf.get_val<bool>("swimstore_cache_autotune")),
      m_shares(shares_of(std::move(caches))) {}

MemoryManager::~MemoryManager() = default;

void MemoryManager::start(vtkv::Env* env) {
  const double seconds = std::clamp(m_cct->_conf.get_val<double>("swimstore_cache_interval"), 0.01, 3600.0);
  const std::chrono::microseconds interval(static_cast<int64_t>(seconds * 1e6));
  m_worker = env->start_worker("swim_memory", 0, [this, interval](vtkv::IoQueue&) {
    adjust();
    return vtkv::NextStep::later(interval);
  });
}

void MemoryManager::adjust() {
  vtkv::MutexLock lock(m_lock);
  read_ratios();
  m_autotunes ? adjust_to_target() : adjust_to_fixed_size();
}

void MemoryManager::read_ratios() {
  double left = 1.0;
  for (const auto& share : m_shares) {
    const char* option = share->cache().ratio_option;
    const double ratio = option != nullptr ? std::clamp(m_cct->_conf.get_val<double>(option), 0.0, left) : left;
    share->set_cache_ratio(ratio);
    left -= ratio;
  }
}

void MemoryManager::adjust_to_target() {
  const uint64_t target = size_value(m_cct, "osd_memory_target");
  const uint64_t least = size_value(m_cct, "osd_memory_cache_min");
  const uint64_t most = cache_bytes_max(m_cct, target, least);
  if (m_manager == nullptr) {
    m_manager = std::make_unique<PriorityCache::Manager>(m_cct, least, most, target, true, "swimstore-pricache");
    for (const auto& share : m_shares) {
      m_manager->insert(share->cache().name, share, true);
    }
  }
  m_manager->set_target_memory(target);
  m_manager->set_min_memory(least);
  m_manager->set_max_memory(most);
  m_manager->tune_memory();
  m_manager->balance();
  for (const auto& share : m_shares) {
    share->cache().set_capacity(share->get_committed_size());
  }
}

void MemoryManager::adjust_to_fixed_size() {
  const uint64_t total = size_value(m_cct, "swimstore_cache_size");
  for (const auto& share : m_shares) {
    share->cache().set_capacity(static_cast<uint64_t>(total * share->get_cache_ratio()));
  }
}

}  // namespace swimstore
