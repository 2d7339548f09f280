// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/mem/range_tombstones.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {
// An iterator that jumps gets at most so many neighbouring fragments at once.
constexpr int kNeighboursMax = 64;
}  // namespace

struct RangeTombstones::Node {
  SequenceNumber first_sequence = 0;
  SequenceNumber last_sequence = 0;
  size_t tombstones = 0;
  Fragments fragments;
  const RangeTombstone* own = nullptr;  // of a leaf: its tombstones, the oldest first, in the arena
  std::vector<NodePointer> parts;       // of any other: what it is of, the oldest first
};

// A tombstone replaces the leaf, whose place among the nodes is the first; the trees stay.
struct RangeTombstones::View {
  NodePointer leaf;  // null: none has begun
  std::shared_ptr<const Forest> trees;

  // The newest first.
  template <typename Wanted>
  bool any_of(const Wanted& wanted) const {
    return (leaf && wanted(*leaf)) ||
           std::any_of(trees->begin(), trees->end(), [&](const NodePointer& tree) { return wanted(*tree); });
  }
  template <typename Visit>
  void for_each_from_oldest(const Visit& visit) const {
    for (auto tree = trees->rbegin(); tree != trees->rend(); ++tree) {
      visit(**tree);
    }
    if (leaf) {
      visit(*leaf);
    }
  }
};

RangeTombstones::RangeTombstones() : m_trees(std::make_shared<const Forest>()) {}

RangeTombstones::RangeTombstones(std::vector<RangeTombstone> tombstones) : RangeTombstones() {
  std::erase_if(tombstones, [](const RangeTombstone& tombstone) { return tombstone.begin >= tombstone.end; });
  if (tombstones.empty()) {
    return;
  }
  std::stable_sort(tombstones.begin(), tombstones.end(),
                   [](const RangeTombstone& a, const RangeTombstone& b) { return a.sequence < b.sequence; });
  m_last_sequence = tombstones.back().sequence;
  m_count = tombstones.size();
  auto* const own = reinterpret_cast<RangeTombstone*>(m_arena.allocate(tombstones.size() * sizeof(RangeTombstone)));
  for (size_t i = 0; i < tombstones.size(); ++i) {
    const RangeTombstone& given = tombstones[i];
    new (own + i) RangeTombstone{keep(given.begin), keep(given.end), given.sequence};
  }
  NodePointer all = build(own, tombstones.size(), &m_node_bytes);
  m_memory_bytes = m_node_bytes + m_arena.memory_bytes();
  MutexLock lock(m_lock);
  m_trees = std::make_shared<const Forest>(Forest{std::move(all)});
}

RangeTombstones::Fragments RangeTombstones::paint_all(const RangeTombstone* first, size_t count) {
  return count == 1 ? Fragments{*first}
                    : paint(paint_all(first, count / 2), paint_all(first + count / 2, count - count / 2));
}

RangeTombstones::Fragments RangeTombstones::paint_all(const std::vector<NodePointer>& parts, size_t first,
                                                      size_t count) {
  return count == 1 ? parts[first]->fragments
                    : paint(paint_all(parts, first, count / 2), paint_all(parts, first + count / 2, count - count / 2));
}

RangeTombstones::NodePointer RangeTombstones::build(const RangeTombstone* first, size_t count, size_t* bytes) {
  auto node = std::make_shared<Node>();
  node->first_sequence = first->sequence;
  node->last_sequence = first[count - 1].sequence;
  node->tombstones = count;
  if (count <= kBuiltLeafTombstones) {
    node->own = first;
    node->fragments = paint_all(first, count);
  } else {
    const size_t of_part = std::max(kBuiltLeafTombstones, (count + kBuiltParts - 1) / kBuiltParts);
    for (size_t done = 0; done < count; done += of_part) {
      node->parts.push_back(build(first + done, std::min(of_part, count - done), bytes));
    }
    node->fragments = paint_all(node->parts, 0, node->parts.size());
  }
  *bytes += bytes_of(*node);
  return node;
}

RangeTombstones::View RangeTombstones::view() const {
  MutexLock lock(m_lock);
  return {m_leaf, m_trees};
}

std::string_view RangeTombstones::keep(std::string_view key) {
  if (key.empty()) {
    return {};
  }
  char* const copy = m_arena.allocate(key.size());
  std::memcpy(copy, key.data(), key.size());
  return {copy, key.size()};
}

size_t RangeTombstones::bytes_of(const Node& node) {
  return sizeof(Node) + 4 * sizeof(void*) + node.fragments.capacity() * sizeof(RangeTombstone) +
         node.parts.capacity() * sizeof(NodePointer);
}

