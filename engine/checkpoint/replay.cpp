#include "engine/checkpoint/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>

#include "engine/array/array.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/hooks/mutants.h"
#include "engine/mastertree/mastertree.h"
#include "engine/sequential/sequential.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

std::unexpected<Error> misfit_record(const LogRecord& record, const std::string& origin,
                                     const char* reason) {
  return make_error(ExitCode::corruption,
                    fmt::format("{}: a record of storage {} in epoch {} {}: restore a backup, or "
                                "start empty with `atoll up --discard-data`",
                                origin, record.storage_id, Vid(record.vid).epoch(), reason));
}

/// A record of a file that another process has given. The files of the data are intact.
std::unexpected<Error> misgiven_record(const LogRecord& record, const std::string& origin,
                                       const char* reason) {
  return make_error(ExitCode::failed,
                    fmt::format("{}: a record of storage {} in epoch {} {}: internal error: start "
                                "the cluster again",
                                origin, record.storage_id, Vid(record.vid).epoch(), reason));
}

/// Lets the replayers share `count` tasks: each takes the next one, until there is none, or one has
/// failed.
Result<void> share_tasks(Replayers replayers, const RunTasks& run, size_t count,
                         const std::function<Result<void>(Replayer&, size_t)>& work) {
  CHECK(!replayers.empty());
  std::atomic<size_t> next{0};
  return try_tasks(run, replayers.size(), [&](size_t thread) -> Result<void> {
    Replayer& replayer = *replayers[thread];
    // Relaxed: each number is taken once. The end of `run` orders the tasks.
    for (size_t task = next.fetch_add(1, std::memory_order_relaxed); task < count;
         task = next.fetch_add(1, std::memory_order_relaxed)) {
      Result<void> done = replayer.check_wanted();
      if (done) done = work(replayer, task);
      replayer.writer().end();
      if (!done) {
        next.store(count, std::memory_order_relaxed);  // the others need not go on
        replayer.transaction().worker().leave();
        return done;
      }
    }
    // The thread holds no page until the next phase.
    replayer.transaction().worker().leave();
    return {};
  });
}

}  // namespace

const Replayer::KnownStorage& Replayer::storage_of(uint32_t id) {
  KnownStorage& known = known_[id % kKnownStorages];
  if (known.id == id) return known;  // at first id 0, which no storage has
  const auto found = state_->storages.find(id);
  const bool is_listed = found != state_->storages.end();
  known = {id, is_listed, is_listed ? found->second : nullptr};
  return known;
}

ReadAhead& Replayer::read_ahead() {
  if (read_ahead_ == nullptr) read_ahead_ = std::make_unique<ReadAhead>();
  return *read_ahead_;
}

template <typename ForEach>
Result<void> Replayer::in_batches(const std::string& origin, ReplayRecords replay_some,
                                  ForEach for_each) {
  std::array<const LogRecord*, kBatch> batch;
  size_t count = 0;
  Result<void> done;
  for_each([&](const LogRecord& record) {
    if (!done || record.type == LogType::filler) return;
    batch[count++] = &record;
    if (count < kBatch) return;
    done = (this->*replay_some)(batch, origin);
    count = 0;
  });
  if (!done) return done;
  return (this->*replay_some)(std::span(batch).first(count), origin);
}

Result<void> Replayer::replay_checkpoint_file(FileSystem& file_system,
                                              const CheckpointMetadata& metadata, size_t file) {
  ReadAheadFileSystem files(file_system, read_ahead());
  ATOLL_ASSIGN(CheckpointReader reader, CheckpointReader::open(files, metadata, file));
  const uint64_t before = counters_.bytes;
  for (;;) {
    ATOLL_ASSIGN(const CheckpointBlockHeader* block, reader.next());
    if (block == nullptr) break;
    ATOLL_TRY(in_batches(reader.path(), &Replayer::replay_sorted, [&](const auto& visit) {
      CheckpointReader::for_each_record(*block, visit);
    }));
    counters_.bytes = before + reader.bytes();
    ATOLL_TRY(check_wanted());
  }
  counters_.bytes = before + reader.bytes();
  publish();
  return {};
}

