// The complete durable side of a cluster: loggers, snapshot jobs on all nodes or checkpoints,
// metadata, savepoint, pins and deletion. It uses the coordinator's own code, on files whose power
// a test cuts. In-memory parts (workers, pages, installation, replay) are missing: commits are log
// records made by an oracle, and so are the records of checkpoints.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "coordinator/durability/durable_state.h"
#include "coordinator/snapshots/recovery_steps.h"
#include "coordinator/snapshots/snapshot_job.h"
#include "engine/gleaner/sorted_run.h"
#include "engine/log/log_writer.h"
#include "ops/verify/live_page_check.h"
#include "shared/base/try.h"
#include "shared/file/forwarding_file_system.h"
#include "soc/snapshot_job/snapshot_job_service.h"
#include "tests/coordinator/durability/checkpoint_content.h"
#include "tests/coordinator/durability/commit_oracle.h"
#include "tests/engine/log/log_blocks.h"

namespace atolldb::test {

inline Config cut_cluster_config(DurabilityScheme scheme = DurabilityScheme::gleaned) {
  Config config;
  config.durability.scheme = scheme;
  config.cluster.data_dir = "/data";
  config.nodes.assign(2, NodeConfig{});
  config.nodes[0].loggers = 2;
  config.nodes[0].directories = {"/fast/one", "/fast/two"};
  config.nodes[0].reducers = 2;
  config.durability.log_file_size = 6 * kLogBlockBytes;
  config.gleaner.disk_reserve = 1;
  return config;
}

/// Everything that a client was promised, over all incarnations.
struct CutPromises {
  uint64_t epoch = 0;  // the latest durable epoch with commits
  std::vector<PinnedSnapshot> pins;
};

/// One incarnation. Each call returns the error of the failed operation. REQUIRES: no call after an
/// error.
class CutCluster {
 public:
  /// `is_off` returns true when the files no longer work. REQUIRES: `files` and the data of
  /// `is_off` outlive this object.
  CutCluster(const Config& config, FileSystem& files, std::function<bool()> is_off)
      : config_(config), files_(files), is_off_(std::move(is_off)) {}

  /// Runs a start of the cluster, up to the first commit.
  Result<void> start(CommitOracle& oracle, const CutPromises& promises) {
    auto opened = DurableState::open(config_, 0, std::make_unique<ForwardingFileSystem>(files_),
                                     make_silent_logger("test"));
    if (!opened) return std::unexpected(opened.error());
    durable_ = *std::move(opened);
    if (durable_->recovery_epoch() < promises.epoch) {
      return wrong(fmt::format("epoch {} was acknowledged, {} is what was recovered",
                               promises.epoch, durable_->recovery_epoch()));
    }
    if (auto ddl = check_ddl(oracle); !ddl) return ddl;
    if (auto begun = begin_nodes(); !begun) return begun;
    oracle.forget_after(durable_->recovery_epoch());
    if (!has_checkpoints() && !durable_->streams_to_read().empty()) {
      if (auto recovered = recover(oracle); !recovered) return recovered;
    }
    if (auto deleted = delete_unneeded(); !deleted) return deleted;
    if (auto begun = begin_logs(); !begun) return begun;
    return durable_->begin();
  }

  Result<void> create_storage(CommitOracle& oracle, StorageType type) {
    DdlRecord record;
    record.operation = DdlOperation::create_storage;
    record.storage_id = static_cast<uint32_t>(durable_->ddl().size() + 1);
    record.epoch = epoch_;
    record.name = fmt::format("storage-{}", record.storage_id);
    record.type = type;
    if (type == StorageType::array) {
      record.payload_bytes = CommitOracle::kArrayPayload;
      record.record_count = CommitOracle::kArrayRecords;
    }
    auto logged = durable_->log_ddl(record);
    if (logged) oracle.add_storage(record);
    return logged;
  }