// What is seen of both when `above` hides what is below it.
RangeTombstones::Fragments RangeTombstones::paint(const Fragments& below, const Fragments& above) {
  Fragments out;
  out.reserve(below.size() + 2 * above.size());
  auto under = below.begin();
  std::string_view from = under == below.end() ? std::string_view() : under->begin;
  const auto next_under = [&] {
    if (++under != below.end()) {
      from = under->begin;
    }
  };
  for (const RangeTombstone& over : above) {
    while (under != below.end() && from < over.begin) {
      out.push_back({from, std::min(under->end, over.begin), under->sequence});
      if (under->end > over.begin) {
        break;
      }
      next_under();
    }
    out.push_back(over);
    while (under != below.end() && under->end <= over.end) {
      next_under();
    }
    if (under != below.end() && from < over.end) {
      from = over.end;
    }
  }
  for (; under != below.end(); next_under()) {
    out.push_back({from, under->end, under->sequence});
  }
  out.shrink_to_fit();
  return out;
}

// The same for one, without looking at those that it leaves alone.
RangeTombstones::Fragments RangeTombstones::paint(const Fragments& below, const RangeTombstone& over) {
  const auto first = std::partition_point(below.begin(), below.end(),
                                          [&](const RangeTombstone& fragment) { return fragment.end <= over.begin; });
  const auto behind = std::partition_point(first, below.end(),
                                           [&](const RangeTombstone& fragment) { return fragment.begin < over.end; });
  Fragments out;
  out.reserve(below.size() - (behind - first) + 3);
  out.assign(below.begin(), first);
  if (first != behind && first->begin < over.begin) {
    out.push_back({first->begin, over.begin, first->sequence});
  }
  out.push_back(over);
  if (first != behind && std::prev(behind)->end > over.end) {
    out.push_back({over.end, std::prev(behind)->end, std::prev(behind)->sequence});
  }
  out.insert(out.end(), behind, below.end());
  return out;
}

// A leaf with one more tombstone; a new one when `old` is null.
RangeTombstones::NodePointer RangeTombstones::grow_leaf(const Node* old, const RangeTombstone& tombstone) {
  auto leaf = std::make_shared<Node>();
  leaf->last_sequence = tombstone.sequence;
  if (old == nullptr) {
    m_leaf_tombstones = reinterpret_cast<RangeTombstone*>(m_arena.allocate(kLeafTombstones * sizeof(RangeTombstone)));
    leaf->first_sequence = tombstone.sequence;
    leaf->fragments = {tombstone};
    leaf->tombstones = 1;
  } else {
    leaf->first_sequence = old->first_sequence;
    leaf->fragments = paint(old->fragments, tombstone);
    leaf->tombstones = old->tombstones + 1;
  }
  // Readers of the old leaf do not look at this one.
  new (m_leaf_tombstones + leaf->tombstones - 1) RangeTombstone(tombstone);
  leaf->own = m_leaf_tombstones;
  return leaf;
}

// Takes a full leaf in: two trees of equal size become one. *bytes grows by what is new.
RangeTombstones::Forest RangeTombstones::grow_trees(Forest trees, NodePointer leaf, size_t* bytes) {
  trees.insert(trees.begin(), std::move(leaf));
  while (trees.size() > 1 && trees[0]->tombstones == trees[1]->tombstones) {
    auto both = std::make_shared<Node>();
    both->first_sequence = trees[1]->first_sequence;
    both->last_sequence = trees[0]->last_sequence;
    both->tombstones = trees[0]->tombstones + trees[1]->tombstones;
    both->fragments = paint(trees[1]->fragments, trees[0]->fragments);
    both->parts = {trees[1], trees[0]};
    *bytes += bytes_of(*both);
    trees.erase(trees.begin());
    trees.front() = std::move(both);
  }
  return trees;
}

void RangeTombstones::add(SequenceNumber sequence, std::string_view begin, std::string_view end) {
  if (begin >= end) {
    return;
  }
  VTKV_ASSERT(sequence >= m_last_sequence);
  m_last_sequence = sequence;
  const View before = view();  // nobody but the writer changes it
  NodePointer leaf = grow_leaf(before.leaf.get(), {keep(begin), keep(end), sequence});
  m_node_bytes += bytes_of(*leaf) - (before.leaf ? bytes_of(*before.leaf) : 0);
  std::shared_ptr<const Forest> trees = before.trees;
  if (leaf->tombstones == kLeafTombstones) {
    trees = std::make_shared<const Forest>(grow_trees(*before.trees, std::move(leaf), &m_node_bytes));
    leaf = nullptr;
  }
  m_memory_bytes.store(m_node_bytes + m_arena.memory_bytes(), std::memory_order_relaxed);
  {
    MutexLock lock(m_lock);
    std::swap(m_leaf, leaf);
    std::swap(m_trees, trees);
  }
  m_count.fetch_add(1, std::memory_order_release);
}

