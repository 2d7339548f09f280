// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/crash_images.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>
#include <set>
#include <span>

#include "vtkv/util/hash.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

// Torn forms of one write: two granules times these, times the neighbours that land with it.
enum TearShape : uint32_t {
  first_fragment,
  all_but_last,
  last_fragment,
  all_but_first,
  odd_fragments,
  random_fragments,
  kTearShapes
};
enum TearNeighbours : uint32_t { alone, with_earlier, with_all, kTearNeighbourKinds };
constexpr uint32_t kTearGranules[] = {kSimSector, kSimBlock};
constexpr uint64_t kTearsPerWrite = uint64_t{kTearShapes} * kTearNeighbourKinds * std::size(kTearGranules);

bool fragment_landed(uint32_t shape, size_t fragment, size_t count, uint64_t random) {
  switch (shape) {
    case first_fragment:
      return fragment == 0;
    case all_but_last:
      return fragment + 1 != count;
    case last_fragment:
      return fragment + 1 == count;
    case all_but_first:
      return fragment != 0;
    case odd_fragments:
      return fragment % 2 == 1;
    default:
      return (mix64(random + fragment) & 1) != 0;
  }
}

// When the disk did it. Those under way are later than all; one that failed is not: it was given up.
uint64_t performed(const SimOp& op) { return op.spoiled && op.executed == kSimNever ? op.submitted : op.executed; }

bool touch_the_same(const SimOp& a, const SimOp& b) {
  if (a.kind >= SimOp::Kind::create || b.kind >= SimOp::Kind::create) {
    return a.path == b.path;
  }
  const bool resizes = a.kind == SimOp::Kind::truncate || b.kind == SimOp::Kind::truncate;
  return a.inode == b.inode && (resizes || (a.offset < b.offset + b.length && b.offset < a.offset + a.length));
}

}  // namespace

std::string CrashState::to_string() const {
  std::string text = "cut " + std::to_string(cut) + " (number " + std::to_string(cut_index) + "), landed";
  for (const uint32_t op : landed) {
    text += " " + std::to_string(op);
  }
  if (tear) {
    text += ", torn " + std::to_string(tear->op) + " in " + std::to_string(tear->granule) + "s ";
    for (const bool fragment : tear->fragments) {
      text += fragment ? '1' : '0';
    }
  }
  return text;
}

CrashImages::CrashImages(SimTrace trace, CrashOptions options)
    : m_trace(std::move(trace)), m_options(options), m_profile(options.profile.value_or(m_trace.profile)) {
  find_durable_times();
  find_cuts();
  m_stable = m_trace.base;
}

void CrashImages::find_durable_times() {
  m_durable_at.assign(m_trace.ops.size(), kSimNever);
  std::vector<uint32_t> waiting;
  std::vector<const SimSync*> syncs;
  for (const SimSync& sync : m_trace.syncs) {
    if (sync.completed != kSimNever) {
      syncs.push_back(&sync);
    }
  }
  // The first sync to complete decides; an operation that completed after this sync's submission waits on.
  std::sort(syncs.begin(), syncs.end(), [](auto* a, auto* b) { return a->completed < b->completed; });
  size_t next = 0;
  for (const SimSync* sync : syncs) {
    for (; next < m_trace.ops.size() && m_trace.ops[next].submitted < sync->completed; ++next) {
      if (!m_trace.ops[next].spoiled && m_trace.ops[next].completed != kSimNever) {
        waiting.push_back(static_cast<uint32_t>(next));
      }
    }
    std::erase_if(waiting, [&](uint32_t index) {
      const SimOp& op = m_trace.ops[index];
      if (op.completed > sync->submitted || !sim_covers(m_profile, *sync, op)) {
        return false;
      }
      m_durable_at[index] = sync->completed;
      m_durable_order.push_back(index);
      return true;
    });
  }
  // Of one sync's operations, in the order in which the disk had performed them.
  std::stable_sort(m_durable_order.begin(), m_durable_order.end(), [this](uint32_t a, uint32_t b) {
    return std::pair(m_durable_at[a], m_trace.ops[a].executed) < std::pair(m_durable_at[b], m_trace.ops[b].executed);
  });
}

