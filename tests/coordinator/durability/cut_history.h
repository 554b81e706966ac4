// History of a data directory over many incarnations. Each one ends in a power cut, a kill, or a
// failing device. Every start-up is checked.
#pragma once

#include <gtest/gtest.h>

#include "engine/checkpoint/stored_checkpoints.h"
#include "engine/log/log_files.h"
#include "engine/snapshot/stored_snapshots.h"
#include "tests/coordinator/durability/cut_cluster.h"
#include "tests/engine/log/hooked_file_system.h"
#include "tests/support/fault_injector.h"
#include "tests/support/power_cut_file_system.h"

namespace atolldb::test {

/// Returns all files below the directories of the cluster.
inline std::vector<std::string> files_of(FileSystem& files) {
  std::vector<std::string> paths;
  for (const char* directory : {"/data", "/fast/one", "/fast/two"}) {
    for (const char* folder : {"node0", "node1", "coordinator"}) {
      const std::string path = path_in(directory, folder);
      const auto names = files.list(path);
      if (!names) continue;
      for (const std::string& name : *names) paths.push_back(path_in(path, name));
    }
  }
  return paths;
}

class CutHistory {
 public:
  explicit CutHistory(uint64_t seed, FileFaults faults = {},
                      DurabilityScheme scheme = DurabilityScheme::gleaned)
      : random_(seed),
        config_(cut_cluster_config(scheme)),
        faults_(faults),
        disk_(std::make_unique<PowerCutFileSystem>()),
        oracle_(seed + 1) {}

  /// Runs several incarnations in sequence, each ended by a cut or a kill. Returns the first error,
  /// or an empty text.
  std::string run(uint32_t incarnations) {
    for (uint32_t i = 0; i < incarnations; ++i) {
      // With few changes, the end comes during the start or the recovery of the incarnation.
      const uint64_t changes = random_() % (i % 2 == 0 ? 900 : 120);
      const std::string problem = live(changes, UINT64_MAX);
      if (!problem.empty()) return problem;
      // A killed process leaves all its writes, synced or not, to the next process.
      if (random_() % 3 != 0) disk_ = disk_->cut(random_());
    }
    const std::string problem = live(UINT64_MAX, 3);
    return problem.empty() ? find_leftovers() : problem;
  }

  /// Runs incarnations whose device fails now and then. A failure of a logger or of DDL ends the
  /// cluster and so the incarnation; snapshots, pins and deletions are repeated. Returns the first
  /// error, or an empty text.
  std::string run_on_failing_device(uint32_t incarnations) {
    constexpr IoCall kCalls[] = {IoCall::write,  IoCall::sync,   IoCall::sync_directory,
                                 IoCall::create, IoCall::rename, IoCall::remove};
    for (uint32_t i = 0; i < incarnations; ++i) {
      FaultInjector files(*disk_);
      // After a failed sync, the device has only some of the blocks that the sync had to write. The
      // page cache has all of them.
      files.on_failed_sync = [&](const std::string& path) { disk_->fail_sync(path, random_()); };
      for (const IoCall call : kCalls) {
        const uint64_t range = call == IoCall::write || call == IoCall::sync ? 300 : 40;
        files.fail(call, 1 + random_() % range, Fault::io_error);
        if (call == IoCall::sync) files.fail(call, 1 + random_() % range, Fault::io_error);
      }
      const std::string problem =
          live(files, [] { return false; }, [&] { return files.failures() != 0; }, 120);
      if (!problem.empty()) return problem;
      failures += files.failures();
      if (random_() % 2 == 0) disk_ = disk_->cut(random_());
      // Lets the page cache keep the lost blocks, or evicts them.
      if (random_() % 2 == 0) disk_->evict();
    }
    const std::string problem = live(UINT64_MAX, 3);
    return problem.empty() ? find_leftovers() : problem;
  }

