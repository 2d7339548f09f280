// SPDX-License-Identifier: LGPL-2.1-or-later
// Writes one run: entries in order, then its range tombstones, filter and descriptor.
//
// Not thread-safe. A writer that is dropped before finish() leaves nothing but reusable space.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "vtkv/mem/entry.h"
#include "vtkv/span/fill.h"
#include "vtkv/span/span_reader.h"
#include "vtkv/span/span_writer.h"
#include "vtkv/table/compressed_size.h"
#include "vtkv/table/entry_sink.h"
#include "vtkv/table/filter_builder.h"
#include "vtkv/table/pace.h"
#include "vtkv/table/run.h"

namespace vtkv {

class RunWriter final : public EntrySink {
 public:
  struct Settings {
    uint64_t run_id = 0;
    uint32_t level = 0;
    uint32_t block_bytes = 4096;
    bool compress_blocks = false;  // of entries
    ZoneStream stream = ZoneStream::flush;
    int filter_bits = 0;       // QuotientFilter::fingerprint_bits; 0: no filter
    CompactionPace pace;       // of what comes behind the entries: range tombstones and filter; may be empty
  };

  RunWriter(Env* env, const SpanReader& reader, const Settings& settings);

  Status add(const Entry& entry) override;
  Status stitch(const Span& span, const BlockRange& blocks) override;
  // The filter needs every key, and nobody has told the writer those of stitched blocks.
  void add_to_filter(uint64_t key_hash) { m_filter.add(key_hash); }
  // *run is null when there was nothing to write. Durable only after a sync of the zone file. Code::no_space, io_error,
  // and what the pace says.
  Status finish(std::shared_ptr<const RangeTombstones> tombstones, std::shared_ptr<const Run>* run);
  // The same for a run with entries of `old` and no others: it takes over the filter if anything was stitched, in
  // memory and on disk. Fingerprints of entries that are gone do no harm. `tombstones`: null takes over those of `old`,
  // too. A filter or range tombstones that lie where `must_move` says are written anew; it may be empty.
  using MustMove = std::function<bool(uint64_t offset, uint64_t bytes)>;
  Status finish_as(const Run& old, const MustMove& must_move, std::shared_ptr<const RangeTombstones> tombstones,
                   std::shared_ptr<const Run>* run);
  uint64_t copied_bytes() const override { return m_fill.bytes(); }
  // All that was written, once it is finished: range tombstones, filter and descriptor, too.
  uint64_t written_bytes() const { return m_fill.bytes() + m_other_spans.bytes() + m_descriptor_bytes; }
  uint64_t stitched_bytes() const { return m_stitched_bytes; }

 private:
  Status out_of_order() const;
  Status finish_block();
  void add_slice(uint32_t span, BlockRange blocks);
  uint32_t take_over(const Span& span);
  bool take_over(const Run& old, const std::vector<BlockHandle>& blocks, const MustMove& must_move,
                 std::vector<BlockHandle>* taken);
  void note_sequence(SequenceNumber sequence);
  Status write_tombstones(const RangeTombstones& tombstones);
  Status write_filter(const QuotientFilter& filter);
  Status append_other(BlockBuilder* builder, BlockHandle* handle);
  Status write_descriptor(SpanList* list, RunLocation* location);

  Env* const m_env;
  const SpanReader m_reader;
  const Settings m_settings;
  Paced m_paced;
  RunDescriptor m_descriptor;
  FilterBuilder m_filter;
  SpanList m_list;
  Fill m_fill;
  SpanWriter m_other_spans;  // range tombstones, filter
  std::unordered_map<uint64_t, uint32_t> m_stitched_spans;  // ordinals by id
  bool m_has_tombstones = false;  // their blocks are another run's
  bool m_has_filter = false;  // likewise
  std::shared_ptr<const QuotientFilter> m_shared_filter;
  uint64_t m_stitched_bytes = 0;
  uint64_t m_descriptor_bytes = 0;

  BlockBuilder m_block{BlockKind::entries};
  BlockRange m_block_range;  // what it holds
  CompressedSize m_compressed_size;
  std::string m_last_key;
  bool m_any = false;
};

}  // namespace vtkv