Result<void> Replayer::replay_log_file(FileSystem& file_system, const LogReplayFile& file) {
  const std::string origin =
      path_of(LogFilePlace{file.stream.directory,
                           file.stream.node,
                           {file.stream.incarnation, file.stream.logger, file.ordinal}});
  const auto visit = [&](const LogBlock& block) -> Result<void> {
    ATOLL_TRY(in_batches(origin, &Replayer::replay_batch,
                         [&](const auto& each) { for_each_record(block, each); }));
    return check_wanted();
  };
  ReadAheadFileSystem files(file_system, read_ahead());
  ATOLL_TRY(read_log_file(files, file, visit, counters_.bytes, counters_.outside));
  publish();
  return {};
}

Result<void> Replayer::check_wanted() {
  if (counters_.bytes >= published_at_ + kPublishBytes) publish();
  if (given_updates_.is_full()) ATOLL_TRY(give_updates());
  if (state_->pace.is_ahead()) {
    // A waiting thread must not delay the reuse of pages (R9).
    writer_.end();
    txn_->worker().leave();
    if (read_ahead_ != nullptr) read_ahead_->await_all();  // reads must not look as if they hang
    state_->pace.wait();
  }
  if (!state_->is_cancelled.load(std::memory_order_relaxed)) return {};
  return make_error(ExitCode::failed, "the replay was cancelled");
}

void Replayer::publish() {
  DCHECK(published_at_ <= counters_.bytes);
  state_->pace.add(counters_.bytes - published_at_);
  published_at_ = counters_.bytes;
  for (size_t i = 0; i < published_.size(); ++i) {
    // Relaxed: for display; each figure is valid on its own.
    published_[i].store(counters_.*kReplayCounters[i].counter, std::memory_order_relaxed);
  }
}

ReplayCounters Replayer::published() const {
  ReplayCounters counters;
  for (size_t i = 0; i < published_.size(); ++i) {
    counters.*kReplayCounters[i].counter = published_[i].load(std::memory_order_relaxed);
  }
  return counters;
}

Result<void> Replayer::replay_batch(Records records, const std::string& origin) {
  std::array<const LogRecord*, kBatch> needed;
  size_t count = 0;
  CHECK(records.size() <= kBatch);
  for (const LogRecord* record : records) {
    if (!is_covered(*record)) {
      needed[count++] = record;
      continue;
    }
    ++counters_.records;
    ++counters_.older;
  }
  const Records left = std::span(needed).first(count);
  prefetch(left);
  for (const LogRecord* record : left) {
    ATOLL_TRY(replay(*record, origin));
  }
  return {};
}

bool Replayer::is_covered(const LogRecord& record) {
  if (record.type != LogType::update || record.key_bytes > MasterTree::kMaxKeyBytes) return false;
  const StorageControl* storage = storage_of(record.storage_id).control;
  if (storage == nullptr) return false;
  const auto is_covered_in = [&](const auto& updates) {
    return updates.covers(storage->id, record.key_span(), Vid(record.vid), record.payload_offset,
                          record.payload_bytes);
  };
  return is_own(record, *storage) ? is_covered_in(state_->updates) : is_covered_in(given_updates_);
}

void Replayer::prefetch(Records records) {
  std::array<RecordWriter::Sought, kBatch> sought;
  size_t count = 0;
  for (const LogRecord* record : records) {
    StorageControl* storage = storage_of(record->storage_id).control;
    if (storage == nullptr) continue;
    // The checks of the records follow, so a key may not fit its storage.
    const bool is_sought = is_tree(storage->type)
                               ? record->key_bytes <= MasterTree::kMaxKeyBytes
                               : array_index_in(*storage, record->key_span()).has_value();
    if (is_sought) sought[count++] = {storage, record->key_span()};
  }
  writer_.prefetch(std::span(sought).first(count));
}

Result<void> Replayer::replay_sorted(Records records, const std::string& origin) {
  // If the keys do not follow those of their page, a run is tried for some records only.
  constexpr size_t kMostMisses = 2;
  size_t misses = 0;
  while (!records.empty()) {
    size_t done = 0;
    if (misses < kMostMisses) ATOLL_TRY(replay_run(records, origin, done));
    misses = done == 0 ? misses + 1 : 0;
    if (done == 0) {
      ATOLL_TRY(replay(*records[0], origin));
      done = 1;
    }
    records = records.subspan(done);
  }
  return {};
}