  /// Makes the commits of one more epoch, for all loggers to write.
  void commit(CommitOracle& oracle, std::mt19937_64& random) {
    for (Stream& stream : streams_) {
      auto buffer = std::make_unique<BlockBuffer>(random() % 3);
      for (LogBlock& block : buffer->all()) {
        begin_block(block, epoch_, static_cast<uint16_t>(random() % 3));
        for (uint64_t count = 1 + random() % 60; count > 0 && oracle.commit(block);) --count;
      }
      stream.blocks[epoch_] = std::move(buffer);
    }
    ++epoch_;
  }
  /// Makes one logger close its next epoch, if there is one.
  Result<void> close_next(size_t logger) {
    Stream& stream = streams_[logger];
    const uint64_t epoch = stream.writer->last_closed_epoch() + 1;
    if (epoch >= epoch_) return {};
    const std::array runs = {stream.blocks[epoch]->all()};
    const uint64_t durable = durable_epoch();
    if (stream.writer->wants_next_file()) {
      if (auto made = stream.writer->prepare_next_file(); !made) return made;
    }
    auto closed = stream.writer->close_epoch(epoch, durable, runs);
    if (closed) stream.blocks.erase(epoch);
    return closed;
  }
  Result<void> close_all() {
    for (size_t logger = 0; logger < streams_.size(); ++logger) {
      while (streams_[logger].writer->last_closed_epoch() + 1 < epoch_) {
        if (auto closed = close_next(logger); !closed) return closed;
      }
    }
    return {};
  }
  /// Makes the cluster idle (R51): all epochs are closed, and closing markers and the savepoint
  /// name the last epoch. Without `notes`, the kill comes before the savepoint is written.
  Result<void> idle(bool notes) {
    if (auto closed = close_all(); !closed) return closed;
    const uint64_t durable = durable_epoch();
    for (Stream& stream : streams_) {
      if (auto closed = stream.writer->close_epoch(epoch_, durable); !closed) return closed;
    }
    ++epoch_;
    return notes ? durable_->record_idle(durable_epoch()) : Result<void>{};
  }
  size_t logger_count() const { return streams_.size(); }
  uint64_t durable_epoch() const {
    uint64_t least = UINT64_MAX;
    for (const Stream& stream : streams_)
      least = std::min(least, stream.writer->last_closed_epoch());
    return least;
  }

  /// Takes a snapshot of everything durable, as SnapshotManager::take_snapshot does.
  Result<void> take_snapshot(CommitOracle& oracle, bool rewrites) {
    const uint64_t epoch = durable_epoch();
    const bool has_new_commits = !durable_->snapshot() || durable_->snapshot()->epoch < epoch;
    if (!has_new_commits) return {};
    auto made = make_snapshot({.epoch = epoch,
                               .streams = durable_->live_streams(epoch),
                               .victims = choose_victims(epoch, rewrites),
                               .merges_runs = true},
                              oracle);
    return made ? delete_unneeded() : made;
  }
  /// Writes the files of a checkpoint, which end_checkpoint installs. The end epoch is not durable
  /// yet.
  Result<void> begin_checkpoint(CommitOracle& oracle, std::mt19937_64& random) {
    checkpoint_.reset();
    const auto id = durable_->take_snapshot_id();
    if (!id) return std::unexpected(id.error());
    CheckpointMetadata metadata;
    metadata.id = *id;
    metadata.cluster_uuid = durable_->data_uuid();
    metadata.replay_epoch = durable_epoch() + 1;
    for (uint64_t commits = 1 + random() % 2; commits > 0; --commits) commit(oracle, random);
    metadata.end_epoch = epoch_ - 1;
    if (auto done = write_fuzzy_files(files_, config_, oracle, random, metadata); !done) {
      return done;
    }
    checkpoint_ = std::move(metadata);
    return {};
  }
  /// Installs the checkpoint and deletes what it supersedes, as CheckpointManager does. REQUIRES:
  /// its end epoch is durable.
  Result<void> end_checkpoint() {
    if (!checkpoint_) return {};
    auto installed =
        install_checkpoint(files_, config_.cluster.data_dir, *checkpoint_, durable_epoch());
    if (installed) installed = durable_->store_checkpoint(*checkpoint_);
    return installed ? delete_unneeded() : installed;
  }
  bool has_checkpoints() const { return config_.durability.scheme == DurabilityScheme::silor; }
  const std::optional<CheckpointMetadata>& newest_checkpoint() const {
    return durable_->checkpoint();
  }
  Result<PinnedSnapshot> pin(const std::string& name) { return durable_->pin(0, name); }
  Result<PinnedSnapshot> unpin(const std::string& name) { return durable_->unpin(name); }
  Result<void> end() { return durable_->end(durable_epoch()); }

