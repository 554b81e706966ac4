// A cluster with logs that takes checkpoints, and clusters that recover from its files.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/checkpoint/range_walk.h"
#include "engine/checkpoint/replay.h"
#include "engine/mastertree/inspect.h"
#include "shared/base/try.h"
#include "tests/engine/checkpoint/random_work.h"
#include "tests/engine/gleaner/locked_file_system.h"
#include "tests/engine/log/logged_cluster.h"

namespace atolldb::test {

/// Durable state of a cluster after a crash.
struct CrashImage {
  std::unique_ptr<MemoryFileSystem> logs;
  std::unique_ptr<MemoryFileSystem> checkpoints;
  uint32_t nodes = 1;
  uint64_t start_epoch = 1;
  uint64_t cut_epoch = 0;

  std::vector<PlannedStream> streams() const {
    std::vector<PlannedStream> all;
    for (uint32_t node = 0; node < nodes; ++node) {
      LogStream stream;
      stream.directory = "/data";
      stream.node = static_cast<uint16_t>(node);
      stream.incarnation = 1;
      stream.start_epoch = start_epoch;
      all.push_back({stream, cut_epoch});
    }
    return all;
  }
};

struct CheckpointOptions {
  uint64_t id = 1;
  uint32_t writers = 1;
  uint32_t files = 3;  // of each writer
  uint64_t sync_bytes = kCheckpointSyncBytes;
};

/// The walks of a checkpoint, which a test may interleave with transactions.
class StagedCheckpoint {
 public:
  /// `worker`: its thread divides the storages.
  StagedCheckpoint(FileSystem& files, TestWorker& worker, const StagedStorages& storages,
                   const CheckpointOptions& options)
      : files_(&files), storages_(storages.all()), options_(options) {
    EpochBlock& epochs = worker.context->view().control->epochs;
    metadata_.id = options.id;
    metadata_.replay_epoch = replay_epoch_of_checkpoint(epochs);
    epochs_ = &epochs;
    for (StorageControl* storage : storages_) {
      metadata_.storages.push_back({storage->id, storage->type, storage->name});
      ranges_.push_back(divide_storage(*worker.context, storage->id, options.writers));
    }
    outputs_.resize(options.writers);
  }

  /// Copies part `part` of each storage. Thread: any, one per part.
  std::string copy(TestWorker& worker, uint32_t part) {
    CheckpointWriterSettings settings;
    settings.directory = "/data";
    settings.writer = static_cast<uint16_t>(part);
    settings.files = options_.files;
    settings.checkpoint = options_.id;
    settings.replay_epoch = metadata_.replay_epoch;
    settings.sync_bytes = options_.sync_bytes;
    auto writer = CheckpointWriter::create(*files_, settings);
    if (!writer) return writer.error().message;
    Output& output = outputs_[part];
    const CheckpointRules rules{metadata_.replay_epoch};
    for (size_t i = 0; i < storages_.size(); ++i) {
      const auto counters =
          copy_range(*worker.context, storages_[i]->id, rules, ranges_[i][part], *writer);
      if (!counters) return counters.error().message;
      output.counters.add(*counters);
    }
    auto files = writer->finish();
    if (!files) return files.error().message;
    output.files = *std::move(files);
    output.writer = writer->counters();
    return {};
  }

  /// Completes the metadata. The test installs the checkpoint once its end epoch is durable.
  const CheckpointMetadata& finish() {
    metadata_.end_epoch = end_epoch_of_checkpoint(*epochs_);
    metadata_.files.clear();
    for (const Output& output : outputs_) {
      metadata_.files.insert(metadata_.files.end(), output.files.begin(), output.files.end());
    }
    return metadata_;
  }
  WalkCounters counters() const {
    WalkCounters sum;
    for (const Output& output : outputs_) sum.add(output.counters);
    return sum;
  }
  const CheckpointWriterCounters& writer_counters(uint32_t part) const {
    return outputs_[part].writer;
  }
  const CheckpointMetadata& metadata() const { return metadata_; }

 private:
  struct Output {
    std::vector<CheckpointFileInfo> files;
    WalkCounters counters;
    CheckpointWriterCounters writer;
  };

  FileSystem* files_;
  std::array<StorageControl*, 4> storages_;
  CheckpointOptions options_;
  EpochBlock* epochs_ = nullptr;
  CheckpointMetadata metadata_;
  std::vector<std::vector<KeyRange>> ranges_;  // by storage, then by part
  std::vector<Output> outputs_;
};

/// A running cluster. Epochs advance only when the test calls `next_epoch`.
class CheckpointStage {
 public:
  CheckpointStage(uint32_t nodes, uint32_t workers, uint64_t log_file_bytes = uint64_t{64} << 10)
      : logged_(nodes, workers, logged_options(), log_file_bytes),
        storages(logged_.cluster()),
        nodes_(nodes),
        start_epoch_(logged_.epoch()) {
    CHECK(checkpoints_.make_directory("/data/coordinator").has_value());
    // Logs of both kinds must be replayed: whole versions, and updates of parts (R107).
    for (uint32_t i = 1; i < worker_count(); i += 2) {
      worker(i).context->use_whole_versions(kWholeVersionBytes);
    }
  }