Result<void> Replayer::replay_run(Records records, const std::string& origin, size_t& done) {
  done = 0;
  StorageControl* storage = storage_of(records[0]->storage_id).control;
  // Keys of hash storages are longer than a slice. Blocked records need a check of each key.
  if (storage == nullptr || storage->type != StorageType::mastertree) return {};
  if (state_->blocked.is_used()) return {};
  const auto is_fit = [&](const LogRecord* record) {
    return record->storage_id == storage->id && record->type == LogType::insert &&
           record->key_bytes <= sizeof(uint64_t) &&
           record->payload_bytes <= MasterTree::kMaxPayloadBytes;
  };
  const auto end = std::ranges::find_if_not(records, is_fit);
  const Records run = records.first(static_cast<size_t>(end - records.begin()));
  if (run.size() < 2) return {};
  std::array<std::optional<Replayed>, kBatch> results;
  const Status status = writer_.put_run(*storage, run, results, done);
  if (status != Status::ok) return replay_failed(storage->id, status);
  for (size_t i = 0; i < done; ++i) {
    if (!results[i]) {
      ATOLL_TRY(replay(*run[i], origin));
      continue;
    }
    ++counters_.records;
    ATOLL_TRY(count(Status::ok, *results[i], *storage));
  }
  return {};
}

Result<void> Replayer::replay(const LogRecord& record, const std::string& origin) {
  DCHECK(record.type != LogType::filler && record.length >= sizeof(LogRecord));
  ++counters_.records;
  const KnownStorage& known = storage_of(record.storage_id);
  if (!known.is_listed && (record.storage_id == 0 || record.storage_id > state_->last_storage)) {
    return misfit_record(record, origin, "belongs to no storage that was ever created");
  }
  if (known.control == nullptr) {
    ++counters_.dropped;
    return {};
  }
  StorageControl& storage = *known.control;
  switch (storage.type) {
    case StorageType::array:
      return replay_in_array(storage, record, origin);
    case StorageType::mastertree:
    case StorageType::hash:
      return replay_in_tree(storage, record, origin);
    case StorageType::sequential:
      return replay_append(storage, record, origin);
    case StorageType::none:
      break;
  }
  return misfit_record(record, origin, "belongs to a storage without a type");
}

Result<void> Replayer::replay_append(StorageControl& storage, const LogRecord& record,
                                     const std::string& origin) {
  if (record.type != LogType::append || record.key_bytes != 0) {
    return misfit_record(record, origin, "is no append");
  }
  if (record.payload_bytes > Sequential::kMaxPayloadBytes) {
    return misfit_record(record, origin, "is too long");
  }
  if (is_own(record, storage)) {
    appends_.add(record);
  } else {
    ATOLL_TRY(give(record, storage));
  }
  return count(Status::ok, Replayed::inserted, storage);
}

Result<void> Replayer::give(const LogRecord& record, const StorageControl& storage) {
  const uint32_t owner = state_->share.owner_of(record, storage);
  CHECK(owner != state_->share.number && owner < state_->share.count);
  if (given_.writes_for(owner, record)) {
    writer_.end();
    txn_->worker().leave();
  }
  const Result<void> given = given_.give(state_->given, owner, record);
  if (given) return {};
  return make_error(given.error().code,
                    "replay: a record cannot be given to the node that keeps it until the end of "
                    "the files: " +
                        given.error().message);
}

Result<void> Replayer::give_updates() {
  return given_updates_.take_all([&](const LogRecord& record) {
    return give(record, *state_->storages.at(record.storage_id));
  });
}

Result<std::vector<GivenFile>> Replayer::finish_given() {
  ATOLL_TRY(give_updates());
  CHECK(given_updates_.is_empty());
  return given_.finish();
}

Result<void> Replayer::take(const LogRecord& record, const std::string& origin) {
  StorageControl* const storage = storage_of(record.storage_id).control;
  if (storage == nullptr || !is_own(record, *storage)) {
    return misgiven_record(record, origin, "was given to the wrong process");
  }
  const Vid vid(record.vid);
  const Bytes payload{record.payload(), record.payload_bytes};
  switch (record.type) {
    case LogType::append:
      appends_.add(record);
      return {};
    case LogType::update:
      state_->updates.add(storage->id, record.key_span(), vid, record.payload_offset, payload);
      return {};
    case LogType::insert:
      state_->blocked.add(storage->id, record.key_span(), vid, payload);
      return {};
    case LogType::erase:
      state_->blocked.add(storage->id, record.key_span(), vid.with(Vid::kDeleted), {});
      return {};
    case LogType::filler:
    case LogType::add:
      break;
  }
  return misgiven_record(record, origin, "has a type that is not given");
}