  /// Checks that the newest snapshot and all pinned ones exist with all their pages, and agree with
  /// the oracle. Returns the first error.
  Result<void> check(const CommitOracle& oracle, const CutPromises& promises) {
    for (const PinnedSnapshot& pin : promises.pins) {
      if (std::ranges::find(durable_->pinned(), pin) == durable_->pinned().end()) {
        return wrong(fmt::format("the pin {} of snapshot {} is gone", pin.name, pin.id));
      }
    }
    if (durable_->snapshot()) {
      if (auto read = check_snapshot(*durable_->snapshot(), oracle); !read) return read;
    }
    if (has_checkpoints()) return check_checkpoints(oracle);
    for (const PinnedSnapshot& pin : durable_->pinned()) {
      auto metadata = read_snapshot_metadata(files_, config_.cluster.data_dir, pin.id);
      if (!metadata) return std::unexpected(metadata.error());
      if (auto read = check_snapshot(*metadata, oracle); !read) return read;
    }
    return {};
  }
  uint64_t parts = 0;  // number of partial recovery snapshots before the last one
  const std::optional<SnapshotMetadata>& newest() const { return durable_->snapshot(); }
  const std::vector<PinnedSnapshot>& pins() const { return durable_->pinned(); }

 private:
  struct Stream {
    std::unique_ptr<LogWriter> writer;
    std::map<uint64_t, std::unique_ptr<BlockBuffer>> blocks;  // blocks to be written, by epoch
  };
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  struct Node {
    std::vector<std::unique_ptr<std::byte, Free>> inboxes;  // of the node's reducers
    std::unique_ptr<SnapshotFiles> snapshots;
    std::unique_ptr<SnapshotJobService> snapshot_jobs;
  };

  static std::unexpected<Error> wrong(const std::string& what) {
    return make_error(ExitCode::failed, "WRONG: " + what);
  }

  /// Checks that all storages whose creation was acknowledged exist. Others may exist, too.
  Result<void> check_ddl(CommitOracle& oracle) {
    const std::vector<DdlRecord>& found = durable_->ddl();
    for (size_t i = 0; i < std::max(found.size(), oracle.storages().size()); ++i) {
      if (i >= found.size()) return wrong("an acknowledged creation of a storage is missing");
      if (i == oracle.storages().size()) {
        oracle.add_storage(found[i]);
      } else if (found[i] != oracle.storages()[i]) {
        return wrong("a storage is not what was created");
      }
    }
    return {};
  }

  /// Does what the nodes' processes do before the coordinator opens the cluster.
  Result<void> begin_nodes() {
    constexpr uint64_t kInboxBytes = 48 * 1024;  // small, so that sorted runs are written
    nodes_.resize(config_.nodes.size());
    epoch_ = durable_->start_epoch();
    for (uint32_t index = 0; index < nodes_.size(); ++index) {
      const size_t directories = config_.nodes[index].directories.size();
      for (uint32_t i = 0; i < std::max<size_t>(directories, 1); ++i) {
        auto removed = remove_sorted_runs(files_, log_directory(config_, index, i), index);
        if (!removed) return removed;
      }
      Node& node = nodes_[index];
      for (uint32_t reducer = 0; reducer < inbox_count(config_.nodes[index]); ++reducer) {
        node.inboxes.emplace_back(static_cast<std::byte*>(std::aligned_alloc(4096, kInboxBytes)));
        ReducerInbox::format(node.inboxes.back().get(), kInboxBytes);
      }
      node.snapshots = std::make_unique<SnapshotFiles>(files_, durable_->data_uuid());
    }
    for (uint32_t index = 0; index < nodes_.size(); ++index) {
      SnapshotJobResources resources;
      resources.node = index;
      resources.file_system = &files_;
      resources.snapshots = nodes_[index].snapshots.get();
      resources.directory = [this, index](uint32_t snapshot) {
        return log_directory(config_, index, snapshot);
      };
      resources.inbox = [this](const ReducerPlace& place) {
        return nodes_[place.node].inboxes[place.reducer].get();
      };
      resources.has_failed = is_off_;
      nodes_[index].snapshot_jobs =
          std::make_unique<SnapshotJobService>(std::move(resources), make_silent_logger("node"));
    }
    return {};
  }

  /// Does what the nodes do when the recovery is over (R54).
  Result<void> begin_logs() {
    for (uint32_t index = 0; index < nodes_.size(); ++index) {
      for (uint32_t logger = 0; logger < config_.nodes[index].loggers; ++logger) {
        auto writer = LogWriter::create(
            files_, {log_directory(config_, index, logger), static_cast<uint16_t>(index),
                     static_cast<uint16_t>(logger), durable_->incarnation(), epoch_,
                     durable_->data_uuid(), config_.durability.log_file_size});
        if (!writer) return std::unexpected(writer.error());
        streams_.emplace_back().writer = std::make_unique<LogWriter>(*std::move(writer));
      }
    }
    return {};
  }