void CrashImages::find_cuts() {
  if (m_options.cuts == CrashOptions::Cuts::every_event) {
    m_cuts.resize(m_trace.end + 1);
    std::iota(m_cuts.begin(), m_cuts.end(), 0);
    return;
  }
  for (const SimSync& sync : m_trace.syncs) {
    if (sync.completed != kSimNever) {
      m_cuts.push_back(sync.completed - 1);
    }
  }
  if (m_options.cuts == CrashOptions::Cuts::syncs_and_marks) {
    for (const SimMark& mark : m_trace.marks) {
      m_cuts.push_back(mark.time);
    }
  }
  m_cuts.push_back(m_trace.end);
  std::sort(m_cuts.begin(), m_cuts.end());
  m_cuts.erase(std::unique(m_cuts.begin(), m_cuts.end()), m_cuts.end());
}

void CrashImages::load(size_t cut_index) {
  if (cut_index == m_cut_index) {
    return;
  }
  m_cut_index = cut_index;
  m_in_doubt.clear();
  m_new_writes.clear();
  const uint64_t cut = m_cuts[cut_index];
  const uint64_t last_cut = cut_index == 0 ? 0 : m_cuts[cut_index - 1];
  for (uint32_t i = 0; i < m_trace.ops.size() && m_trace.ops[i].submitted <= cut; ++i) {
    if (m_durable_at[i] <= cut) {
      continue;
    }
    m_in_doubt.push_back(i);
    const SimOp& op = m_trace.ops[i];
    if (op.kind == SimOp::Kind::write && op.data.length() > kSimSector && op.submitted > last_cut) {
      m_new_writes.push_back(i);
    }
  }
}

void CrashImages::move_to(uint64_t cut) {
  if (cut < m_stable_cut) {
    m_stable = m_trace.base;
    m_stable_done = 0;
  }
  m_stable_cut = cut;
  while (m_stable_done < m_durable_order.size() && m_durable_at[m_durable_order[m_stable_done]] <= cut) {
    sim_apply(m_trace.ops[m_durable_order[m_stable_done++]], SimSpace::primed, &m_stable);
  }
}

const std::vector<uint32_t>& CrashImages::in_doubt(size_t cut_index) {
  load(cut_index);
  return m_in_doubt;
}

uint64_t CrashImages::drop_two_count() const {
  const uint64_t n = m_in_doubt.size();
  return std::min<uint64_t>(n * (n - 1) / 2, m_options.drop_two_max);
}

uint64_t CrashImages::subset_count() const {
  const uint64_t n = m_in_doubt.size();
  if (n <= m_options.exhaustive_max) {
    return uint64_t{1} << n;
  }
  return (n + 1) + n + n + drop_two_count() + m_options.samples;
}

uint64_t CrashImages::state_count(size_t cut_index) {
  load(cut_index);
  return subset_count() + (m_options.torn ? m_new_writes.size() * kTearsPerWrite : 0);
}

uint64_t CrashImages::state_count() {
  uint64_t count = 0;
  for (size_t i = 0; i < m_cuts.size(); ++i) {
    count += state_count(i);
  }
  return count;
}

// Which of the operations in doubt landed in the n-th subset.
std::vector<bool> CrashImages::subset(uint64_t n) const {
  const size_t count = m_in_doubt.size();
  std::vector<bool> landed(count, false);
  if (count <= m_options.exhaustive_max) {
    for (size_t i = 0; i < count; ++i) {
      landed[i] = (n >> i & 1) != 0;
    }
    return landed;
  }
  if (n <= count) {  // a prefix
    std::fill_n(landed.begin(), n, true);
    return landed;
  }
  n -= count + 1;
  if (n < count) {  // only one
    landed[n] = true;
    return landed;
  }
  n -= count;
  if (n < count) {  // all but one
    landed.flip();
    landed[n] = false;
    return landed;
  }
  n -= count;
  std::mt19937_64 random(mix64(m_options.seed) ^ mix64(m_cuts[m_cut_index]) ^ mix64(n + 1));
  if (n < drop_two_count()) {
    const bool all_pairs = drop_two_count() == uint64_t{count} * (count - 1) / 2;
    uint64_t first = 0;
    uint64_t rest = n;
    for (; all_pairs && rest >= count - 1 - first; ++first) {
      rest -= count - 1 - first;
    }
    landed.flip();
    landed[all_pairs ? first : random() % count] = false;
    landed[all_pairs ? first + 1 + rest : random() % count] = false;
    return landed;
  }
  // Samples of every density: half of them of a few, or all but a few.
  const uint64_t threshold = random() % 1001;
  for (size_t i = 0; i < count; ++i) {
    landed[i] = random() % 1000 < threshold;
  }
  return landed;
}

void CrashImages::choose_subset(uint64_t n, CrashState* state) const {
  const std::vector<bool> landed = subset(n);
  for (size_t i = 0; i < landed.size(); ++i) {
    if (landed[i]) {
      state->landed.push_back(m_in_doubt[i]);
    }
  }
}

