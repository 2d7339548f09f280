// SPDX-License-Identifier: LGPL-2.1-or-later
// Gives free space of containers back to the host, so that no size class strands it.
//
// A punched slot is unprimed again and costs its next owner a flush of its own, so whole free chunks are punched,
// late, in batches, and only when the host runs low or a class holds much more than it needs. When that leaves the
// reserve less than whole, or too little for who waits for much room of log and tree, fragments of chunks go, too, the
// largest first, and no more than is lacking: runs of free slots, and fragments of split slots, of at least
// hole_bytes_min. Each costs the host an extent or two, and what is given the space next is in as many extents. Sets
// that share a host do not know of each other: each may give as much.
// Order (MUST): primed bits cleared in memory, in a page, in a durable checkpoint; then the hole.
//
// Threads: step() by the containers' worker; the rest by any.
#pragma once

#include <atomic>
#include <functional>

#include "swimstore/container/primer.h"
#include "swimstore/container/space_reserve.h"

namespace swimstore {

class Reclaimer {
 public:
  Reclaimer(vtkv::Env* env, const std::string& directory, const ContainerOptions& options, const SpaceReserve& reserve,
            SpacePromises& promises, ContainerArray& containers);

  // An allocation found no room in its class: everything that can be spared is wanted, soon. `metadata_bytes`: so much
  // is waited for on this host beside the reserve; to be told again as long as that is so.
  void short_of_space(uint64_t metadata_bytes);
  void checkpoint_durable(vtkv::SequenceNumber as_of);
  void set_checkpoint_request(std::function<void()> request) { m_request_checkpoint = std::move(request); }

  vtkv::Status step(bool* worked);
  uint64_t punched_bytes() const { return m_punched_bytes.load(std::memory_order_relaxed); }
  uint64_t punched_fragments_bytes() const { return m_punched_fragments_bytes.load(std::memory_order_relaxed); }

 private:
  // How many whole free chunks of a class are to go.
  uint64_t surplus_chunks(const Container& container, const Container::Counts& counts, bool is_short);

  // Withholds a chunk, unless what is free may be wanted by transactions.
  bool withhold_one(Container& container);
  // A fragment of the size that it is the turn of; false: there is none, or it may be wanted by transactions.
  bool withhold_fragment(Container& container, uint64_t* withheld);
  // Withholds fragments of one size, so that a step is short; *worked until the smallest have been looked for. What
  // found too little looks again when much more is free.
  void withhold_fragments(const vtkv::FileSystemInfo& host, uint64_t punched_bytes, bool* worked);
  bool may_search();
  void begin_search();
  void note_wanted();
  // Below hole_bytes_min only while that is urgent.
  void search_smaller();
  void end_search(bool went_through_all);

  vtkv::Env* const m_env;
  const std::string m_directory;
  const ContainerOptions m_options;
  const SpaceReserve& m_reserve;
  SpacePromises& m_promises;
  ContainerArray& m_containers;
  std::function<void()> m_request_checkpoint;  // set before the worker starts
  std::atomic<bool> m_short{false};
  std::atomic<uint64_t> m_metadata_bytes{0};  // the most that was told since the last step
  std::atomic<bool> m_checkpoint_requested{false};
  std::atomic<vtkv::SequenceNumber> m_durable{0};
  std::atomic<uint64_t> m_punched_bytes{0};
  std::atomic<uint64_t> m_punched_fragments_bytes{0};
  // The rest: of the worker alone.
  bool m_searching = false;  // for fragments: of this size, in containers that have not been gone through
  unsigned m_fragment_class = kSizeClasses - 1;
  std::array<bool, kSizeClasses> m_searched{};
  uint64_t m_wanted_bytes = 0;  // of log and tree: the most, until nobody waits any more
  uint64_t m_wanted_until_us = 0, m_search_again_us = 0;
  uint64_t m_least_free_bytes = 0;  // since the last search ended
  bool m_found_all = false;  // it went down to single blocks; until the reserve is low no more
  bool m_refused = false;  // what it found may be wanted by transactions: it does not end for good
  // The reserve is low, or was and is not whole yet: with as much as ends that alone, the next log segment made the
  // store full again.
  bool m_urgent = false;
  bool m_low = false;  // the host
  std::array<bool, kSizeClasses> m_shrinking{};
};

}  // namespace swimstore