  Result<Json> call_node(uint32_t node, ControlOperation operation, const Json& body) {
    auto promise = std::make_shared<std::promise<Result<Json>>>();
    auto answer = promise->get_future();
    nodes_[node].snapshot_jobs->handle({operation, body}, [promise](Result<Json> result) {
      promise->set_value(std::move(result));
    });
    return answer.get();
  }

  /// Recovers as SnapshotManager::take_recovery_snapshots does, sometimes as if there were no space
  /// for everything at once.
  Result<void> recover(const CommitOracle& oracle) {
    RecoverySteps steps(durable_->recovery_epoch());
    for (uint64_t attempt = durable_->incarnation() % 3;; --attempt) {
      const uint64_t recovered = recovered_now();
      if (attempt != 0 && steps.shrink(recovered)) continue;
      auto made =
          make_snapshot({.epoch = steps.epoch(),
                         .streams = streams_up_to(durable_->streams_to_read(), steps.epoch())},
                        oracle);
      if (!made || steps.is_last()) return made;
      ++parts;
      if (auto deleted = delete_unneeded(); !deleted) return deleted;
      steps.advance(recovered, recovered_now());
      attempt = 1;
    }
  }

  uint64_t recovered_now() const {
    std::optional<uint64_t> base;
    if (durable_->snapshot()) base = durable_->snapshot()->epoch;
    return recovered_epoch(durable_->streams_to_read(), base, durable_->recovery_epoch());
  }

  /// Returns the victims of a job: all snapshots with files if `rewrites`, else about a quarter of
  /// them.
  std::vector<uint32_t> choose_victims(uint64_t epoch, bool rewrites) const {
    if (!durable_->snapshot()) return {};
    std::vector<uint32_t> victims = snapshots_of(durable_->snapshot()->files);
    if (!rewrites) std::erase_if(victims, [&](uint32_t id) { return (id + epoch) % 4 != 0; });
    return victims;
  }

  /// Makes a snapshot with the steps of SnapshotManager::make_snapshot.
  Result<void> make_snapshot(SnapshotTask task, const CommitOracle& oracle) {
    for (const DdlRecord& storage : oracle.storages()) {
      task.storages.push_back({storage.storage_id, storage.type, storage.name,
                               static_cast<uint32_t>(storage.payload_bytes), storage.record_count});
    }
    const auto id = durable_->take_snapshot_id();
    if (!id) return std::unexpected(id.error());
    task.snapshot = *id;
    task.cluster_uuid = durable_->data_uuid();
    task.base = durable_->snapshot();
    const NodeCall call = [this](uint32_t node, ControlOperation operation, const Json& body) {
      return call_node(node, operation, body);
    };
    SnapshotJob job(config_, durable_->files(), call, make_silent_logger("snapshot"));
    ATOLL_ASSIGN(SnapshotPlan plan, job.plan(task));
    ATOLL_TRY(job.align(task, plan));
    ATOLL_TRY(job.prepare(task, plan));
    ATOLL_TRY(job.map(task, plan, {}));
    ATOLL_ASSIGN(std::vector<NodePart> composed, job.reduce_and_compose(task, plan));
    ATOLL_ASSIGN(const SnapshotMetadata metadata, job.combine(task, plan, std::move(composed)));
    ATOLL_TRY(job.write_metadata(metadata));
    const auto stored = durable_->store_snapshot(metadata);
    job.keep(metadata.id);
    return stored;
  }

  /// Deletes files as SnapshotManager::delete_obsolete_files does when only the newest snapshot has
  /// readers.
  Result<void> delete_unneeded() {
    std::set<uint32_t> in_use;
    std::vector<SnapshotFilePlace> places;
    if (durable_->snapshot()) {
      in_use.insert(durable_->snapshot()->id);
      places = durable_->snapshot()->files;
    }
    for (const Node& node : nodes_) {
      if (auto opened = node.snapshots->open_only(places); !opened) return opened;
    }
    auto deleted = durable_->delete_unneeded(in_use);
    if (!deleted) return std::unexpected(deleted.error());
    return {};
  }

  /// Describes the first difference, for messages.
  static std::string first_difference(const CommitOracle::Content& found,
                                      const CommitOracle::Content& wanted) {
    const auto text = [](const CommitOracle::Record& record) {
      return fmt::format("{} bytes of epoch {}, ordinal {}", record.payload.size(),
                         Vid(record.version).epoch(), Vid(record.version).ordinal());
    };
    for (const auto& [key, record] : wanted) {
      const auto other = found.find(key);
      if (other == found.end()) return text(record) + " are missing";
      if (other->second != record) return text(other->second) + ", not " + text(record);
    }
    for (const auto& [key, record] : found) {
      if (!wanted.contains(key)) return text(record) + " were never committed";
    }
    return "none";
  }

