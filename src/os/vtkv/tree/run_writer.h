// Writes one run: entries in order, then its range removals, filter and descriptor.
//
// Not thread-safe. A writer that is dropped before finish() leaves nothing but reusable space.
#pragma once

#include <memory>
#include <string>

#include "vtkv/mem/entry.h"
#include "vtkv/span/span_reader.h"
#include "vtkv/span/span_writer.h"
#include "vtkv/tree/filter_builder.h"
#include "vtkv/tree/run.h"

namespace vtkv {

class RunWriter {
 public:
  struct Settings {
    uint64_t run_id = 0;
    uint32_t level = 0;
    uint32_t block_bytes = 4096;
    ZoneStream stream = ZoneStream::flush;
    int filter_bits = 0;       // QuotientFilter::fingerprint_bits; 0: no filter
  };

  RunWriter(Env* env, const SpanReader& reader, const Settings& settings);

  // REQUIRES: entries come in order. Code::no_space, io_error.
  Status add(const Entry& entry);
  // *run is null when there was nothing to write. Durable only after a sync of the zone file.
  Status finish(std::shared_ptr<RangeRemovals> removals, std::shared_ptr<const Run>* run);
  uint64_t entries() const { return m_descriptor.entries; }

 private:
  Status finish_block();
  Status finish_index_block();
  Status write_removals(const RangeRemovals& removals);
  Status write_filter(const QuotientFilter& filter);
  Status write_descriptor(RunLocation* location, ZoneFile::Pins* pins);

  Env* const m_env;
  const SpanReader m_reader;
  const Settings m_settings;
  RunDescriptor m_descriptor;
  FilterBuilder m_filter;
  SpanList m_list;
  SpanWriter m_entry_spans;
  SpanWriter m_index_spans;

  BlockBuilder m_block{BlockKind::entries};
  std::string m_block_first_key;
  SequenceNumber m_block_first_sequence = 0;
  BlockBuilder m_index_block{BlockKind::index};
  std::string m_index_first_key;
  SequenceNumber m_index_first_sequence = 0;
  std::string m_handle;  // scratch
};

}  // namespace vtkv
