// Gives free space of containers back to the host, so that no size class strands it.
//
// A punched slot is unprimed again and costs its next owner a flush of its own, so only whole free stretches
// are punched, late, in batches, and only when the host runs low or a class holds much more than it needs.
// Order (MUST): primed bits cleared in memory, in a page, in a durable checkpoint; then the hole.
//
// Threads: step() by the containers' worker; the rest by any.
#pragma once

#include <atomic>
#include <functional>

#include "swimstore/container/primer.h"

namespace swimstore {

class Reclaimer {
 public:
  Reclaimer(vtkv::Env* env, const std::string& directory, const ContainerOptions& options,
            SpacePromises& promises, ContainerArray& containers);

  // An allocation found no room in its class: everything that can be spared is wanted, soon.
  void short_of_space() { m_short.store(true, std::memory_order_relaxed); }
  void checkpoint_durable(vtkv::SequenceNumber as_of);
  void set_checkpoint_request(std::function<void()> request) { m_request_checkpoint = std::move(request); }

  vtkv::Status step(bool* worked);
  uint64_t punched_bytes() const { return m_punched_bytes.load(std::memory_order_relaxed); }

 private:
  // How many whole free stretches of a class are to go.
  uint64_t surplus_stretches(const Container& container, const Container::Counts& counts, bool is_short);

  // Withholds a stretch, unless what is free may be wanted by transactions.
  bool withhold_one(Container& container);

  vtkv::Env* const m_env;
  const std::string m_directory;
  const ContainerOptions m_options;
  SpacePromises& m_promises;
  ContainerArray& m_containers;
  std::function<void()> m_request_checkpoint;
  std::atomic<bool> m_short{false};
  std::atomic<bool> m_checkpoint_requested{false};
  std::atomic<vtkv::SequenceNumber> m_durable{0};
  std::atomic<uint64_t> m_punched_bytes{0};
  bool m_low = false;
  std::array<bool, kSizeClasses> m_shrinking{};
};

}  // namespace swimstore
