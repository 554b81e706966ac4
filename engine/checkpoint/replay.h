// Replays a checkpoint and the log after it into the volatile pages of empty storages. Source:
// [SILOR14] section 5.
//
//   replay_checkpoint, replay_log   files, by all threads, in any order of files
//   give_records        ends the files: writes the records that other processes must keep
//   take_records        reads what other processes have given, when all have ended their files
//   finish_replay       applies the updates of parts of records, and appends the records of heaps
//   (caller)            raises the settled epoch to the cut
//   remove_tombstones   removes the tombstones, which are not needed any more
//   finish_blocked      stores the records that had no room beside tombstones
//
// No transaction runs, and nothing is logged. REQUIRES: until remove_tombstones, the settled epoch
// is before the first replayed epoch, so that no split elides a tombstone (R93).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/blocked_records.h"
#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/checkpoint/given_records.h"
#include "engine/checkpoint/given_updates.h"
#include "engine/checkpoint/log_replay_files.h"
#include "engine/checkpoint/pending_updates.h"
#include "engine/checkpoint/replay_pace.h"
#include "engine/checkpoint/replay_share.h"
#include "engine/checkpoint/replayed_appends.h"
#include "engine/checkpoint/replayed_record.h"
#include "engine/transaction/transaction.h"
#include "shared/base/error.h"
#include "shared/base/run_tasks.h"
#include "shared/file/read_ahead.h"
#include "shared/memory/checkpoint_metrics.h"

namespace atolldb {

/// What the threads of a replay share.
struct ReplayState {
  /// All storages by their ids. A storage that was dropped is null, or missing if its id is at most
  /// `last_storage`. The caller has made them from the DDL log.
  std::map<uint32_t, StorageControl*> storages;
  uint32_t last_storage = 0;  // largest id that was ever used, if dropped storages are missing
  ReplayShare share;
  GivenPlace given;  // used only if there are several shares
  /// The replay ends soon, with an error. Relaxed: nothing else depends on it.
  std::atomic<bool> is_cancelled{false};
  ReplayPace pace;
  PendingUpdates updates;
  BlockedRecords blocked;
};

/// One thread of a replay.
class Replayer {
 public:
  /// REQUIRES: `state` and `txn` outlive the replayer; no other replayer has the worker of `txn`.
  Replayer(ReplayState& state, Transaction& txn) : state_(&state), txn_(&txn), writer_(txn) {}

  /// Replays all records of one file. Updates of parts and appends are given to the process with
  /// their share (R100). Errors: those of the file system;
  /// code corruption for a damaged file, or for a record that does not fit its storage; code failed
  /// if the memory does not suffice, or if the replay was cancelled.
  Result<void> replay_checkpoint_file(FileSystem& file_system, const CheckpointMetadata& metadata,
                                      size_t file);
  Result<void> replay_log_file(FileSystem& file_system, const LogReplayFile& file);

  /// Replays one record. `origin`: its file, for errors.
  Result<void> replay(const LogRecord& record, const std::string& origin);
  /// Gives the record to the process with its share, which must be another one. No write to a file
  /// delays the reuse of pages: the writer's transaction ends before it (R9).
  Result<void> give(const LogRecord& record, const StorageControl& storage);
  /// Returns the files of the given records. Call it once, after the last call of `give`.
  Result<std::vector<GivenFile>> finish_given();
  /// Keeps all records of a file that another process has given. They are counted there.
  Result<void> take_file(FileSystem& file_system, const GivenFile& file);

  ReplayState& state() { return *state_; }
  Transaction& transaction() { return *txn_; }
  RecordWriter& writer() { return writer_; }
  const CollectedAppends& appends() const { return appends_; }
  ReplayCounters& counters() { return counters_; }
  /// Returns the ids of storages in which this thread has stored tombstones.
  const std::set<uint32_t>& tombstones() const { return tombstones_; }
  /// Adds the storage to them.
  void record_tombstone(const StorageControl& storage);

  /// Called often, at least after each block: publishes the counters now and then, gives updates if
  /// many wait for it, and waits while the process is ahead of the others. Errors: those of `give`;
  /// code failed if the replay was cancelled.
  Result<void> check_wanted();
  /// Lets other threads see the counters. The caller is this thread.
  void publish();
  /// Returns the counters as last published. Thread: any.
  ReplayCounters published() const;

 private:
  static constexpr size_t kBatch = RecordWriter::kBatch;
  /// Bytes of files after which the counters are published.
  static constexpr uint64_t kPublishBytes = uint64_t{1} << 20;
  /// Number of storages that are found without a search of the map.
  static constexpr size_t kKnownStorages = 16;