  /// Runs incarnations without a cut, until there are snapshots that refer to each other, pins, and
  /// a log after them. An orderly end records all of it as durable. (After a crash, damage to the
  /// last epoch looks like a torn tail.)
  std::string run_undisturbed() {
    while (promises_.pins.empty() || references < 2) {
      if (std::string problem = live(UINT64_MAX, 40, true); !problem.empty()) return problem;
    }
    return live(UINT64_MAX, 10, true);
  }

  /// Does the same as run_undisturbed, but the last incarnation is killed when it is idle. `notes`:
  /// the savepoint is written before the kill.
  std::string run_killed_when_idle(bool notes) {
    while (promises_.pins.empty() || references < 2) {
      if (std::string problem = live(UINT64_MAX, 40, true); !problem.empty()) return problem;
    }
    before_ = disk_->cut_losing_nothing();
    idles_ = notes ? Idle::noted : Idle::closed;
    return live(UINT64_MAX, 10);
  }
  /// Runs one incarnation that is killed when its last epoch is acknowledged.
  std::string run_killed_at_once() { return live(UINT64_MAX, 10); }
  /// Creates a storage, and kills the incarnation when the creation is acknowledged.
  std::string run_killed_after_creation() {
    CutCluster cluster(config_, *disk_, [] { return false; });
    auto done = cluster.start(oracle_, promises_);
    if (done) done = cluster.create_storage(oracle_, StorageType::mastertree);
    return done ? "" : done.error().message;
  }
  /// The files before the last incarnation.
  PowerCutFileSystem& before() { return *before_; }

  /// Starts on `image` and reads all snapshots. Returns an error if anything is missing.
  Result<void> start_on(PowerCutFileSystem& image) {
    CommitOracle oracle = oracle_;
    CutCluster cluster(config_, image, [] { return false; });
    if (auto started = cluster.start(oracle, promises_); !started) return started;
    return cluster.check(oracle, promises_);
  }

  /// Starts on a copy of the directory with flipped bits, and reads all snapshots. Returns an error
  /// if anything committed is missing.
  Result<void> start_with_damage(const std::string& path, uint64_t offset, uint8_t mask) {
    const auto image = disk_->cut_losing_nothing();
    if (auto damaged = image->corrupt(path, offset, mask); !damaged) return damaged;
    return start_on(*image);
  }

  PowerCutFileSystem& disk() { return *disk_; }
  uint64_t snapshots = 0;  // number of stored snapshots
  /// Number of stored snapshots that refer to pages of older ones, or of checkpoints.
  uint64_t references = 0;
  uint64_t parts = 0;     // number of partial recovery snapshots
  uint64_t failures = 0;  // number of failed calls of the device
  uint64_t acknowledged() const { return promises_.epoch; }

 private:
  std::string live(uint64_t changes, uint64_t epochs, bool ends = false) {
    HookedFileSystem files(*disk_, faults_, changes);
    const auto is_off = [&] { return files.is_off(); };
    return live(files, is_off, is_off, epochs, ends);
  }

  /// Runs one incarnation. `may_fail`: returns true if an error may come from the device, and not
  /// from this program.
  std::string live(FileSystem& files, const std::function<bool()>& is_off,
                   const std::function<bool()>& may_fail, uint64_t epochs, bool ends = false) {
    CutCluster cluster(config_, files, is_off);
    auto done = cluster.start(oracle_, promises_);
    parts += cluster.parts;
    if (done) done = cluster.check(oracle_, promises_);
    if (done && oracle_.storages().empty()) done = create_storages(cluster);
    for (uint64_t i = 0; done && i < epochs && !is_off(); ++i) done = step(cluster, may_fail);
    if (done && epochs != UINT64_MAX) {
      done = cluster.close_all();
      if (done) promises_.epoch = oracle_.latest(cluster.durable_epoch());
    }
    if (done && ends) done = cluster.end();
    if (done && idles_ != Idle::never) done = cluster.idle(idles_ == Idle::noted);
    if (done || (may_fail() && !done.error().message.contains("WRONG"))) return "";
    return done.error().message;
  }

  Result<void> create_storages(CutCluster& cluster) {
    for (const StorageType type : {StorageType::array, StorageType::mastertree,
                                   StorageType::sequential, StorageType::hash}) {
      if (auto created = cluster.create_storage(oracle_, type); !created) return created;
    }
    return {};
  }

