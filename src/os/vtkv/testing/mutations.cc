// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/mutations.h"

namespace vtkv {

namespace {

using Rules = Options::Mutations;

constexpr Mutation kMutations[] = {
    {"flush_removed", &Rules::skip_flush},
    {"unprimed_segment_not_synced", &Rules::trust_unprimed},
    {"slot_reused_at_once", &Rules::reuse_immediately},
    {"body_crc_not_checked", &Rules::skip_body_crc},
    {"data_crc_not_checked", &Rules::skip_external_check},
    {"watermark_ahead_of_flush", &Rules::watermark_ahead_of_flush},
    {"memtable_flushed_early", &Rules::flush_memtable_early},
    {"acknowledged_before_flush", &Rules::acknowledge_before_flush},
    {"tail_record_trusted", &Rules::trust_tail_record},
    {"range_delete_lost", &Rules::lose_range_deletes},
    {"no_recovery_record", &Rules::skip_recovery_record},
    {"previous_checksum_dropped", &Rules::skip_previous_checksum},
    {"next_segment_by_epoch_alone", &Rules::next_segment_by_epoch},
    {"watermark_per_group", &Rules::durable_per_group},
    {"segment_recycled_early", &Rules::recycle_early},
    {"tie_by_source_dropped", &Rules::drop_tie_by_source},
    {"relocation_wins", &Rules::relocation_wins},
    {"durable_inside_batch", &Rules::durable_inside_batch},
    {"half_batch_kept", &Rules::keep_half_batches},
    {"candidate_looked_up_behind_memtable", &Rules::look_behind_memtable},
};

}  // namespace

std::span<const Mutation> mutations() { return kMutations; }

bool apply_mutation(std::string_view name, Options::Mutations* mutations) {
  for (const Mutation& mutation : kMutations) {
    if (mutation.name == name) {
      mutations->*mutation.rule = true;
      return true;
    }
  }
  return false;
}

}  // namespace vtkv
