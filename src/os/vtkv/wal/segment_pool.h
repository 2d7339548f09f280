// SPDX-License-Identifier: LGPL-2.1-or-later
// The files of the log: which segment is in use, which may be written again, and new ones ahead of need.
//
// A segment is *live* while a recovery could need it, *spare* when nobody needs it.
// Epochs grow along the history, so "needed" is one comparison: a segment is needed exactly when its
// epoch is not below that of the oldest checkpoint's position. (Segments abandoned by an earlier recovery
// carry old epochs and become spare the same way.) A segment that a manifest copy lists as holding values is
// kept besides.
//
// A *primed* segment was written from end to end: appending to it changes no metadata of the file system, so that
// one flush of the device makes a record durable. Priming a new segment writes it twice, which only commits that
// somebody waits for pay back. So segments are primed ahead while there are such commits (note_waited_flush), and
// otherwise made unprimed, their space reserved; those are durable by a sync of their own file. One that was filled
// needs only its unused end written to be primed when it is spare.
//
// The last spare is kept for the recovery record: an open that finds the log full must still be able to
// finish.
//
// Threads: any, after load().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "vtkv/env.h"
#include "vtkv/options.h"
#include "vtkv/util/mutex.h"
#include "vtkv/wal/log_format.h"

namespace vtkv {

struct LogSegment {
  // As it was made or opened, from when the pool has it.
  uint64_t id = 0;
  uint64_t bytes = 0;
  std::string path;
  std::unique_ptr<File> file;

  std::atomic<uint64_t> epoch{0};  // 0: never used
  std::atomic<bool> primed{false};
  // Zeros could not be written to it: its file stays, so that its blocks are nobody else's, and is not used until the
  // database is opened anew.
  std::atomic<bool> is_bad{false};
  // The log writer's from take() until the segment is spare again; the pool's, or of who primes it, before and after.
  uint32_t header_version = kSegmentVersion;  // on disk, or of its next use
  uint64_t written_bytes = 0;  // everything before it was written, or is about to be, also if it is not primed
};

// The log's files at one moment, in bytes.
struct LogFiles {
  // Of the segment in use under that epoch; 0: there is none.
  uint64_t of_epoch(uint64_t epoch) const {
    const auto found = by_epoch.find(epoch);
    return found == by_epoch.end() ? 0 : found->second;
  }

  uint64_t all = 0;
  uint64_t used = 0;  // without spares
  std::map<uint64_t, uint64_t> by_epoch;  // of segments in use
};

class SegmentPool {
 public:
  // `primed_bytes_per_commit`, `make_room`: as in Options.
  SegmentPool(Env* env, std::string directory, const Geometry& geometry, const Uuid& uuid,
              uint64_t primed_bytes_per_commit = 0, std::function<bool()> make_room = nullptr);

  // Makes the log of an empty database: the first segment is live at epoch 1. Durable on return.
  Status create();
  // Opens every segment. Writes nothing. Files that a crash left half-made are left out.
  // Errors: corruption naming the file when a header is damaged. With `notes`, for reading only: one whose header is
  // damaged has the epoch of its newest record, or is left out.
  Status load(std::vector<std::string>* notes = nullptr);
  // New epochs are greater than this one. Called before the first take() of an open.
  void use_epochs_above(uint64_t epoch);
  // After a recovery: removes what load() left out.
  Status remove_half_made();

  std::vector<LogSegment*> segments() const;
  LogSegment* find(uint64_t id) const;
  // Header block of a segment as it must be written with its first record.
  std::string header_block(const LogSegment& segment) const;

  // A segment of at least `minimum_bytes`, live under a new epoch. Makes one when none is spare.
  // `for_recovery` may use the last spare.
  Status take(uint64_t minimum_bytes, bool for_recovery, LogSegment** segment);
  // A flush that somebody waits for: with many of them to a segment, the next ones are primed ahead
  // (Options::primed_bytes_per_commit).
  void note_waited_flush();
  // There are many such flushes, and a primed segment to take.
  bool primed_awaits() const { return m_primed_awaits.load(std::memory_order_relaxed); }
  // Room for what is not urgent: in spares, but for the last one.
  uint64_t room_bytes() const;
  // Segments with an epoch below this are no longer needed by any recovery; those whose epoch is among `listed`
  // hold values and stay.
  void release_before(uint64_t oldest_needed_epoch, const std::set<uint64_t>& listed);
  // In a recovery: what lies beyond the end that it found, in segments of later epochs than that of the end, is
  // nobody's. `record_epoch`: where its own record is; 0: nowhere yet.
  void release_abandoned(uint64_t end_epoch, uint64_t record_epoch, const std::set<uint64_t>& listed);
  // Is there a segment that a recovery could take?
  bool has_spare() const EXCLUDES(m_lock) {
    MutexLock lock(m_lock);
    return spares_of_any_size() > 0;
  }
  // Does one step of the work ahead (make a spare, prime one, remove a superfluous file); *did says whether.
  Status work_ahead(bool* did);
  // For closing: work ahead under way returns Code::busy soon. Thread-safe.
  void stop() { m_stop.store(true); }
  // Leaves only the spares that are needed, until the next take(). By work_ahead().
  void remove_spares();
  // Cheap: has anything changed since work_ahead last found nothing to do?
  bool wants_work() const { return m_changed.load(std::memory_order_relaxed); }
  Status sync_all();