  /// Makes an epoch of commits, then lets loggers close epochs, some later than others. Sometimes
  /// it also creates a storage, takes a snapshot, or adds or removes a pin.
  Result<void> step(CutCluster& cluster, const std::function<bool()>& may_fail) {
    cluster.commit(oracle_, random_);
    for (uint64_t steps = random_() % 8; steps > 0; --steps) {
      auto closed = cluster.close_next(random_() % cluster.logger_count());
      if (!closed) return closed;
      promises_.epoch = oracle_.latest(cluster.durable_epoch());
    }
    const uint64_t more = random_() % 40;
    if (more == 0) return cluster.create_storage(oracle_, StorageType::mastertree);
    Result<void> done;
    if (more < 5 && cluster.has_checkpoints()) {
      done = cluster.begin_checkpoint(oracle_, random_);
      if (!done && !may_fail()) return done;
      // An error of a logger ends the cluster.
      if (auto closed = cluster.close_all(); !closed) return closed;
      promises_.epoch = oracle_.latest(cluster.durable_epoch());
      if (done) done = cluster.end_checkpoint();
      if (done) ++references;
    } else if (more < 5) {
      done = take_snapshot(cluster);
    }
    if (more == 5 || more == 6) done = pin(cluster);
    if (more == 7) done = unpin(cluster);
    if (!done && may_fail() && !done.error().message.contains("WRONG")) return {};
    return done;
  }

  Result<void> take_snapshot(CutCluster& cluster) {
    auto taken = cluster.take_snapshot(oracle_, random_() % 6 == 0);
    if (!taken || !cluster.newest()) return taken;
    ++snapshots;
    const SnapshotMetadata& newest = *cluster.newest();
    references += std::ranges::any_of(
        newest.files, [&](const SnapshotFilePlace& file) { return file.snapshot != newest.id; });
    return taken;
  }
  Result<void> pin(CutCluster& cluster) {
    const bool is_any = cluster.newest() || cluster.newest_checkpoint();
    if (!is_any || promises_.pins.size() > 3) return {};
    // Only backups pin checkpoints.
    const std::string name = std::to_string(random_());
    auto pinned =
        cluster.pin(cluster.has_checkpoints() ? std::string(kBackupPinPrefix) + name : name);
    if (!pinned) return std::unexpected(pinned.error());
    promises_.pins.push_back(*pinned);
    return {};
  }
  Result<void> unpin(CutCluster& cluster) {
    if (promises_.pins.empty()) return {};
    const std::string name = promises_.pins.back().name;
    promises_.pins.pop_back();  // until the answer it is unknown whether the pin exists
    auto unpinned = cluster.unpin(name);
    if (!unpinned) return std::unexpected(unpinned.error());
    return {};
  }

  /// Starts once more. Returns an error if unneeded files are left.
  std::string find_leftovers() {
    CutCluster cluster(config_, *disk_, [] { return false; });
    auto started = cluster.start(oracle_, promises_);
    if (!started) return started.error().message;
    const std::set<std::string> directories = {"/data", "/fast/one", "/fast/two"};
    if (cluster.has_checkpoints()) return find_left_checkpoints(cluster, directories);
    std::set<std::string> needed;
    const auto need = [&](const SnapshotMetadata& metadata) {
      needed.insert(snapshot_metadata_path("/data", metadata.id));
      for (const SnapshotFilePlace& file : metadata.files) {
        needed.insert(snapshot_file_path(file.directory, file.node, file.snapshot));
      }
    };
    if (cluster.newest()) need(*cluster.newest());
    for (const PinnedSnapshot& pin : cluster.pins()) {
      need(*read_snapshot_metadata(*disk_, "/data", pin.id));
    }
    const auto stored = snapshot_files_in(*disk_, "/data", directories);
    if (!stored) return stored.error().message;
    for (const StoredSnapshotFile& file : *stored) {
      if (!needed.contains(file.path)) return file.path + ": nothing needs it";
    }
    for (const std::string& directory : directories) {
      for (uint32_t node = 0; node < 2; ++node) {
        const auto runs = list_sorted_runs(*disk_, directory, node);
        if (runs && !runs->empty()) return runs->front() + ": a sorted run is left";
      }
    }
    return find_unlisted_logs(directories);
  }