Result<void> Replayer::take_file(FileSystem& file_system, const GivenFile& file) {
  CHECK(file.to == state_->share.number);
  ReadAheadFileSystem files(file_system, read_ahead());
  return read_given_file(files, file,
                         [&](const LogRecord& record) { return take(record, file.run.path); });
}

Result<void> Replayer::replay_in_tree(StorageControl& storage, const LogRecord& record,
                                      const std::string& origin) {
  if (record.key_bytes > MasterTree::kMaxKeyBytes)
    return misfit_record(record, origin, "is too long");
  if (record.payload_bytes > MasterTree::kMaxPayloadBytes) {
    return misfit_record(record, origin, "is too long");
  }
  switch (record.type) {
    case LogType::insert:
      return replay_insert(storage, record);
    case LogType::erase:
      return replay_erase(storage, record);
    case LogType::update:
      return replay_update(storage, record);
    case LogType::filler:
    case LogType::append:
    case LogType::add:  // a pending addition needs a snapshot (R83)
      break;
  }
  return misfit_record(record, origin, "has a type that its storage does not have");
}

Result<void> Replayer::replay_in_array(StorageControl& storage, const LogRecord& record,
                                       const std::string& origin) {
  if (record.key_bytes != sizeof(uint64_t))
    return misfit_record(record, origin, "has no number as its key");
  const auto index = array_index_in(storage, record.key_span());
  const uint64_t end = record.payload_offset + uint64_t{record.payload_bytes};
  const bool has_type = record.type == LogType::insert || record.type == LogType::update;
  if (!has_type || !index || end > storage.payload_bytes) {
    return misfit_record(record, origin, "does not fit its array");
  }
  if (record.payload_bytes != storage.payload_bytes) {
    return record.type == LogType::update ? replay_update(storage, record)
                                          : misfit_record(record, origin, "does not fit its array");
  }
  Replayed result = Replayed::older;
  const Bytes payload{record.payload(), record.payload_bytes};
  return count(writer_.put(storage, *index, Vid(record.vid), payload, result), result, storage);
}

Result<void> Replayer::replay_insert(StorageControl& storage, const LogRecord& record) {
  const Vid vid(record.vid);
  const Bytes payload{record.payload(), record.payload_bytes};
  Replayed result = Replayed::older;
  if (state_->blocked.has_newer(storage.id, record.key_span(), vid)) {
    return count(Status::ok, result, storage);
  }
  Status status = writer_.put(storage, record.key_span(), vid, payload, result);
  if (is_blocked(status)) {
    result = state_->blocked.add(storage.id, record.key_span(), vid, payload);
    status = Status::ok;
  }
  return count(status, result, storage);
}

Result<void> Replayer::replay_erase(StorageControl& storage, const LogRecord& record) {
  DCHECK(is_tree(storage.type) && storage.id == record.storage_id);
  Replayed result = Replayed::older;
  const Vid vid(record.vid);
  Status status = writer_.put_tombstone(storage, record.key_span(), vid, result);
  if (is_blocked(status)) {
    // The key does not exist. The blocked records keep older versions of it away.
    state_->blocked.add(storage.id, record.key_span(), Vid(vid.version()).with(Vid::kDeleted), {});
    return count(Status::ok, Replayed::older, storage);
  }
  if (result != Replayed::older) record_tombstone(storage);
  return count(status, result, storage);
}

void Replayer::record_tombstone(const StorageControl& storage) {
  DCHECK(is_tree(storage.type) && storage.id != 0);
  if (latest_tombstone_ == storage.id) return;
  latest_tombstone_ = storage.id;
  tombstones_.insert(storage.id);
}