  struct KnownStorage {
    uint32_t id = 0;
    bool is_listed = false;
    StorageControl* control = nullptr;  // null: not listed, or dropped
  };
  using Records = std::span<const LogRecord* const>;
  using ReplayRecords = Result<void> (Replayer::*)(Records records, const std::string& origin);

  const KnownStorage& storage_of(uint32_t id);
  bool is_own(const LogRecord& record, const StorageControl& storage) const {
    return state_->share.has(record, storage);
  }
  /// Calls the function with all records of the block, up to kBatch at a time. `for_each`: calls
  /// its argument with each record.
  template <typename ForEach>
  Result<void> in_batches(const std::string& origin, ReplayRecords replay_some, ForEach for_each);
  /// Replays up to kBatch records of the log.
  Result<void> replay_batch(Records records, const std::string& origin);
  /// Replays up to kBatch records of a checkpoint, which mostly are neighbours in their storage.
  Result<void> replay_sorted(Records records, const std::string& origin);
  /// Replays the first of these records with put_run. Sets `done` to their number.
  Result<void> replay_run(Records records, const std::string& origin, size_t& done);
  /// Returns whether the record is an update that a newer one covers (R94): one that is kept, or
  /// that this thread is about to give.
  bool is_covered(const LogRecord& record);
  /// Gives the updates of parts that wait for it.
  Result<void> give_updates();
  void prefetch(Records records);
  ReadAhead& read_ahead();
  /// Keeps a record that another process has given.
  Result<void> take(const LogRecord& record, const std::string& origin);
  Result<void> replay_in_tree(StorageControl& storage, const LogRecord& record,
                              const std::string& origin);
  Result<void> replay_in_array(StorageControl& storage, const LogRecord& record,
                               const std::string& origin);
  Result<void> replay_insert(StorageControl& storage, const LogRecord& record);
  Result<void> replay_erase(StorageControl& storage, const LogRecord& record);
  Result<void> replay_update(StorageControl& storage, const LogRecord& record);
  Result<void> replay_append(StorageControl& storage, const LogRecord& record,
                             const std::string& origin);
  Result<void> count(Status status, Replayed result, const StorageControl& storage);

  ReplayState* state_;
  Transaction* txn_;
  RecordWriter writer_;
  CollectedAppends appends_;
  GivenRecords given_;
  GivenUpdates given_updates_;
  ReplayCounters counters_;
  std::array<KnownStorage, kKnownStorages> known_;
  std::unique_ptr<ReadAhead> read_ahead_;  // made by the first file
  uint64_t published_at_ = 0;              // value of counters_.bytes
  std::set<uint32_t> tombstones_;          // ids of storages
  uint32_t latest_tombstone_ = 0;          // the storage that was last added to tombstones_
  std::array<std::atomic<uint64_t>, std::size(kReplayCounters)> published_{};
};

using Replayers = std::span<const std::unique_ptr<Replayer>>;

/// Replays these files of the checkpoint, numbers of `metadata.files`. Error: also code corruption
/// if the log does not reach the end epoch of the checkpoint (R89).
Result<void> replay_checkpoint(FileSystem& file_system, const CheckpointMetadata& metadata,
                               std::span<const size_t> files, uint64_t cut_epoch,
                               Replayers replayers, const RunTasks& run);
/// Replays the log files in the given order. Each thread takes the next file.
Result<void> replay_log(FileSystem& file_system, const std::vector<LogReplayFile>& files,
                        Replayers replayers, const RunTasks& run);
/// Ends the files of this process: gives the blocked records of other shares to their processes.
/// Returns the files with all records that this process gives.
Result<std::vector<GivenFile>> give_records(Replayers replayers, const RunTasks& run);
/// Keeps the records that other processes have given to this one.
Result<void> take_records(FileSystem& file_system, std::span<const GivenFile> files,
                          Replayers replayers, const RunTasks& run);
/// Ends the replay of files. All records of the share but the blocked ones are in place then,
/// beside tombstones. REQUIRES: all processes have called give_records, and take_records has
/// returned for all files that they have given to this one (R94, R100).
Result<void> finish_replay(Replayers replayers, const RunTasks& run);
/// Stores the blocked records, and applies their updates. Uses only the first replayer. REQUIRES:
/// remove_tombstones has returned for all storages. Thread: that of the first replayer.
Result<void> finish_blocked(Replayers replayers);

/// Returns the sum over all replayers.
ReplayCounters counters_of(Replayers replayers);

/// Removes the tombstones of the storage, and pages that are empty without them. Returns the number
/// of replaced pages. REQUIRES: the settled epoch is at least that of the newest tombstone; the
/// worker is between transactions.
uint64_t remove_tombstones(WorkerContext& worker, StorageControl& storage);

}  // namespace atolldb