  /// Returns an error if files of other checkpoints than the newest and the pinned ones are left,
  /// or log files of incarnations that the savepoint does not list.
  std::string find_left_checkpoints(const CutCluster& cluster,
                                    const std::set<std::string>& directories) {
    std::set<uint64_t> needed;
    if (cluster.newest_checkpoint()) needed.insert(cluster.newest_checkpoint()->id);
    for (const PinnedSnapshot& pin : cluster.pins()) needed.insert(pin.id);
    const auto stored = checkpoint_files_in(*disk_, "/data", directories);
    if (!stored) return stored.error().message;
    for (const StoredCheckpointFile& file : *stored) {
      if (!needed.contains(file.checkpoint)) return file.path + ": nothing needs it";
    }
    const auto savepoint = read_savepoint(*disk_, "/data");
    if (!savepoint || !*savepoint) return "the savepoint cannot be read";
    const auto logs = log_files_in(*disk_, directories);
    if (!logs) return logs.error().message;
    const auto& listed = (*savepoint)->savepoint.incarnations;
    for (const LogFilePlace& log : *logs) {
      const auto found = std::ranges::find(listed, log.name.incarnation, &Incarnation::number);
      if (found == listed.end()) return path_of(log) + ": no savepoint lists it";
    }
    return "";
  }

  /// Returns an error for a log file of an earlier incarnation, because the snapshot covers all of
  /// these.
  std::string find_unlisted_logs(const std::set<std::string>& directories) {
    const auto savepoint = read_savepoint(*disk_, "/data");
    if (!savepoint || !*savepoint) return "the savepoint cannot be read";
    const auto logs = log_files_in(*disk_, directories);
    if (!logs) return logs.error().message;
    for (const LogFilePlace& log : *logs) {
      if (log.name.incarnation != (*savepoint)->savepoint.incarnations.back().number) {
        return path_of(log) + ": is of a start that was given up, or is covered";
      }
    }
    return "";
  }

  enum class Idle : uint8_t { never, closed, noted };

  std::mt19937_64 random_;
  const Config config_;
  const FileFaults faults_;
  std::unique_ptr<PowerCutFileSystem> disk_;
  CommitOracle oracle_;
  CutPromises promises_;
  Idle idles_ = Idle::never;  // how the next incarnation ends
  std::unique_ptr<PowerCutFileSystem> before_;
};

/// Parameters of tests that run with each scheme of durability.
inline std::string name_of_scheme(const testing::TestParamInfo<DurabilityScheme>& tested) {
  return std::string(to_string(tested.param));
}
inline auto all_schemes() {
  return testing::Values(DurabilityScheme::gleaned, DurabilityScheme::silor);
}

/// Runs `rounds` rounds with seeds from `seed` on. Returns the first error with its seed, or an
/// empty text.
inline std::string cut_clusters(uint64_t seed, uint64_t rounds, FileFaults faults = {},
                                DurabilityScheme scheme = DurabilityScheme::gleaned) {
  uint64_t acknowledged = 0;
  uint64_t references = 0;
  uint64_t parts = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    CutHistory history(seed + round, faults, scheme);
    const std::string problem = history.run(7);
    if (!problem.empty()) return fmt::format("ATOLL_SEED={}: {}", seed + round, problem);
    acknowledged += history.acknowledged();
    references += history.references;
    parts += history.parts;
  }
  if (acknowledged < 10 * rounds) return "next to nothing was acknowledged";
  if (references < rounds / 2) return "next to no snapshot refers to an older one";
  const bool has_parts = scheme == DurabilityScheme::gleaned;
  if (has_parts && parts < rounds / 2) return "next to no recovery went on in parts";
  return "";
}

}  // namespace atolldb::test