void CrashImages::choose_tear(uint64_t n, CrashState* state) const {
  CrashTear tear;
  tear.op = m_new_writes[n / kTearsPerWrite];
  n %= kTearsPerWrite;
  const auto shape = static_cast<uint32_t>(n % kTearShapes);
  const auto neighbours = static_cast<uint32_t>(n / kTearShapes % kTearNeighbourKinds);
  tear.granule = kTearGranules[n / kTearShapes / kTearNeighbourKinds];
  const size_t count = (m_trace.ops[tear.op].data.length() + tear.granule - 1) / tear.granule;
  const uint64_t random = mix64(m_options.seed) ^ mix64(tear.op + (n << 32));
  for (size_t fragment = 0; fragment < count; ++fragment) {
    tear.fragments.push_back(fragment_landed(shape, fragment, count, random));
  }
  for (const uint32_t op : m_in_doubt) {
    if (op != tear.op && (neighbours == with_all || (neighbours == with_earlier && op < tear.op))) {
      state->landed.push_back(op);
    }
  }
  state->tear = std::move(tear);
}

CrashState CrashImages::state(size_t cut_index, uint64_t n) {
  load(cut_index);
  CrashState state;
  state.cut_index = cut_index;
  state.cut = m_cuts[cut_index];
  if (n < subset_count()) {
    choose_subset(n, &state);
  } else {
    choose_tear(n - subset_count(), &state);
  }
  return state;
}

bool CrashImages::next(CrashState* state) {
  while (m_next_cut < m_cuts.size() && m_next_state >= state_count(m_next_cut)) {
    ++m_next_cut;
    m_next_state = 0;
  }
  if (m_next_cut == m_cuts.size()) {
    return false;
  }
  *state = this->state(m_next_cut, m_next_state++);
  return true;
}

CrashState CrashImages::sample(uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t cut_index = random() % m_cuts.size();
  return state(cut_index, random() % state_count(cut_index));
}

// An operation that failed, or whose sync did, stays in doubt for ever. What came after it in its place and became
// durable is there all the same. It is done once more, and so is what came after that in any of its places.
void CrashImages::add_what_covers_spoiled(std::vector<uint32_t>* order) const {
  std::vector<uint32_t> covered;
  std::copy_if(order->begin(), order->end(), std::back_inserter(covered),
               [this](uint32_t index) { return m_trace.ops[index].spoiled; });
  std::set<uint32_t> covering;
  while (!covered.empty()) {
    const SimOp& op = m_trace.ops[covered.back()];
    covered.pop_back();
    for (size_t i = 0; i < m_stable_done; ++i) {
      const uint32_t index = m_durable_order[i];
      const SimOp& later = m_trace.ops[index];
      if (performed(later) > performed(op) && touch_the_same(later, op) && covering.insert(index).second) {
        covered.push_back(index);
      }
    }
  }
  order->insert(order->end(), covering.begin(), covering.end());
}

std::unique_ptr<SimEnv> CrashImages::materialize(const CrashState& state) {
  move_to(state.cut);
  SimImage image = m_stable;
  std::vector<uint32_t> order = state.landed;
  if (state.tear) {
    order.push_back(state.tear->op);
  }
  add_what_covers_spoiled(&order);
  std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
    return std::pair(performed(m_trace.ops[a]), a) < std::pair(performed(m_trace.ops[b]), b);
  });
  for (const uint32_t index : order) {
    const SimOp& op = m_trace.ops[index];
    if (state.tear && state.tear->op == index) {
      image.change(op.inode).write_torn(op.data, SimSpace::primed, state.tear->granule, state.tear->fragments);
    } else {
      sim_apply(op, SimSpace::primed, &image);
    }
  }
  SimOptions options;
  options.seed = mix64(mix64(m_options.seed) + state.cut);  // a second crash must not draw the first one's ids again
  options.profile = m_profile;
  options.capacity_bytes = m_trace.capacity_bytes;
  options.interleaved = m_options.interleaved;
  return std::make_unique<SimEnv>(options, std::move(image), m_trace.next_inode);
}

std::span<const SimMark> CrashImages::marks(const CrashState& state) const {
  const auto end = std::partition_point(m_trace.marks.begin(), m_trace.marks.end(),
                                        [&](const SimMark& mark) { return mark.time <= state.cut; });
  return {m_trace.marks.begin(), end};
}

}  // namespace vtkv
