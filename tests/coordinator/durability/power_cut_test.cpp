// Power cuts and kills at any change of any file while a cluster logs, makes snapshots, pins them
// and deletes what nothing needs, starts included; and flipped bits in what is left of all that.
// The seed repeats commits and steps; which of the gleaner's threads makes the last change is
// anybody's guess.
#include <gtest/gtest.h>

#include "engine/log/discard_data.h"
#include "engine/snapshot/stored_snapshots.h"
#include "tests/coordinator/durability/cut_cluster.h"
#include "tests/engine/log/hooked_file_system.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

class CutHistory {
 public:
  explicit CutHistory(uint64_t seed, FileFaults faults = {})
      : random_(seed),
        faults_(faults),
        disk_(std::make_unique<PowerCutFileSystem>()),
        oracle_(seed + 1) {}

  /// Incarnations one after the other, each ended by a cut or a kill. Empty, or what was wrong.
  std::string run(uint32_t incarnations) {
    for (uint32_t i = 0; i < incarnations; ++i) {
      // Few changes: the end comes while the incarnation starts, or recovers.
      const uint64_t changes = random_() % (i % 2 == 0 ? 900 : 120);
      const std::string problem = live(changes, UINT64_MAX);
      if (!problem.empty()) return problem;
      // A killed process leaves what it wrote, synced or not, to the next one.
      if (random_() % 3 != 0) disk_ = disk_->cut(random_());
    }
    const std::string problem = live(UINT64_MAX, 3);
    return problem.empty() ? find_leftovers() : problem;
  }

  /// Without a cut: snapshots that refer to each other, pins, and log behind them, all of which an
  /// orderly end has noted to be durable (damage to the last epoch before a crash looks as if the
  /// crash had torn it).
  std::string run_undisturbed() {
    while (promises_.pins.empty() || references < 2) {
      if (std::string problem = live(UINT64_MAX, 40, true); !problem.empty()) return problem;
    }
    return live(UINT64_MAX, 10, true);
  }

  /// What a start, and a look at all snapshots, say of the directory with flipped bits. No error:
  /// all that was committed is there.
  Result<void> start_with_damage(const std::string& path, uint64_t offset, uint8_t mask) {
    const auto image = disk_->cut_losing_nothing();
    if (auto damaged = image->corrupt(path, offset, mask); !damaged) return damaged;
    CommitOracle oracle = oracle_;
    CutCluster cluster(config_, *image, [] { return false; });
    if (auto started = cluster.start(oracle, promises_); !started) return started;
    return cluster.check(oracle, promises_);
  }

  PowerCutFileSystem& disk() { return *disk_; }
  uint64_t snapshots = 0;   // made and in force
  uint64_t references = 0;  // of them those that refer to pages of older ones
  uint64_t acknowledged() const { return promises_.epoch; }

 private:
  std::string live(uint64_t changes, uint64_t epochs, bool ends = false) {
    HookedFileSystem files(*disk_, faults_, changes);
    CutCluster cluster(config_, files, [&] { return files.is_off(); });
    auto done = cluster.start(oracle_, promises_);
    if (done) done = cluster.check(oracle_, promises_);
    if (done && oracle_.storages().empty()) done = create_storages(cluster);
    for (uint64_t i = 0; done && i < epochs && !files.is_off(); ++i) done = step(cluster);
    if (done && epochs != UINT64_MAX) done = cluster.close_all();
    if (done && epochs != UINT64_MAX) promises_.epoch = oracle_.latest(cluster.durable_epoch());
    if (done && ends) done = cluster.end();
    if (done || (files.is_off() && !done.error().message.contains("WRONG"))) return "";
    return done.error().message;
  }

  Result<void> create_storages(CutCluster& cluster) {
    for (const StorageType type :
         {StorageType::array, StorageType::mastertree, StorageType::sequential}) {
      if (auto created = cluster.create_storage(oracle_, type); !created) return created;
    }
    return {};
  }

  /// An epoch of commits, then loggers, of which some lag behind; sometimes more.
  Result<void> step(CutCluster& cluster) {
    cluster.commit(oracle_, random_);
    for (uint64_t steps = random_() % 8; steps > 0; --steps) {
      auto closed = cluster.close_next(random_() % cluster.logger_count());
      if (!closed) return closed;
      promises_.epoch = oracle_.latest(cluster.durable_epoch());
    }
    switch (random_() % 40) {
      case 0:
      case 1:
      case 2:
      case 3:
        return take_snapshot(cluster);
      case 4:
        return cluster.create_storage(oracle_, StorageType::mastertree);
      case 5:
      case 6:
        return pin(cluster);
      case 7:
        return unpin(cluster);
      default:
        return {};
    }
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
    if (!cluster.newest() || promises_.pins.size() > 3) return {};
    auto pinned = cluster.pin(std::to_string(random_()));
    if (!pinned) return std::unexpected(pinned.error());
    promises_.pins.push_back(*pinned);
    return {};
  }
  Result<void> unpin(CutCluster& cluster) {
    if (promises_.pins.empty()) return {};
    const std::string name = promises_.pins.back().name;
    promises_.pins.pop_back();  // whether it is there is open until the answer
    auto unpinned = cluster.unpin(name);
    if (!unpinned) return std::unexpected(unpinned.error());
    return {};
  }

