// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/ceph/vtkv_store.h"

#include "ceph_ver.h"
#include "common/ceph_context.h"
#include "common/ceph_time.h"
#include "common/debug.h"
#include "common/errno.h"
#include "common/perf_counters.h"
#include "common/perf_counters_collection.h"
#include "vtkv/ceph/key_space.h"
#include "vtkv/ceph/store_iterator.h"
#include "vtkv/ceph/store_options.h"
#include "vtkv/db/ownership.h"
#include "vtkv/metrics.h"
#include "vtkv/util/host_remedy.h"

#define dout_context cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "vtkv(" << m_directory << ") "

using vtkv::Status;

namespace {

#if CEPH_RELEASE >= 20
constexpr auto kUnlabeled = select_labeled_t::unlabeled;
#else
constexpr bool kUnlabeled = false;
#endif

enum {
  l_vtkv_first = 734500,
  l_vtkv_get_latency,
  l_vtkv_submit_latency,
  l_vtkv_submit_sync_latency,
  l_vtkv_merges,
  l_vtkv_compact,
  l_vtkv_last
};

PerfCounters* make_counters(CephContext* cct) {
  PerfCountersBuilder builder(cct, "vtkv", l_vtkv_first, l_vtkv_last);
  builder.add_time_avg(l_vtkv_get_latency, "get_latency", "Time of a lookup");
  builder.add_time_avg(l_vtkv_submit_latency, "submit_latency", "Time until a transaction is visible");
  builder.add_time_avg(l_vtkv_submit_sync_latency, "submit_sync_latency", "Time until a transaction is durable");
  builder.add_u64_counter(l_vtkv_merges, "merge_operations", "Merges into existing values");
  builder.add_u64_counter(l_vtkv_compact, "compact", "Compactions asked for");
  PerfCounters* counters = builder.create_perf_counters();
  cct->get_perfcounters_collection()->add(counters);
  return counters;
}

int error_of(const Status& status) {
  return status.ok() ? 0 : status.error_number() > 0 ? -status.error_number() : -EIO;
}

}  // namespace

VtkvStore::VtkvStore(CephContext* context, std::string directory, std::map<std::string, std::string> options)
    : cct(context),
      m_directory(std::move(directory)),
      m_fatal_reads(context, m_directory),
      m_given_options(std::move(options)),
      m_options(vtkv::default_store_options()) {}

VtkvStore::~VtkvStore() { close(); }

// --- opening and closing --------------------------------------------------------------------------------

int VtkvStore::init(std::string options) {
  if (const Status status = vtkv::apply_store_options(options, &m_options); !status.ok()) {
    derr << status.message() << dendl;
    return error_of(status);
  }
  return 0;
}

int VtkvStore::set_merge_operator(const std::string& prefix, std::shared_ptr<MergeOperator> one) {
  if (m_db) {
    derr << "a merge operator (" << one->name() << ", of prefix " << prefix
         << ") has to be set before the store is opened" << dendl;
    return -EINVAL;
  }
  m_operators.add(prefix, std::move(one));
  return 0;
}

int VtkvStore::open(std::ostream& out, const std::string&) { return do_open(out, Mode::existing); }
int VtkvStore::create_and_open(std::ostream& out, const std::string&) { return do_open(out, Mode::create); }
int VtkvStore::open_read_only(std::ostream& out, const std::string&) { return do_open(out, Mode::read_only); }

int VtkvStore::refuse(std::ostream& out, const Status& status) const {
  out << "vtkv: " << status.message() << std::endl;
  dout(1) << "cannot open: " << status.message() << dendl;
  return error_of(status);
}

Status VtkvStore::open_database(Mode mode) {
  vtkv::Env* const env = vtkv::posix_env();
  if (mode == Mode::read_only) {
    return vtkv::DB::open_read_only(env, m_directory, m_options, &m_db);
  }
  if (mode == Mode::create && !env->exists(m_directory + "/manifest")) {
    VTKV_RETURN_IF_ERROR(vtkv::DB::create(env, m_directory, m_options));
  }
  if (env->exists(m_directory + "/manifest")) {
    VTKV_RETURN_IF_ERROR(vtkv::check_sole_owner(env, m_directory));
  }
  return vtkv::DB::open(env, m_directory, m_options, &m_db);
}

int VtkvStore::do_open(std::ostream& out, Mode mode) {
  if (m_db) {
    return refuse(out, Status::invalid_argument(m_directory + ": this store is open already; close it first"));
  }
  if (const Status status = vtkv::apply_store_options(m_given_options, &m_options); !status.ok()) {
    return refuse(out, status);
  }
  m_options.on_fatal = [this](const Status& status) {
    derr << "cannot write any more, nothing later will be stored: " << status.message() << dendl;
  };
  m_options.on_background_error = [this](const vtkv::BackgroundError& error) {
    if (error.status.ok()) {
      derr << error.work->name << " works again" << dendl;
    } else {
      const std::string of_host = vtkv::host_remedy(error.status.error_number(), m_directory);
      derr << error.work->name << " has failed, and is tried again: " << error.status.message() << "; "
           << (vtkv::is_list_full(error.status) ? "it goes on by itself when compaction has made room"
               : of_host.empty()                ? "check the disk of " + m_directory
                                                : of_host)
           << dendl;
    }
  };
  if (const Status status = open_database(mode); !status.ok()) {
    return refuse(out, status);
  }
  m_read_only = mode == Mode::read_only;
  m_counters = make_counters(cct);
  return 0;
}