// A tree of t tombstones has fewer than 2 t fragments. On each level that the forest has afterwards, what is added
// fills whole trees, and one that holds older tombstones, too.
size_t RangeTombstones::growth_most(size_t tombstones) const {
  constexpr size_t kNodeBytes = sizeof(Node) + 4 * sizeof(void*) + 2 * sizeof(NodePointer);
  constexpr size_t kLeafBytes = kNodeBytes + 3 * (kLeafTombstones + 1) * sizeof(RangeTombstone);
  if (tombstones == 0) {
    return 0;
  }
  const size_t all = count() + tombstones;
  size_t bytes = kLeafBytes + (tombstones + kLeafTombstones) * sizeof(RangeTombstone);
  for (size_t tree = kLeafTombstones; tree <= all; tree *= 2) {
    bytes += (tombstones / tree + 1) * (kNodeBytes + 2 * tree * sizeof(RangeTombstone));
  }
  return bytes;
}

// The fragment that holds key or, `before`, the keys directly below it.
const RangeTombstone* RangeTombstones::find(const Fragments& fragments, std::string_view key, bool before) {
  const auto behind = std::partition_point(fragments.begin(), fragments.end(), [&](const RangeTombstone& fragment) {
    return before ? fragment.begin < key : fragment.begin <= key;
  });
  if (behind == fragments.begin()) {
    return nullptr;
  }
  const RangeTombstone& found = *std::prev(behind);
  return (before ? key <= found.end : key < found.end) ? &found : nullptr;
}

std::optional<RangeTombstone> RangeTombstones::newest(const Node& node, std::string_view key, bool before,
                                                      SequenceNumber at_most) {
  if (node.first_sequence > at_most) {
    return std::nullopt;
  }
  const RangeTombstone* const found = find(node.fragments, key, before);
  if (found == nullptr) {
    return std::nullopt;
  }
  if (found->sequence <= at_most) {
    return *found;
  }
  for (auto part = node.parts.rbegin(); part != node.parts.rend(); ++part) {
    if (auto in_part = newest(**part, key, before, at_most)) {
      return in_part;
    }
  }
  if (!node.parts.empty()) {
    return std::nullopt;
  }
  for (const RangeTombstone* own = node.own + node.tombstones; own-- != node.own;) {
    const bool covers = before ? own->begin < key && key <= own->end : own->begin <= key && key < own->end;
    if (own->sequence <= at_most && covers) {
      return *own;
    }
  }
  return std::nullopt;
}

std::optional<RangeTombstone> RangeTombstones::newest(const View& view, std::string_view key, bool before,
                                                      SequenceNumber at_most) {
  std::optional<RangeTombstone> found;
  (void)view.any_of([&](const Node& node) {
    found = newest(node, key, before, at_most);
    return found.has_value();
  });
  return found;
}

SequenceNumber RangeTombstones::covering(std::string_view key, SequenceNumber at_most) const {
  if (empty()) {
    return 0;
  }
  const auto found = newest(view(), key, false, at_most);
  return found ? found->sequence : 0;
}

std::string RangeTombstones::covered_until(std::string_view key, SequenceNumber at_most,
                                           SequenceNumber newer_than) const {
  if (empty()) {
    return {};
  }
  const View nodes = view();
  std::string_view until = key;
  for (int i = 0; i < kNeighboursMax; ++i) {
    const auto found = newest(nodes, until, false, at_most);
    if (!found || found->sequence <= newer_than) {
      return i == 0 ? std::string() : std::string(until);
    }
    until = found->end;
  }
  return std::string(until);
}

std::optional<std::string> RangeTombstones::covered_from(std::string_view key, SequenceNumber at_most,
                                                         SequenceNumber newer_than) const {
  if (empty()) {
    return std::nullopt;
  }
  const View nodes = view();
  auto found = newest(nodes, key, false, at_most);
  if (!found || found->sequence <= newer_than) {
    return std::nullopt;
  }
  std::string_view from = found->begin;
  for (int i = 1; i < kNeighboursMax; ++i) {
    found = newest(nodes, from, true, at_most);
    if (!found || found->sequence <= newer_than) {
      break;
    }
    from = found->begin;
  }
  return std::string(from);
}