Result<void> Replayer::replay_update(StorageControl& storage, const LogRecord& record) {
  const Vid vid(record.vid);
  DCHECK(vid.ordinal() != 0 && storage.id == record.storage_id);
  const Bytes bytes{record.payload(), record.payload_bytes};
  if (writer_.version_of(storage, record.key_span()) >= vid.version()) {
    return count(Status::ok, Replayed::older, storage);
  }
  if (!is_own(record, storage)) {
    const Replayed result =
        given_updates_.add(storage.id, record.key_span(), vid, record.payload_offset, bytes);
    return count(Status::ok, result, storage);
  }
  if (!fault::replay_updates_at_once) {
    const Replayed result =
        state_->updates.add(storage.id, record.key_span(), vid, record.payload_offset, bytes);
    return count(Status::ok, result, storage);
  }
  bool exists = false;
  Vid found;
  const auto change = [&](Vid, std::span<std::byte> payload) {
    copy_bytes(payload.data() + record.payload_offset, bytes.data(), bytes.size());
    return vid;
  };
  const Status status = writer_.change(storage, record.key_span(), change, exists, found);
  return count(status, Replayed::overwritten, storage);
}

Result<void> Replayer::count(Status status, Replayed result, const StorageControl& storage) {
  if (status != Status::ok) return replay_failed(storage.id, status);
  switch (result) {
    case Replayed::inserted:
      ++counters_.inserted;
      break;
    case Replayed::overwritten:
      ++counters_.overwritten;
      break;
    case Replayed::older:
      ++counters_.older;
      break;
  }
  return {};
}

Result<void> replay_checkpoint(FileSystem& file_system, const CheckpointMetadata& metadata,
                               std::span<const size_t> files, uint64_t cut_epoch,
                               Replayers replayers, const RunTasks& run) {
  if (!is_end_durable(metadata, cut_epoch)) {
    return make_error(
        ExitCode::corruption,
        fmt::format(
            "checkpoint {} has records up to epoch {}, but the log ends at epoch {}: restore "
            "a backup, or start empty with `atoll up --discard-data`",
            metadata.id, metadata.end_epoch, cut_epoch));
  }
  return share_tasks(replayers, run, files.size(), [&](Replayer& replayer, size_t file) {
    return replayer.replay_checkpoint_file(file_system, metadata, files[file]);
  });
}

Result<void> replay_log(FileSystem& file_system, const std::vector<LogReplayFile>& files,
                        Replayers replayers, const RunTasks& run) {
  return share_tasks(replayers, run, files.size(), [&](Replayer& replayer, size_t file) {
    return replayer.replay_log_file(file_system, files[file]);
  });
}

namespace {

/// Gives the blocked records of other shares to their processes.
Result<void> give_blocked(Replayer& replayer) {
  ReplayState& state = replayer.state();
  auto& records = state.blocked.records();
  GivenRecord record;
  for (auto at = records.begin(); at != records.end();) {
    const StorageControl& storage = *state.storages.at(storage_id_in_name(at->first));
    const Vid vid = at->second.vid;
    record.set(vid.is_deleted() ? LogType::erase : LogType::insert, storage.id,
               key_in_name(at->first), vid.version(), as_bytes(std::span(at->second.payload)));
    if (state.share.has(record.record(), storage)) {
      ++at;
      continue;
    }
    ATOLL_TRY(replayer.give(record.record(), storage));
    at = records.erase(at);
  }
  return {};
}

/// Stores a blocked record, or deletes the older version of the key of a blocked tombstone. Such a
/// version exists if its thread found room just before the tombstone was kept, or if another
/// process found room: it does not know the tombstone. REQUIRES: all processes have replayed their
/// files, so that no older version is stored later (R100).
Status store_blocked(Replayer& replayer, StorageControl& storage, Bytes key,
                     const BlockedRecords::Record& record) {
  Replayed result = Replayed::older;
  if (!record.vid.is_deleted()) {
    return replayer.writer().put(storage, key, record.vid, as_bytes(std::span(record.payload)),
                                 result);
  }
  DCHECK(record.payload.empty());
  const uint64_t version = replayer.writer().version_of(storage, key);
  if (version == 0 || version >= record.vid.version()) return Status::ok;
  const Status status = replayer.writer().put_tombstone(storage, key, record.vid, result);
  if (status == Status::ok && result != Replayed::older) replayer.record_tombstone(storage);
  return status;
}

/// Stores the blocked records for which there is room now, and drops those of which a newer version
/// or a tombstone was found.
Result<void> retry_blocked(Replayer& replayer) {
  ReplayState& state = replayer.state();
  auto& records = state.blocked.records();
  WorkerContext& worker = replayer.transaction().worker();
  for (auto at = records.begin(); at != records.end();) {
    StorageControl& storage = *state.storages.at(storage_id_in_name(at->first));
    const Status status = store_blocked(replayer, storage, key_in_name(at->first), at->second);
    replayer.writer().end();
    if (status != Status::ok && !is_blocked(status)) {
      worker.leave();
      return replay_failed(storage.id, status);
    }
    // Tombstones are kept until all updates are applied (PendingUpdates::apply).
    const bool is_done = status == Status::ok && !at->second.vid.is_deleted();
    at = is_done ? records.erase(at) : std::next(at);
  }
  worker.leave();
  return {};
}

/// Applies the updates of parts of records.
Result<void> finish_updates(Replayers replayers, const RunTasks& run) {
  ReplayState& state = replayers.front()->state();
  const auto storage_of = [&](uint32_t id) { return state.storages.at(id); };
  return share_tasks(
      replayers, run, PendingUpdates::kShards,
      [&](Replayer& replayer, size_t shard) -> Result<void> {
        ATOLL_ASSIGN(const uint64_t count,
                     state.updates.apply(shard, replayer.writer(), storage_of, state.blocked));
        replayer.counters().updates += count;
        replayer.publish();
        return {};
      });
}

/// Appends the records of one heap: each replayer appends one part, to its own list.
Result<void> finish_heap(StorageControl& storage, Replayers replayers, const RunTasks& run) {
  std::vector<const CollectedAppends*> collected;
  for (const auto& replayer : replayers) collected.push_back(&replayer->appends());
  const SortedAppends sorted(storage.id, collected);
  return try_tasks(run, replayers.size(), [&](size_t part) {
    return append_replayed(replayers[part]->transaction().worker(), storage,
                           sorted.part(part, replayers.size()));
  });
}

}  // namespace