void VtkvStore::close() {
  std::thread compacting;
  {
    vtkv::MutexLock lock(m_compact_lock);
    m_closing = true;
    m_compact_changed.notify_all();
    compacting.swap(m_compact_thread);
  }
  if (compacting.joinable()) {
    compacting.join();
  }
  m_db.reset();
  {
    vtkv::MutexLock lock(m_compact_lock);
    m_closing = false;
    m_compact_wanted = false;
  }
  if (m_counters) {
    cct->get_perfcounters_collection()->remove(m_counters);
    delete m_counters;
    m_counters = nullptr;
  }
}

int VtkvStore::repair(std::ostream& out) {
  if (const int r = do_open(out, Mode::read_only); r < 0) {
    return r;
  }
  std::vector<std::string> findings;
  m_db->verify(&findings);
  close();
  if (!findings.empty()) {
    for (const std::string& finding : findings) {
      out << finding << std::endl;
    }
    return refuse(out, Status::corruption(m_directory + ": " + std::to_string(findings.size()) +
                                          " of its parts are damaged; restore the store from a copy. Without one, "
                                          "store-copy copies the keys before the first damage, and aborts there"));
  }
  out << "vtkv: " << m_directory << " is whole, there is nothing to repair" << std::endl;
  return 0;
}

// --- transactions ---------------------------------------------------------------------------------------

// A transaction on its way to disk; ends itself.
class VtkvStore::Pending final : public vtkv::Submission {
 public:
  // What DB::submit made of it; not touched after that has returned.
  struct Outcome {
    vtkv::SequenceNumber sequence = 0;
    Status refusal;  // when it got no sequence
  };
  explicit Pending(Outcome* outcome) : m_outcome(outcome) {}

  void sequenced(vtkv::SequenceNumber sequence) override {
    m_outcome->sequence = sequence;
    m_outcome = nullptr;
  }
  // A failure after it was accepted comes through on_fatal.
  void durable(const Status& status) override {
    if (m_outcome) {
      m_outcome->refusal = status;
    }
    delete this;
  }

 private:
  Outcome* m_outcome;
};

KeyValueDB::Transaction VtkvStore::get_transaction() { return std::make_shared<vtkv::StoreTransaction>(m_operators); }

Status VtkvStore::apply(const vtkv::StoreTransaction& transaction, bool wait, vtkv::SequenceNumber* sequence) {
  VTKV_RETURN_IF_ERROR(transaction.status());
  if (!transaction.needs_merge_lock()) {
    return resolve_and_submit(transaction, wait, sequence);
  }
  vtkv::MutexLock lock(m_merge_lock);
  return resolve_and_submit(transaction, wait, sequence);
}

Status VtkvStore::resolve_and_submit(const vtkv::StoreTransaction& transaction, bool wait,
                                     vtkv::SequenceNumber* sequence) {
  vtkv::WriteBatch batch;
  if (transaction.merges().empty()) {
    batch = transaction.batch();
  } else {
    VTKV_RETURN_IF_ERROR(
        vtkv::resolve_merges(m_db.get(), m_operators, transaction.batch(), transaction.merges(), &batch));
    m_counters->inc(l_vtkv_merges, transaction.merges().size());
  }
  if (!wait) {
    return m_db->write(std::move(batch), {.sync = false});  // holds back whoever outruns the disk
  }
  Pending::Outcome outcome;
  auto pending = std::make_unique<Pending>(&outcome);
  pending->batch = std::move(batch);
  m_db->submit(pending.release());
  *sequence = outcome.sequence;
  return outcome.refusal;
}

int VtkvStore::submit(const Transaction& transaction, bool wait) {
  if (m_read_only) {
    derr << "opened read-only: transactions are refused" << dendl;
    return -EROFS;
  }
  const auto start = ceph::mono_clock::now();
  vtkv::SequenceNumber sequence = 0;
  Status status = apply(static_cast<const vtkv::StoreTransaction&>(*transaction), wait, &sequence);
  if (status.ok() && wait) {
    status = m_db->wait_durable(sequence);
  }
  m_counters->tinc(wait ? l_vtkv_submit_sync_latency : l_vtkv_submit_latency, ceph::mono_clock::now() - start);
  if (!status.ok()) {
    derr << "a transaction failed: " << status.message() << dendl;
  }
  return error_of(status);
}

// --- reads ----------------------------------------------------------------------------------------------

