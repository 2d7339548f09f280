// Writes one run: entries in order, then its range removals, filter and descriptor.
//
// Not thread-safe. A writer that is dropped before finish() leaves nothing but reusable space.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "vtkv/mem/entry.h"
#include "vtkv/span/fill.h"
#include "vtkv/span/span_reader.h"
#include "vtkv/span/span_writer.h"
#include "vtkv/tree/filter_builder.h"
#include "vtkv/tree/merge_pace.h"
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
    MergePace pace;            // of what comes behind the entries: range removals and filter; may be empty
  };

  RunWriter(Env* env, const SpanReader& reader, const Settings& settings);

  // REQUIRES: entries come in order. Code::no_space, io_error.
  Status add(const Entry& entry);
  // Takes over blocks that another run holds, behind everything added so far: the stitch. The caller keeps
  // them pinned until finish() returned. REQUIRES: no version of their keys was or will be added.
  Status stitch(const Span& span, const BlockRange& blocks);
  // Takes over the filter of a run whose blocks are stitched in, on disk as well. Fingerprints of entries that are not
  // taken over do no harm. REQUIRES: nothing but its entries is in the new run.
  void share_filter(const Run& run);
  // *run is null when there was nothing to write. Durable only after a sync of the zone file. `given_filter` is
  // taken, and needed after a stitch: the keys of what was stitched are not known here. Code::no_space, io_error, and
  // what the pace says.
  Status finish(std::shared_ptr<RangeRemovals> removals, std::shared_ptr<const Run>* run,
                QuotientFilter* given_filter = nullptr);
  // Of entries and their indexes; and all that was written, once it is finished: range removals, filter and descriptor too.
  uint64_t copied_bytes() const { return m_fill.bytes(); }
  uint64_t written_bytes() const { return m_fill.bytes() + m_other_spans.bytes() + m_descriptor_bytes; }
  uint64_t stitched_bytes() const { return m_stitched_bytes; }

 private:
  Status out_of_order() const;
  Status finish_block();
  void add_part(uint32_t span, BlockRange blocks);
  uint32_t take_over(const Span& span);
  Status write_removals(const RangeRemovals& removals);
  Status write_filter(const QuotientFilter& filter);
  Status append_other(BlockBuilder* builder, BlockHandle* handle);
  Status write_descriptor(SpanList* list, RunLocation* location);

  Env* const m_env;
  const SpanReader m_reader;
  const Settings m_settings;
  Paced m_paced;
  RunDescriptor m_descriptor;
  FilterBuilder m_filter;  // given up with the first stitch
  SpanList m_list;
  Fill m_fill;
  SpanWriter m_other_spans;  // range removals, filter
  std::unordered_map<uint64_t, uint32_t> m_stitched_spans;  // ordinals by id
  QuotientFilter m_shared_filter;
  uint64_t m_stitched_bytes = 0;
  uint64_t m_descriptor_bytes = 0;

  BlockBuilder m_block{BlockKind::entries};
  BlockRange m_block_range;  // what it holds
  std::string m_last_key;
  bool m_any = false;
};

}  // namespace vtkv