  LoggedCluster& logged() { return logged_; }
  TestWorker& worker(uint32_t index) { return logged_.worker(index); }
  uint32_t worker_count() { return logged_.cluster().worker_count(); }
  MemoryFileSystem& checkpoints() { return checkpoints_; }
  uint64_t durable_epoch() {
    return logged_.cluster().view().control->epochs.durable.load(std::memory_order_acquire);
  }
  /// Begins the next epoch and makes the current one durable.
  void next_epoch() {
    const uint64_t epoch = logged_.epoch();
    logged_.tick();
    logged_.close(epoch);
  }

  /// Takes and installs a whole checkpoint. Returns what went wrong.
  std::string take_checkpoint(const CheckpointOptions& options) {
    StagedCheckpoint checkpoint(checkpoints_, worker(0), storages, options);
    for (uint32_t part = 0; part < options.writers; ++part) {
      std::string problem = checkpoint.copy(worker(0), part);
      if (!problem.empty()) return problem;
    }
    return install(checkpoint.finish());
  }
  std::string install(const CheckpointMetadata& metadata) {
    while (!is_end_durable(metadata, durable_epoch())) next_epoch();
    const auto installed = install_checkpoint(checkpoints_, "/data", metadata, durable_epoch());
    return installed ? "" : installed.error().message;
  }

  CrashImage crash() {
    return {logged_.files().copy(), checkpoints_.copy(), nodes_, start_epoch_, durable_epoch()};
  }

 private:
  LoggedCluster logged_;

 public:
  StagedStorages storages;

 private:
  uint32_t nodes_;
  uint64_t start_epoch_;
  MemoryFileSystem checkpoints_;
};

struct RecoveryOptions {
  ReplayOrder order = ReplayOrder::newest_first;
  uint32_t threads = 1;
  uint32_t shares = 1;  // as if so many processes replayed together
};

/// A cluster that recovers from the files of another one.
class RecoveredCluster {
 public:
  RecoveredCluster(const CrashImage& image, const RecoveryOptions& options)
      : cluster_(image.nodes, options.threads, cluster_options(image)), storages(cluster_) {
    auto recovered = recover(image, options);
    if (!recovered) problem_ = recovered.error().message;
  }

  const std::string& problem() const { return problem_; }
  const ReplayCounters& counters() const { return counters_; }
  /// Returns the number of records that had no room beside tombstones.
  size_t blocked() const { return blocked_; }
  /// Returns the number of records that parts have given to others.
  uint64_t given() const { return given_; }
  TestCluster& cluster() { return cluster_; }

  Content content() {
    std::string problem;
    Content read = read_content(cluster_.worker(0), storages, problem);
    if (problem_.empty()) problem_ = problem;
    return read;
  }

 private:
  static TestClusterOptions cluster_options(const CrashImage& image) {
    TestClusterOptions options;
    options.clock = false;
    options.start_epoch = image.cut_epoch + 10;
    return options;
  }

  /// The part of one process. The processes use the same workers, one after the other.
  struct Part {
    ReplayState state;
    std::vector<std::unique_ptr<Replayer>> replayers;
    std::vector<GivenFile> given;
  };

  Result<void> recover(const CrashImage& image, const RecoveryOptions& options) {
    std::vector<std::unique_ptr<Part>> parts;
    for (uint32_t share = 0; share < options.shares; ++share) {
      Part& part = *parts.emplace_back(std::make_unique<Part>());
      part.state.share = {share, options.shares, image.cut_epoch};
      part.state.given.file_system = &given_files_;
      part.state.given.directories = {"/given", "/given2"};
      part.state.given.node = share;
      for (StorageControl* storage : storages.all()) part.state.storages[storage->id] = storage;
      for (uint32_t i = 0; i < cluster_.worker_count(); ++i) {
        part.replayers.push_back(
            std::make_unique<Replayer>(part.state, *cluster_.worker(i).transaction));
      }
    }
    for (const auto& part : parts) {
      ATOLL_TRY(replay_files(image, options, *part));
      ATOLL_ASSIGN(part->given, give_records(part->replayers, on_threads(cluster_.worker_count())));
    }
    ATOLL_TRY(exchange(parts));
    cluster_.view().control->epochs.settled.store(image.cut_epoch, std::memory_order_release);
    for (StorageControl* storage : storages.all()) {
      remove_tombstones(*cluster_.worker(0).context, *storage);
    }
    for (const auto& part : parts) {
      ATOLL_TRY(finish_blocked(part->replayers));
    }
    return check();
  }