int VtkvStore::get(const std::string& prefix, const std::string& key, ceph::buffer::list* out) {
  const auto start = ceph::mono_clock::now();
  std::string value;
  const Status status = m_db->get(vtkv::encode_key(prefix, key), &value);
  m_counters->tinc(l_vtkv_get_latency, ceph::mono_clock::now() - start);
  if (status.ok()) {
    out->append(value);
    return 0;
  }
  if (!status.is_not_found()) {
    m_fatal_reads.end("key '" + key + "' of prefix '" + prefix + "'", status);
  }
  return -ENOENT;
}

int VtkvStore::get(const std::string& prefix, const std::set<std::string>& keys,
                   std::map<std::string, ceph::buffer::list>* out) {
  for (const std::string& key : keys) {
    ceph::buffer::list value;
    const int r = get(prefix, key, &value);
    if (r == 0) {
      (*out)[key] = std::move(value);
    }
  }
  return 0;
}

KeyValueDB::WholeSpaceIterator VtkvStore::get_wholespace_iterator(IteratorOpts) {
  const vtkv::EncodedRange range = vtkv::range_of_everything();
  return std::make_shared<vtkv::WholeSpaceIterator>(m_db->new_iterator(range.lower, range.upper), m_fatal_reads);
}

KeyValueDB::Iterator VtkvStore::get_iterator(const std::string& prefix, IteratorOpts options, IteratorBounds bounds) {
  if (prefix.empty()) {
    return make_iterator(prefix, get_wholespace_iterator(options));
  }
  vtkv::EncodedRange range = vtkv::range_of_prefix(prefix);
  if (bounds.lower_bound) {
    range.lower = vtkv::encode_key(prefix, *bounds.lower_bound);
  }
  if (bounds.upper_bound) {
    range.upper = vtkv::encode_key(prefix, *bounds.upper_bound);
  }
  return std::make_shared<vtkv::PrefixIterator>(prefix, m_db->new_iterator(range.lower, range.upper), m_fatal_reads);
}

// --- space, statistics, compaction ----------------------------------------------------------------------

uint64_t VtkvStore::get_estimated_size(std::map<std::string, uint64_t>& extra) {
  const vtkv::DBStatistics statistics = m_db->statistics();
  extra["tree"] = statistics.tree_file_bytes;
  extra["tree_live"] = statistics.tree_live_bytes;
  extra["log"] = statistics.log_file_bytes;
  const uint64_t total = statistics.tree_file_bytes + statistics.log_file_bytes;
  extra["total"] = total;
  return total;
}

int64_t VtkvStore::estimate_prefix_size(const std::string& prefix, const std::string& key_prefix) {
  const std::string lower = vtkv::encode_key(prefix, key_prefix);
  const auto iterator = m_db->new_iterator(lower, vtkv::range_of_prefix(prefix).upper);
  int64_t bytes = 0;
  for (iterator->seek_to_first(); iterator->valid() && iterator->key().starts_with(lower); iterator->next()) {
    bytes += static_cast<int64_t>(iterator->key().size() + iterator->value().size());
  }
  if (const Status status = iterator->status(); !status.ok()) {
    m_fatal_reads.end("the keys of prefix '" + prefix + "'", status);
  }
  return bytes;
}

int VtkvStore::set_cache_size(uint64_t bytes) {
  m_options.block_cache_bytes = bytes;
  if (m_db) {
    m_db->set_block_cache_bytes(bytes);
  }
  return 0;
}

int64_t VtkvStore::get_cache_usage() const { return static_cast<int64_t>(m_db->statistics().block_cache_bytes); }

void VtkvStore::get_statistics(ceph::Formatter* f) {
  f->open_object_section("vtkv_statistics");
  for (const vtkv::Metric& metric : vtkv::metrics_of(m_db->statistics())) {
    f->dump_unsigned(metric.name, metric.value);
  }
  f->close_section();
  f->open_object_section("vtkv_perf_counters");
  m_counters->dump_formatted(f, false, kUnlabeled);
  f->close_section();
}

bool VtkvStore::get_property(const std::string& property, uint64_t* out) {
  for (const vtkv::Metric& metric : vtkv::metrics_of(m_db->statistics())) {
    if (property == "vtkv." + std::string(metric.name)) {
      *out = metric.value;
      return true;
    }
  }
  return false;
}

void VtkvStore::compact() {
  m_counters->inc(l_vtkv_compact);
  if (const Status status = m_db->compact(); !status.ok()) {
    derr << "compaction failed: " << status.message() << dendl;
  }
}

void VtkvStore::compact_async() {
  vtkv::MutexLock lock(m_compact_lock);
  if (m_closing) {
    return;
  }
  m_compact_wanted = true;
  if (!m_compact_thread.joinable()) {
    m_compact_thread = std::thread([this] { run_compactions(); });
  }
  m_compact_changed.notify_all();
}

// Requests that come while one compaction runs are served by the next, together.
void VtkvStore::run_compactions() {
  vtkv::MutexLock lock(m_compact_lock);
  for (;;) {
    m_compact_changed.wait(lock, [this]() REQUIRES(m_compact_lock) { return m_compact_wanted || m_closing; });
    if (m_closing) {
      return;
    }
    m_compact_wanted = false;
    lock.unlock();
    compact();
    lock.lock();
  }
}