bool RangeTombstones::overlaps(std::string_view begin, std::string_view end) const {
  if (empty()) {
    return false;
  }
  const View nodes = view();
  return nodes.any_of([&](const Node& node) {
    const auto reaching = std::partition_point(node.fragments.begin(), node.fragments.end(),
                                               [&](const RangeTombstone& fragment) { return fragment.end <= begin; });
    return reaching != node.fragments.end() && (end.empty() || reaching->begin < end);
  });
}

bool RangeTombstones::hides_any(std::string_view first, std::string_view last, SequenceNumber newer_than) const {
  if (empty()) {
    return false;
  }
  const View nodes = view();
  return nodes.any_of([&](const Node& node) {
    auto fragment = std::partition_point(node.fragments.begin(), node.fragments.end(),
                                         [&](const RangeTombstone& before) { return before.end <= first; });
    for (; node.last_sequence > newer_than && fragment != node.fragments.end() && fragment->begin <= last; ++fragment) {
      if (fragment->sequence > newer_than) {
        return true;
      }
    }
    return false;
  });
}

void RangeTombstones::visit_tombstones(const Node& node, const std::function<void(const RangeTombstone&)>& visit) {
  for (const NodePointer& part : node.parts) {
    visit_tombstones(*part, visit);
  }
  std::for_each_n(node.own, node.parts.empty() ? node.tombstones : 0, visit);
}

void RangeTombstones::for_each(const std::function<void(const RangeTombstone&)>& visit) const {
  view().for_each_from_oldest([&](const Node& node) { visit_tombstones(node, visit); });
}

std::vector<RangeTombstone> RangeTombstones::within(std::string_view begin, std::optional<std::string_view> end) const {
  std::vector<RangeTombstone> result;
  for_each([&](const RangeTombstone& tombstone) {
    const RangeTombstone cut{std::max(tombstone.begin, begin), end ? std::min(tombstone.end, *end) : tombstone.end,
                             tombstone.sequence};
    if (cut.begin < cut.end) {
      result.push_back(cut);
    }
  });
  return result;
}

// Paints what lies in (newer_than, at_most] over what is there.
void RangeTombstones::paint_between(const Node& node, SequenceNumber newer_than, SequenceNumber at_most,
                                    Fragments* painted) {
  if (node.last_sequence <= newer_than || node.first_sequence > at_most) {
    return;
  }
  if (node.first_sequence > newer_than && node.last_sequence <= at_most) {
    *painted = paint(*painted, node.fragments);
    return;
  }
  for (const NodePointer& part : node.parts) {
    paint_between(*part, newer_than, at_most, painted);
  }
  if (!node.parts.empty()) {
    return;
  }
  const auto is_older = [](const RangeTombstone& one, SequenceNumber sequence) { return one.sequence <= sequence; };
  const RangeTombstone* const end = node.own + node.tombstones;
  const RangeTombstone* const first = std::lower_bound(node.own, end, newer_than, is_older);
  const RangeTombstone* const behind = std::lower_bound(first, end, at_most, is_older);
  if (first != behind) {
    *painted = paint(*painted, paint_all(first, static_cast<size_t>(behind - first)));
  }
}

void RangeTombstones::for_each_newest(const std::vector<SequenceNumber>& snapshots, const Visit& visit) const {
  const View nodes = view();
  // One layer per stripe, the newest first.
  std::vector<Fragments> layers;
  for (size_t i = snapshots.size() + 1; i-- > 0;) {
    const SequenceNumber newer_than = i == 0 ? 0 : snapshots[i - 1];
    const SequenceNumber at_most = i == snapshots.size() ? UINT64_MAX : snapshots[i];
    Fragments layer;
    nodes.for_each_from_oldest([&](const Node& node) { paint_between(node, newer_than, at_most, &layer); });
    if (!layer.empty()) {
      layers.push_back(std::move(layer));
    }
  }
  // Every layer is cut wherever one of them changes.
  std::vector<std::string_view> cuts;
  for (const Fragments& layer : layers) {
    for (const RangeTombstone& fragment : layer) {
      cuts.push_back(fragment.begin);
      cuts.push_back(fragment.end);
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<size_t> cursors(layers.size());  // in each layer: the fragment that reaches beyond the cut
  std::vector<SequenceNumber> sequences;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    sequences.clear();
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      size_t& cursor = cursors[layer];
      while (cursor < layers[layer].size() && layers[layer][cursor].end <= cuts[i]) {
        ++cursor;
      }
      if (cursor < layers[layer].size() && layers[layer][cursor].begin <= cuts[i]) {
        sequences.push_back(layers[layer][cursor].sequence);
      }
    }
    if (!sequences.empty()) {
      visit(cuts[i], cuts[i + 1], sequences);
    }
  }
}

}  // namespace vtkv
