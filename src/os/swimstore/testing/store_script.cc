// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/store_script.h"

#include <functional>

#include <fmt/format.h>

#include "swimstore/swimstore.h"
#include "swimstore/testing/small_store.h"

namespace swimstore {

namespace {

// Stays the script's: a store that fails completes it no more.
class Acknowledgement final : public Context {
 public:
  explicit Acknowledgement(std::function<void()> note) : m_note(std::move(note)) {}
  void complete(int r) override { finish(r); }

 private:
  void finish(int) override { m_note(); }

  const std::function<void()> m_note;
};

const coll_t kParent(spg_t(pg_t(0, 1)));
const coll_t kChild(spg_t(pg_t(1, 1)));
// Of a store with three cubes; in another one than these.
const coll_t kAnchor(spg_t(pg_t(0, 2)));
const ghobject_t kAnchored(hobject_t(object_t("anchored"), "", CEPH_NOSNAP, 0, 2, ""));
const ghobject_t kOdd(hobject_t(object_t("odd"), "", CEPH_NOSNAP, 1, 1, ""));
constexpr unsigned kOmapKeys = 24;

ceph::bufferlist filled(size_t count, char byte) {
  ceph::bufferlist data;
  data.append(std::string(count, byte));
  return data;
}

bool has_failed_cleanly(const std::string& error) { return error.ends_with(fmt::format(": {}", -EIO)); }

}  // namespace

StoreScript::StoreScript(CephContext* cct, vtkv::SimEnv* env, uint64_t seed, std::function<void()> before_move)
    : m_cct(cct),
      m_env(env),
      m_workload(kParent, {.seed = seed, .objects = 4, .object_bytes_max = 40000}),
      m_before_move(std::move(before_move)) {
  // What cannot be carried out throws its error instead of ending the process.
  use_small_stores(cct,
                   {{"objectstore_debug_throw_on_failed_txc", "true"}, {"swimstore_cubes", m_before_move ? "2" : "1"}});
}

std::unique_ptr<SwimStore> StoreScript::open_store(CephContext* cct, vtkv::SimEnv* env) {
  auto store = std::make_unique<SwimStore>(cct, kPath, env);
  store->set_cube_options_hook([](CubeOptions& options) { make_smaller(&options); });
  return store;
}

std::string StoreScript::run(unsigned lives) {
  const auto store = open_store(m_cct, m_env);
  store->set_fatal_handler([this](const vtkv::Status&) { m_stopped = true; });
  if (store->mkfs() < 0) {
    return {};
  }
  m_history.made = true;
  constexpr std::string (StoreScript::* kLives[])(SwimStore&) = {&StoreScript::first_life, &StoreScript::second_life};
  for (unsigned life = 0; life < lives; ++life) {
    if (store->mount() < 0) {
      return {};
    }
    std::string wrong;
    {
      StepwiseCommits commits(m_env);
      m_commits = commits.queue();
      wrong = (this->*kLives[life])(*store);
      m_env->advance(std::chrono::seconds(2));  // until all is idle, and the log says that all is durable
    }
    store->umount();
    if (!wrong.empty() || m_stopped) {
      return wrong;
    }
  }
  return {};
}

bool StoreScript::queue(SwimStore& store, const coll_t& cid, Transaction txn, bool wait) {
  auto handle = store.open_collection(cid);
  if (!handle) {
    handle = store.create_new_collection(cid);
  }
  store.set_collection_commit_queue(cid, m_commits);
  const size_t number = m_history.states.size();
  m_acknowledgements.push_back(std::make_unique<Acknowledgement>([this, number] {
    m_history.acknowledged = std::max(m_history.acknowledged, number);
    m_env->mark(number);
  }));
  txn.register_on_commit(m_acknowledgements.back().get());
  try {
    store.queue_transaction(handle, std::move(txn));
    m_history.states.push_back(expected());
  } catch (int r) {
    m_stopped = true;  // an OSD ends here, with the transaction's dump
    return false;
  }
  // What is under way in two cubes may be lost in one of them, whichever came first.
  if (wait || m_before_move) {
    m_env->run_until_idle();
  }
  return !m_stopped;
}

ModelState StoreScript::expected() const {
  ModelState state = {{kParent, m_workload.model()}};
  if (m_is_split) {
    state[kChild];
  }
  if (m_has_anchor) {
    state[kAnchor][kAnchored];
  }
  if (m_odd) {
    state[m_is_split ? kChild : kParent][kOdd] = *m_odd;
  }
  return state;
}

// Every third transaction is waited for; the others are in flight together.
bool StoreScript::work(SwimStore& store, unsigned transactions) {
  for (unsigned i = 0; i < transactions; ++i) {
    if (!queue(store, kParent, m_workload.next(), i % 3 == 2)) {
      return false;
    }
  }
  m_env->advance(std::chrono::milliseconds(60));  // the timers of background workers
  return !m_stopped;
}

bool StoreScript::split(SwimStore& store) {
  store.create_new_collection(kChild);
  Transaction txn;
  txn.create_collection(kChild, 1);
  txn.split_collection(kParent, 1, 1, kChild);
  m_is_split = true;
  return queue(store, kParent, std::move(txn), true);
}

bool StoreScript::merge(SwimStore& store) {
  Transaction txn;
  txn.merge_collection(kChild, kParent, 0);
  m_is_split = false;
  return queue(store, kParent, std::move(txn), true);
}

// Where the other collection lies.
bool StoreScript::move_child(SwimStore& store) {
  Transaction create;
  store.create_new_collection(kAnchor);
  create.create_collection(kAnchor, 0);
  create.touch(kAnchor, kAnchored);
  m_has_anchor = true;
  if (!queue(store, kAnchor, std::move(create), true)) {
    return false;
  }
  m_before_move();
  Transaction both;
  both.touch(kAnchor, kAnchored);
  both.touch(kChild, kOdd);
  return queue(store, kAnchor, std::move(both), true);
}

std::string StoreScript::first_life(SwimStore& store) {
  Transaction create;
  create.create_collection(kParent, 0);
  if (!queue(store, kParent, std::move(create), true)) {
    return {};
  }
  Transaction odd;
  m_odd.emplace();
  m_odd->data = std::string(6000, 'o');
  odd.write(kParent, kOdd, 0, m_odd->data.size(), filled(m_odd->data.size(), 'o'));
  std::map<std::string, ceph::bufferlist> omap;
  for (unsigned i = 0; i < kOmapKeys; ++i) {
    // Fills a memtable.
    omap[fmt::format("key_{:02}", i)] = filled(1000, static_cast<char>('a' + i));
    m_odd->omap[fmt::format("key_{:02}", i)] = std::string(1000, static_cast<char>('a' + i));
  }
  odd.omap_setkeys(kParent, kOdd, omap);
  if (!queue(store, kParent, std::move(odd), false) || !work(store, 8) || !split(store) || !work(store, 4)) {
    return {};
  }
  return compare(store);
}

std::string StoreScript::second_life(SwimStore& store) {
  if (const std::string wrong = compare(store); !wrong.empty()) {
    return wrong;
  }
  if (m_before_move && !move_child(store)) {
    return {};
  }
  Transaction overwrite;  // of a part of a block: it is read first
  m_odd->data.replace(100, 10, std::string(10, 'O'));
  overwrite.write(kChild, kOdd, 100, 10, filled(10, 'O'));
  overwrite.omap_rmkeyrange(kChild, kOdd, "key_05", "key_20");
  m_odd->omap.erase(m_odd->omap.lower_bound("key_05"), m_odd->omap.lower_bound("key_20"));
  if (!queue(store, kChild, std::move(overwrite), false) || !work(store, 4) || !merge(store) || !work(store, 6)) {
    return {};
  }
  Transaction remove;
  m_odd.reset();
  remove.remove(kParent, kOdd);
  if (!queue(store, kParent, std::move(remove), true)) {
    return {};
  }
  return compare(store);
}

std::string StoreScript::compare(SwimStore& store) const {
  std::string error;
  const ModelState found = read_store(store, &error);
  if (!error.empty()) {
    return has_failed_cleanly(error) ? "" : error;
  }
  return difference(m_history.states.back(), found);
}

std::string StoreScript::check(CephContext* cct, vtkv::SimEnv* env, const StoreHistory& history) {
  const auto store = open_store(cct, env);
  if (!history.made) {
    if (const int r = store->mkfs(); r < 0) {
      return fmt::format("mkfs cannot be done again: {}", r);
    }
  }
  if (const int r = store->mount(); r < 0) {
    return fmt::format("mount failed: {}", r);
  }
  std::string wrong;
  const ModelState found = read_store(*store, &wrong);
  if (history.may_have_lost_blocks && has_failed_cleanly(wrong)) {
    store->umount();
    return {};
  }
  size_t n = history.acknowledged;
  while (wrong.empty() && n < history.states.size() && !difference(history.states[n], found).empty()) {
    ++n;
  }
  if (wrong.empty() && n == history.states.size()) {
    wrong = fmt::format("it holds no prefix of at least {} transactions: compared with that one, {}",
                        history.acknowledged, difference(history.states[history.acknowledged], found));
  }
  if (wrong.empty() && found.contains(kParent)) {
    StepwiseCommits commits(env);
    auto handle = store->open_collection(kParent);
    store->set_collection_commit_queue(kParent, commits.queue());
    Transaction more;
    more.touch(kParent, ghobject_t(hobject_t(object_t("afterwards"), "", CEPH_NOSNAP, 0, 1, "")));
    bool committed = false;
    more.register_on_commit(new LambdaContext([&committed](int) { committed = true; }));
    store->queue_transaction(handle, std::move(more));
    // A recovery leaves memtables that slow the first groups down for milliseconds.
    env->advance(std::chrono::seconds(1));
    wrong = committed ? "" : "it does not take another transaction";
  }
  store->umount();
  if (!wrong.empty()) {
    return wrong;
  }
  const int errors = store->fsck(true);
  return errors == 0 ? "" : fmt::format("fsck found {} errors", errors);
}

}  // namespace swimstore
