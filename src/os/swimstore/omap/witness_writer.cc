// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/omap/witness_writer.h"

#include <algorithm>
#include <utility>

#include "swimstore/format/key_codec.h"
#include "swimstore/format/witness.h"
#include "swimstore/omap/omap_contents.h"
#include "vtkv/util/mutations.h"

namespace swimstore {

using ceph::encode;

namespace {

// The group whose own object this is.
coll_t group_of_pgmeta(const ghobject_t& oid) {
  return coll_t(spg_t(pg_t(oid.hobj.get_hash(), static_cast<uint64_t>(oid.hobj.pool)), oid.shard_id));
}

// What was acknowledged in the epoch that a copy was last started in may be in no other: it counts as started for the
// whole group. Not where a backfill of the copy is under way: then others are whole, and Ceph asks those. A copy of a
// group that was never started has nothing to forget.
std::string forget_objects(const pg_info_t& had) {
  pg_info_t has(had.pgid);
  has.history = had.history;
  if (!had.is_incomplete()) {
    has.history.last_epoch_started = std::max(had.history.last_epoch_started, had.last_epoch_started);
    has.history.last_interval_started = std::max(had.history.last_interval_started, had.last_interval_started);
  }
  if (had.is_incomplete() || !had.is_empty() || has.history.last_epoch_started > 0) {
    has.set_last_backfill(hobject_t());
  }
  ceph::bufferlist encoded;
  has.encode(encoded);
  return encoded.to_str();
}

std::string without_purged_snaps(const PastIntervals& intervals) {
  ceph::bufferlist encoded;
  intervals.encode(encoded);
  encode(interval_set<snapid_t>(), encoded);
  return encoded.to_str();
}

// From the start of the bytes.
template <typename Decoded>
std::optional<Decoded> decode_as(const std::string& encoded) {
  ceph::bufferlist bytes;
  bytes.append(encoded);
  Decoded decoded;
  try {
    auto at = bytes.cbegin();
    decoded.decode(at);
  } catch (const ceph::buffer::error&) {
    return std::nullopt;
  }
  return decoded;
}

}  // namespace

std::optional<pg_info_t> decode_info(const std::string& encoded) { return decode_as<pg_info_t>(encoded); }

std::optional<std::string> witnessed_value(std::string_view key, const std::string& value) {
  if (key == kInfoKey) {
    const auto info = decode_info(value);
    return info ? std::optional(forget_objects(*info)) : std::nullopt;
  }
  if (key == kBigInfoKey) {
    const auto intervals = decode_as<PastIntervals>(value);
    return intervals ? std::optional(without_purged_snaps(*intervals)) : std::nullopt;
  }
  return value;
}

void remove_witness(const coll_t& cid, vtkv::WriteBatch* batch) {
  batch->remove(witness_key(cid, ""));
  for (const std::string_view key : kWitnessedKeys) {
    batch->remove(witness_key(cid, key));
  }
}

void WitnessWriter::add(const coll_t& cid, std::string item, std::string value) {
  std::erase_if(m_news, [&](const News& earlier) { return earlier.cid == cid && earlier.item == item; });
  if (!m_store.witnessed.has(cid, item, value)) {
    m_news.push_back({cid, std::move(item), std::move(value)});
  }
}

void WitnessWriter::set_group(const coll_t& cid, uint32_t bits) {
  if (keeps() && cid.is_pg()) {
    m_removed.erase(cid);
    add(cid, "", encode_witnessed_group({bits, m_home.number}));
  }
}

// What cannot be decoded is kept as it is: who needs it says so.
void WitnessWriter::set_keys(const ghobject_t& oid, const ceph::bufferlist& encoded) {
  if (!keeps() || !oid.is_pgmeta()) {
    return;
  }
  OmapArguments arguments(encoded);
  for (std::string_view key, bytes; arguments.next(&key, &bytes);) {
    if (is_witnessed(key)) {
      m_removed.erase(group_of_pgmeta(oid));
      std::string value(bytes);
      add(group_of_pgmeta(oid), std::string(key), witnessed_value(key, value).value_or(value));
    }
  }
}

void WitnessWriter::remove(const coll_t& cid) {
  if (keeps() && cid.is_pg()) {
    m_removed.insert(cid);
  }
}

void WitnessWriter::remove_object(const ghobject_t& oid) {
  if (oid.is_pgmeta()) {
    remove(group_of_pgmeta(oid));
  }
}

bool WitnessWriter::write() {
  if (m_news.empty()) {
    return true;
  }
  vtkv::WriteBatch batch;
  vtkv::WriteOptions options{.sync = false};
  for (News& news : std::exchange(m_news, {})) {
    options.sync |= news.item != kEpochKey;
    batch.put(witness_key(news.cid, news.item), news.value);
    m_store.witnessed.set(news.cid, news.item, std::move(news.value));
  }
  options.sync &= !mutated(vtkv::Mutation::witness_not_awaited);
  return m_store.cubes[0].database().write(std::move(batch), options).ok();
}

void WitnessWriter::write_removals(vtkv::SequenceNumber sequence) {
  if (m_removed.empty() || sequence == 0 || !m_home.database().wait_durable(sequence).ok()) {
    return;
  }
  vtkv::WriteBatch batch;
  for (const coll_t& cid : std::exchange(m_removed, {})) {
    remove_witness(cid, &batch);
    m_store.witnessed.forget(cid);
  }
  (void)m_store.cubes[0].database().write(std::move(batch));
}

}  // namespace swimstore