  const Uuid& uuid() const { return m_uuid; }
  uint64_t segment_bytes() const { return m_geometry.log_segment_bytes; }
  uint64_t file_bytes() const;
  // Zeros written into new segments since this object exists.
  uint64_t primed_bytes() const { return m_primed_bytes.load(std::memory_order_relaxed); }
  uint64_t used_bytes() const { return files().used; }  // without spares
  // Goes through all segments: who asks about many of them looks once.
  LogFiles files() const;
  uint32_t segment_count() const;
  uint32_t unprimed_count() const;  // without spares

 private:
  enum class State : uint8_t {
    live,
    spare,
    priming,  // a spare that must not be taken just now
  };
  struct Entry {
    std::unique_ptr<LogSegment> segment;
    State state = State::live;

    bool is_live() const { return state == State::live; }
    bool is_good_spare() const { return state != State::live && !segment->is_bad.load(); }
    bool is_free() const { return state == State::spare && is_good_spare(); }
    void change_to(State next);
  };

  using Segments = std::map<uint64_t, Entry>;  // by id

  Status make_segment(uint64_t bytes, bool spare, bool primed, LogSegment** segment) EXCLUDES(m_lock);
  Status write_header(const LogSegment& segment) const;  // durably
  Status make_file(const std::string& path, uint64_t bytes, bool primed, std::unique_ptr<File>* file);
  LogSegment* choose_spare(uint64_t wanted) const REQUIRES(m_lock);
  LogSegment* take_spare(uint64_t wanted, bool for_recovery) REQUIRES(m_lock);  // null when there is none
  LogSegment* spare_to_prime() const REQUIRES(m_lock);  // null when there is nothing to do
  void give_up(Segments::iterator entry) REQUIRES(m_lock);
  void give_up_superfluous() REQUIRES(m_lock);
  void give_up_odd() REQUIRES(m_lock);
  Status make_spare() EXCLUDES(m_lock);
  uint32_t spares_of_any_size() const REQUIRES(m_lock);
  void update_primed_awaits() REQUIRES(m_lock);
  Status prime(LogSegment* segment) EXCLUDES(m_lock);
  Status remove_unneeded();
  Status write_zeros(File& file, uint64_t offset, uint64_t end);
  void changed() REQUIRES(m_lock);
  // Does its next epoch lie above that of every segment?
  bool epochs_ascend() const REQUIRES(m_lock);
  bool many_waited(uint64_t flushes) const {
    return flushes * m_primed_bytes_per_commit >= m_geometry.log_segment_bytes;
  }
  Status load_segment(const std::string& name, uint64_t id);
  Status check_header(const LogSegment& segment, HeaderState state, const segment_header_t& header) const;
  // `primed`: so its header says.
  Status find_written(LogSegment* segment, bool primed) const;
  Status load_without_header(const std::string& name, uint64_t id);
  Status holds_record(File& file, uint64_t bytes, bool* holds) const;
  std::string path_of(uint64_t id) const;
  uint32_t spare_count(bool primed_only = false) const REQUIRES(m_lock);  // of the usual size

  Env* const m_env;
  const std::string m_directory;
  const Geometry m_geometry;
  const Uuid m_uuid;
  const uint64_t m_primed_bytes_per_commit;
  const std::function<bool()> m_make_room;

  mutable Mutex m_lock;
  Segments m_segments GUARDED_BY(m_lock);
  uint64_t m_next_id GUARDED_BY(m_lock) = 1;
  uint64_t m_next_epoch GUARDED_BY(m_lock) = 1;
  bool m_few_spares GUARDED_BY(m_lock) = false;
  std::vector<std::string> m_half_made;  // of the thread that opens
  std::vector<std::unique_ptr<LogSegment>> m_unneeded;  // of the worker: their files are to be removed
  std::atomic<bool> m_stop{false};
  std::atomic<bool> m_changed{true};
  std::atomic<bool> m_prime_ahead{false};
  std::atomic<bool> m_primed_awaits{false};
  std::atomic<uint64_t> m_waited_flushes{0};  // since the last take()
  std::atomic<uint64_t> m_primed_bytes{0};
};

}  // namespace vtkv