  /// Checks that checkpoint and log have all commits, and that pinned checkpoints are intact.
  Result<void> check_checkpoints(const CommitOracle& oracle) {
    RestoredContent restored(oracle.storages());
    const auto& checkpoint = durable_->checkpoint();
    if (checkpoint) {
      if (checkpoint->end_epoch > durable_->recovery_epoch()) {
        return wrong("the log does not reach the end epoch of the checkpoint");
      }
      ATOLL_TRY(restored.add_checkpoint(files_, *checkpoint));
    }
    ATOLL_TRY(restored.add_log(files_, durable_->streams_to_read(),
                               checkpoint ? checkpoint->replay_epoch : 1));
    ATOLL_ASSIGN(CommitOracle::Contents found, restored.take());
    CommitOracle::Contents expected = oracle.contents(durable_->recovery_epoch());
    for (const DdlRecord& storage : oracle.storages()) {
      const uint32_t id = storage.storage_id;
      if (found[id] == expected[id]) continue;
      return wrong(
          fmt::format("storage {} has {} records up to epoch {}, other ones than the {} "
                      "that were committed: {}",
                      id, found[id].size(), durable_->recovery_epoch(), expected[id].size(),
                      first_difference(found[id], expected[id])));
    }
    for (const PinnedSnapshot& pin : durable_->pinned()) {
      ATOLL_ASSIGN(const auto metadata,
                   read_checkpoint_metadata(files_, config_.cluster.data_dir, pin.id));
      ATOLL_TRY(RestoredContent(oracle.storages()).add_checkpoint(files_, metadata));
    }
    return {};
  }

  Result<void> check_snapshot(const SnapshotMetadata& snapshot, const CommitOracle& oracle) {
    const CommitOracle::Contents expected = oracle.contents(snapshot.epoch);
    SnapshotFiles files(files_, durable_->data_uuid());
    if (auto opened = files.open(snapshot.files); !opened) return opened;
    std::set<uint32_t> seen;
    for (const SnapshotStorage& stored : snapshot.storages) {
      const DdlRecord& storage = oracle.storages()[stored.id - 1];
      CommitOracle::Content found;
      const auto visit = [&](const WalkedRecord& record) -> Result<void> {
        const auto* bytes = reinterpret_cast<const char*>(record.payload.data());
        const std::string payload(bytes, record.payload.size());
        const bool has_key = stored.type != StorageType::sequential;
        std::string key = has_key ? std::string(record.key) : payload;
        if (stored.type == StorageType::hash) key = CommitOracle::stored_key(key);
        found[key] = {payload, record.vid.version()};
        return {};
      };
      auto walked =
          walk_snapshot(files,
                        {stored.id, stored.type, static_cast<uint32_t>(storage.payload_bytes),
                         storage.record_count, stored.root},
                        snapshot.epoch, visit);
      if (!walked) return std::unexpected(walked.error());
      const auto content = expected.find(stored.id);
      const bool is_same = content == expected.end() ? found.empty() : found == content->second;
      if (!is_same) {
        const CommitOracle::Content none;
        const CommitOracle::Content& wanted = content == expected.end() ? none : content->second;
        return wrong(
            fmt::format("snapshot {} of epoch {}: storage {} has {} records, other ones "
                        "than the {} that were committed: {}",
                        snapshot.id, snapshot.epoch, stored.id, found.size(), wanted.size(),
                        first_difference(found, wanted)));
      }
      if (auto counted = check_live_pages(snapshot, stored, walked->live); !counted) {
        return counted;
      }
      seen.insert(stored.id);
    }
    for (const auto& [id, content] : expected) {
      if (!content.empty() && !seen.contains(id)) {
        return wrong(fmt::format("snapshot {} lacks storage {}", snapshot.id, id));
      }
    }
    return {};
  }

  const Config& config_;
  FileSystem& files_;
  const std::function<bool()> is_off_;
  std::unique_ptr<DurableState> durable_;
  std::vector<Stream> streams_;
  uint64_t epoch_ = 0;  // the current epoch
  std::vector<Node> nodes_;
  std::optional<CheckpointMetadata> checkpoint_;  // whose files are written
};

}  // namespace atolldb::test