  /// Replays the files of the part. Each file has one part.
  Result<void> replay_files(const CrashImage& image, const RecoveryOptions& options, Part& part) {
    const RunTasks run = on_threads(cluster_.worker_count());
    const auto is_own = [&](const std::vector<SizedFile>& files, size_t file) {
      return divide_files(files, options.shares)[file] == part.state.share.number;
    };
    ATOLL_ASSIGN(const auto checkpoint, newest_checkpoint(*image.checkpoints, "/data"));
    const uint64_t first = checkpoint ? checkpoint->replay_epoch : image.start_epoch;
    if (checkpoint) {
      std::vector<SizedFile> sized;
      for (const auto& file : checkpoint->files) sized.push_back({file.node, file.bytes});
      std::vector<size_t> own;
      for (size_t i = 0; i < sized.size(); ++i) {
        if (is_own(sized, i)) own.push_back(i);
      }
      ATOLL_TRY(replay_checkpoint(*image.checkpoints, *checkpoint, own, image.cut_epoch,
                                  part.replayers, run));
    }
    if (image.cut_epoch < first) return {};
    ATOLL_ASSIGN(const auto files,
                 log_files_to_replay(*image.logs, image.streams(), first, options.order));
    std::vector<SizedFile> sized;
    for (const LogReplayFile& file : files) sized.push_back({file.stream.node, 1});
    std::vector<LogReplayFile> own;
    for (size_t i = 0; i < files.size(); ++i) {
      if (is_own(sized, i)) own.push_back(files[i]);
    }
    return replay_log(*image.logs, own, part.replayers, run);
  }

  /// All parts have replayed their files: each takes what the others have given, and ends.
  Result<void> exchange(const std::vector<std::unique_ptr<Part>>& parts) {
    const RunTasks run = on_threads(cluster_.worker_count());
    std::vector<std::vector<GivenFile>> for_part(parts.size());
    for (const auto& part : parts) {
      // As between processes.
      ATOLL_ASSIGN(const auto files, decode_given_files(encode_given_files(part->given)));
      for (const GivenFile& file : files) {
        given_ += file.run.records;
        for_part[file.to].push_back(file);
      }
    }
    for (const auto& part : parts) {
      const auto& files = for_part[part->state.share.number];
      ATOLL_TRY(take_records(given_files_, files, part->replayers, run));
      ATOLL_TRY(finish_replay(part->replayers, run));
      counters_ += counters_of(part->replayers);
      blocked_ += part->state.blocked.records().size();
    }
    return {};
  }

  /// Checks that the trees are sound and have no tombstones.
  Result<void> check() {
    for (StorageControl* storage : {storages.tree, storages.hash}) {
      TreeStatistics statistics;
      const std::string problem = check_tree(cluster_.view(), *storage, statistics);
      if (!problem.empty()) return make_error(ExitCode::failed, problem);
      if (statistics.tombstones != 0) return make_error(ExitCode::failed, "tombstones are left");
    }
    return {};
  }

  TestCluster cluster_;
  MemoryFileSystem given_memory_;
  LockedFileSystem given_files_{given_memory_};

 public:
  StagedStorages storages;

 private:
  ReplayCounters counters_;
  size_t blocked_ = 0;
  uint64_t given_ = 0;
  std::string problem_;
};

/// Recovers and compares with what the transactions left. Returns the first difference.
inline std::string recover_and_compare(const CrashImage& image, const RecoveryOptions& options,
                                       const Content& expected,
                                       ReplayCounters* counters = nullptr) {
  RecoveredCluster recovered(image, options);
  if (!recovered.problem().empty()) return recovered.problem();
  const Content content = recovered.content();
  if (!recovered.problem().empty()) return recovered.problem();
  if (counters != nullptr) *counters = recovered.counters();
  if (content == expected) return {};
  return "recovered " + content.sizes() + ", expected " + expected.sizes() + ", of epoch " +
         std::to_string(image.cut_epoch);
}

/// Prepares one of two parts of a replay up to epoch 50, which gives records in files of `files`.
inline void prepare_part(ReplayState& state, uint32_t share, const StagedStorages& storages,
                         FileSystem& files) {
  state.share = {share, 2, 50};
  state.given.file_system = &files;
  state.given.directories = {"/given"};
  state.given.node = share;
  for (StorageControl* storage : storages.all()) state.storages[storage->id] = storage;
}

}  // namespace atolldb::test