  /// After a start, the files are those that something needs.
  std::string find_leftovers() {
    CutCluster cluster(config_, *disk_, [] { return false; });
    auto started = cluster.start(oracle_, promises_);
    if (!started) return started.error().message;
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
    const std::set<std::string> directories = {"/data", "/fast/one", "/fast/two"};
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
    return "";
  }

  std::mt19937_64 random_;
  const Config config_ = cut_cluster_config();
  const FileFaults faults_;
  std::unique_ptr<PowerCutFileSystem> disk_;
  CommitOracle oracle_;
  CutPromises promises_;
};

/// Rounds with seeds from `seed` on; empty, or the first thing that was wrong, and its seed.
std::string cut_clusters(uint64_t seed, uint64_t rounds, FileFaults faults = {}) {
  uint64_t acknowledged = 0;
  uint64_t references = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    CutHistory history(seed + round, faults);
    const std::string problem = history.run(7);
    if (!problem.empty()) return fmt::format("ATOLL_SEED={}: {}", seed + round, problem);
    acknowledged += history.acknowledged();
    references += history.references;
  }
  if (acknowledged < 10 * rounds) return "next to nothing was acknowledged";
  if (references < rounds / 2) return "next to no snapshot refers to an older one";
  return "";
}

TEST(SnapshotPowerCut, LosesNothingThatWasAcknowledgedAndNoPageThatIsNeeded) {
  EXPECT_EQ(cut_clusters(seed(), rounds(12, 3000)), "");
}

TEST(SnapshotPowerCut, IsSeenToLoseDataWhenSyncsDoNothing) {
  EXPECT_NE(cut_clusters(1, 30, {.skips_sync = true}), "");
}

TEST(SnapshotPowerCut, IsSeenToLoseFilesWhenSyncsOfDirectoriesDoNothing) {
  EXPECT_NE(cut_clusters(1, 30, {.skips_directory_sync = true}), "");
}

/// All files below the directories of the cluster.
std::vector<std::string> files_of(FileSystem& files) {
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

/// A byte of the file: any one, or one that something was written to.
Result<uint64_t> any_offset(FileSystem& files, const std::string& path, std::mt19937_64& random) {
  auto file = files.open_for_reading(path);
  if (!file) return std::unexpected(file.error());
  std::vector<std::byte> bytes((*file)->size().value_or(0));
  if (auto read = (*file)->read(0, bytes); !read) return std::unexpected(read.error());
  std::vector<uint64_t> written;
  for (uint64_t offset = 0; offset < bytes.size(); ++offset) {
    if (bytes[offset] != std::byte{}) written.push_back(offset);
  }
  const bool is_any = written.empty() || random() % 4 == 0;
  return is_any ? random() % bytes.size() : written[random() % written.size()];
}

/// Whether the message tells where the damage is. Of the savepoint, whose other slot is older than
/// what the logs hold, it names such a log.
bool is_named(const std::string& message, const std::string& path, uint64_t offset) {
  if (path.ends_with("/savepoint")) return message.contains("savepoint");
  if (!message.contains(path)) return false;
  if (path.ends_with(".atlog")) {
    static_assert(kLogBlockBytes == kIoBlockBytes, "one block has one record of DDL");
    return message.contains(fmt::format("offset {}:", offset / kLogBlockBytes * kLogBlockBytes));
  }
  if (!path.ends_with(".atsnap") || offset < kPageBytes) return true;
  return message.contains(fmt::format("page {}:", offset / kPageBytes));
}

TEST(FlippedBits, AreNamedOrChangeNothingInEveryFileOfADirectory) {
  std::mt19937_64 random(seed());
  std::map<std::string, uint64_t> named;  // by kind of file
  const uint64_t directories = rounds(3, 200);
  for (uint64_t i = 0; i < directories; ++i) {
    const uint64_t number = random();
    CutHistory history(number);
    ASSERT_EQ(history.run_undisturbed(), "");
    const std::vector<std::string> paths = files_of(history.disk());
    for (uint64_t flip = 0; flip < 60; ++flip) {
      const std::string& path = paths[random() % paths.size()];
      const auto offset = any_offset(history.disk(), path, random);
      ASSERT_TRUE(offset) << offset.error().message;
      const auto mask = static_cast<uint8_t>(1 << random() % 8);
      const auto started = history.start_with_damage(path, *offset, mask);
      if (started) continue;
      const std::string& message = started.error().message;
      EXPECT_TRUE(is_named(message, path, *offset))
          << path << ", byte " << *offset << ", mask " << int{mask} << ": " << message;
      EXPECT_EQ(started.error().code, ExitCode::corruption) << message;
      ++named[path.contains("/ddl_") ? "ddl" : path.substr(path.rfind('.') + 1)];
    }
  }
  for (const char* kind : {"atlog", "atsnap", "meta", "ddl"}) {
    EXPECT_GT(named[kind], 0u) << kind << ": no damage was found: this has not shown much";
  }
}

}  // namespace
}  // namespace atolldb::test