Result<std::vector<GivenFile>> give_records(Replayers replayers, const RunTasks& run) {
  CHECK(!replayers.empty());
  std::vector<GivenFile> all;
  if (replayers.front()->state().share.count == 1) return all;
  std::vector<std::vector<GivenFile>> given(replayers.size());
  // Each replayer is used by its own thread only.
  const auto finish = [&](size_t i) -> Result<void> {
    if (i == 0) {
      ATOLL_TRY(give_blocked(*replayers[i]));
    }
    ATOLL_ASSIGN(given[i], replayers[i]->finish_given());
    return {};
  };
  ATOLL_TRY(try_tasks(run, replayers.size(), finish));
  for (auto& files : given) std::ranges::move(files, std::back_inserter(all));
  if (fault::replay_applies_early) ATOLL_TRY(finish_replay(replayers, run));
  return all;
}

Result<void> take_records(FileSystem& file_system, std::span<const GivenFile> files,
                          Replayers replayers, const RunTasks& run) {
  return share_tasks(replayers, run, files.size(), [&](Replayer& replayer, size_t file) {
    return replayer.take_file(file_system, files[file]);
  });
}

Result<void> finish_replay(Replayers replayers, const RunTasks& run) {
  CHECK(!replayers.empty());
  // Each replayer is used by its own thread only.
  ATOLL_TRY(try_tasks(run, 1, [&](size_t first) { return retry_blocked(*replayers[first]); }));
  ATOLL_TRY(finish_updates(replayers, run));
  for (const auto& [id, storage] : replayers.front()->state().storages) {
    if (storage == nullptr || storage->type != StorageType::sequential) continue;
    ATOLL_TRY(finish_heap(*storage, replayers, run));
  }
  return {};
}

Result<void> finish_blocked(Replayers replayers) {
  CHECK(!replayers.empty());
  Replayer& replayer = *replayers.front();
  BlockedRecords& blocked = replayer.state().blocked;
  if (blocked.records().empty()) return {};
  ATOLL_TRY(retry_blocked(replayer));
  if (const size_t left = blocked.record_count(); left != 0) {
    return make_error(ExitCode::failed,
                      fmt::format("replay failed: {} records have no room in their pages", left));
  }
  ATOLL_TRY(finish_updates(replayers.first(1), run_in_turn));
  blocked.records().clear();
  return {};
}

ReplayCounters counters_of(Replayers replayers) {
  ReplayCounters sum;
  for (const auto& replayer : replayers) sum += replayer->counters();
  return sum;
}

}  // namespace atolldb
