// Start-ups of clusters with checkpoints: the scheme of a data directory, the checkpoint that the
// savepoint names, and the files that are kept, deleted or moved aside.
#include "engine/recovery/checkpoint_start.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/checkpoint/log_replay_files.h"
#include "engine/checkpoint/stored_checkpoints.h"
#include "engine/log/log_files.h"
#include "engine/recovery/discard_data.h"
#include "engine/recovery/leftovers.h"
#include "engine/recovery/named_directories.h"
#include "engine/recovery/retention.h"
#include "engine/recovery/scrub.h"
#include "tests/engine/checkpoint/made_checkpoint.h"
#include "tests/engine/checkpoint/read_checkpoint.h"
#include "tests/engine/log/hooked_file_system.h"
#include "tests/engine/log/written_log.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

const std::set<std::string> kCheckpointDirectories = {"/data", "/fast"};

/// Epochs 1 to 9 in the logs of two nodes, and checkpoint 1 with replay epoch 5 and end epoch 7.
struct CheckpointedData : DataDirectory {
  CheckpointedData() {
    scheme = DurabilityScheme::silor;
    EXPECT_EQ(begin({kFirst, kSecond}), "");
    write_all(1, 9);
    EXPECT_EQ(make_checkpoint(files, "/data", start.savepoint, 5, 7), "");
  }

  std::string metadata() const { return checkpoint_metadata_path("/data", 1); }
  static std::string file(uint32_t number) {
    return checkpoint_file_path("/data", 0, {1, 0, number});
  }
  /// Returns the error of a start-up, which is expected to be refused.
  Error refusal(Damage damage = Damage::refused) {
    const auto examined = examine(files, "/data", {}, damage);
    EXPECT_FALSE(examined) << "the start-up is not refused";
    return examined ? Error{} : examined.error();
  }
  std::vector<std::string> checkpoint_paths() {
    const auto found = checkpoint_files_in(files, "/data", kCheckpointDirectories);
    EXPECT_TRUE(found);
    std::vector<std::string> paths;
    for (const StoredCheckpointFile& one : *found) paths.push_back(one.path);
    return paths;
  }
};

TEST(DurabilitySchemes, BelongToADataDirectoryFromItsFirstStart) {
  for (const auto scheme : {DurabilityScheme::gleaned, DurabilityScheme::silor}) {
    DataDirectory data;
    data.scheme = scheme;
    ASSERT_EQ(data.begin({kFirst}), "");
    data.write_all(1, 3);
    ASSERT_EQ(data.begin({kFirst}), "");
    EXPECT_EQ(data.start.savepoint.scheme, scheme);
    const auto paths = data.files.paths();
    const bool is_silor = scheme == DurabilityScheme::silor;
    data.scheme = is_silor ? DurabilityScheme::gleaned : DurabilityScheme::silor;
    const std::string refused = data.begin({kFirst});
    EXPECT_EQ(data.files.paths(), paths);
    for (const char* part : {"/data: ", "gleaned", "silor", "--discard-data"}) {
      EXPECT_TRUE(refused.contains(part)) << part << ": " << refused;
    }
    EXPECT_EQ(refused.contains("atoll export"), !is_silor) << refused;
    data.scheme = scheme;
    EXPECT_EQ(data.begin({kFirst}), "");
  }
}

TEST(CheckpointStart, FindsTheCheckpointAndTheLogFromItsReplayEpochOn) {
  CheckpointedData data;
  auto start = examine(data.files, "/data");
  ASSERT_TRUE(start) << start.error().message;
  ASSERT_TRUE(start->checkpoint);
  EXPECT_FALSE(start->snapshot);
  EXPECT_EQ(start->checkpoint->replay_epoch, 5u);
  EXPECT_EQ(start->checkpoint->end_epoch, 7u);
  EXPECT_EQ(start->recovery_epoch, 9u);
  ASSERT_EQ(start->streams_to_read.size(), 2u);
  EXPECT_EQ(start->streams_to_read[0].stream.covered_epoch, 4u);
  const auto files = log_files_to_replay(data.files, start->streams_to_read, 5);
  EXPECT_TRUE(files) << files.error().message;
}

TEST(CheckpointStart, IsRefusedForAnyDamageToTheCheckpointEvenInASalvage) {
  CheckpointedData data;
  const auto expect_refused = [&](const std::string& path, const std::string& why) {
    for (const Damage damage : {Damage::refused, Damage::left_out}) {
      const Error error = data.refusal(damage);
      EXPECT_EQ(error.code, ExitCode::corruption) << error.message;
      EXPECT_TRUE(error.message.contains(path)) << error.message;
      EXPECT_TRUE(error.message.contains(why)) << error.message;
    }
  };
  data.files.bytes(data.metadata())[60] ^= std::byte{1};
  expect_refused(data.metadata(), "checksum");
  data.files.bytes(data.metadata())[60] ^= std::byte{1};
  data.files.bytes(CheckpointedData::file(1))[100] ^= std::byte{1};  // within its header block
  expect_refused(CheckpointedData::file(1), "checksum");
  data.files.bytes(CheckpointedData::file(1))[100] ^= std::byte{1};
  EXPECT_TRUE(examine(data.files, "/data"));
  ASSERT_TRUE(data.files.remove(CheckpointedData::file(0)));
  expect_refused(CheckpointedData::file(0), "missing");
}

TEST(CheckpointStart, IsRefusedIfTheMetadataIsOfAnotherReplayEpochOrClusterOrNamesUnknownStorages) {
  CheckpointedData data;
  const CheckpointMetadata good = *read_checkpoint_metadata(data.files, "/data", 1);
  const auto expect_refused = [&](const CheckpointMetadata& metadata, const std::string& why) {
    ASSERT_TRUE(install_checkpoint(data.files, "/data", metadata, metadata.end_epoch));
    const Error error = data.refusal();
    EXPECT_TRUE(error.message.contains(why)) << error.message;
  };
  CheckpointMetadata other = good;
  other.replay_epoch = 6;
  expect_refused(other, "replay epoch 6");
  other = good;
  other.cluster_uuid[3] ^= 1;
  expect_refused(other, "another cluster");
  other = good;
  other.storages.push_back({77, StorageType::array, "unknown"});
  expect_refused(other, "storage 77 (unknown)");
  ASSERT_TRUE(install_checkpoint(data.files, "/data", good, good.end_epoch));
  EXPECT_TRUE(examine(data.files, "/data"));
}

/// Flips a bit in the record blocks of an epoch in the log of a node.
void damage_log(MemoryFileSystem& files, const std::string& directory, uint32_t node,
                uint64_t epoch) {
  const auto logs = log_files_in(files, {directory});
  ASSERT_TRUE(logs);
  for (const LogFilePlace& place : *logs) {
    if (place.node != node) continue;
    auto& bytes = files.bytes(path_of(place));
    for (uint64_t at = 0; at + kLogBlockBytes <= bytes.size(); at += kLogBlockBytes) {
      LogBlockHeader header;
      std::memcpy(&header, bytes.data() + at, sizeof header);
      if (header.magic != kLogBlockMagic || header.type != LogBlockType::records) continue;
      if (header.epoch == epoch) bytes[at + sizeof header + 8] ^= std::byte{1};
    }
  }
}

TEST(CheckpointStart, NeedsTheLogUpToTheEndEpochEvenInASalvage) {
  CheckpointedData data;
  damage_log(data.files, "/data", 0, 6);
  EXPECT_EQ(data.refusal().code, ExitCode::corruption);
  const Error salvage = data.refusal(Damage::left_out);
  EXPECT_TRUE(salvage.message.contains("needs the log up to epoch 7")) << salvage.message;
  EXPECT_TRUE(salvage.message.contains("only up to epoch 5")) << salvage.message;
}

TEST(CheckpointStart, TakesATornLogThatEndsBeforeTheEndEpochForDamage) {
  CheckpointedData data;
  // The log of node 0 ends in epoch 6, as a crash would leave it. Its last epochs were durable.
  const auto logs = log_files_in(data.files, {"/data"});
  ASSERT_TRUE(logs);
  for (const LogFilePlace& place : *logs) {
    auto& bytes = data.files.bytes(path_of(place));
    for (uint64_t at = 0; at + kLogBlockBytes <= bytes.size(); at += kLogBlockBytes) {
      LogBlockHeader header;
      std::memcpy(&header, bytes.data() + at, sizeof header);
      if (header.epoch >= 6) std::fill_n(bytes.data() + at, kLogBlockBytes, std::byte{});
    }
  }
  EXPECT_EQ(data.refusal().code, ExitCode::corruption);
}

TEST(CheckpointStart, SalvagesTheEpochsUpToDamageAfterTheEndEpoch) {
  CheckpointedData data;
  damage_log(data.files, "/fast", 1, 9);
  data.start.savepoint.durable_epoch = 9;
  ASSERT_TRUE(write_savepoint(data.files, "/data", data.start.savepoint));
  EXPECT_EQ(data.refusal().code, ExitCode::corruption);
  auto start = examine(data.files, "/data", {}, Damage::left_out);
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(start->recovery_epoch, 8u);
  EXPECT_EQ(start->left_out.size(), 1u);
  ASSERT_TRUE(start->checkpoint);
  ASSERT_TRUE(store_cut(data.files, "/data", *start));
  // The next start-up finds no damage: it reads the log only up to the cut.
  start = examine(data.files, "/data");
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(start->recovery_epoch, 8u);
}

TEST(CheckpointStart, ForgetsTheFirstIncarnationsThatItNeedsNoLogOf) {
  DataDirectory data;
  data.scheme = DurabilityScheme::silor;
  ASSERT_EQ(data.begin({kFirst}), "");
  data.write_all(1, 4);
  ASSERT_TRUE(data.writers[0].close_epoch(5, 4));
  ASSERT_EQ(make_checkpoint(data.files, "/data", data.start.savepoint, 5, 5), "");
  // Incarnations without commits do not fill the list.
  for (int start = 0; start < 5; ++start) ASSERT_EQ(data.begin({kFirst}), "");
  EXPECT_EQ(data.start.savepoint.incarnations.size(), 1u);
  EXPECT_GE(data.start.recovery_epoch, 5u);
  // Incarnations with commits after the checkpoint stay, and so do all later ones.
  const uint64_t first = data.start.start_epoch;
  data.write_all(first, first + 1);
  for (int start = 0; start < 3; ++start) ASSERT_EQ(data.begin({kFirst}), "");
  EXPECT_EQ(data.start.savepoint.incarnations.size(), 4u);
  auto start = examine(data.files, "/data");
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(start->streams_to_read.size(), 1u);
  EXPECT_EQ(start->checkpoint->id, 1u);
  EXPECT_GE(start->recovery_epoch, first + 1);
}

TEST(CheckpointStart, RemovesFilesOfCheckpointsThatNoSavepointNames) {
  CheckpointedData data;
  Savepoint& savepoint = data.start.savepoint;
  const std::vector<std::string> needed = data.checkpoint_paths();
  EXPECT_EQ(needed.size(), 1u + kMadeFiles);
  const ClusterUuid& uuid = savepoint.cluster_uuid;
  // A failed attempt, an installed one that the savepoint does not name, and files of another
  // cluster.
  for (int i = 0; i < 2; ++i) {
    const auto id = take_snapshot_id(data.files, "/data", savepoint);
    ASSERT_TRUE(id);
    const auto made = make_checkpoint_files(data.files, "/fast", uuid, *id, 8, 8, 1);
    ASSERT_TRUE(made);
    if (i == 1) {
      ASSERT_TRUE(install_checkpoint(data.files, "/data", *made, 8));
    }
  }
  ASSERT_TRUE(data.files.create("/data/coordinator/checkpoint_2.meta.new", 0));
  ASSERT_TRUE(make_checkpoint_files(data.files, "/fast", {1}, 2, 8, 8, 3));
  auto start = examine(data.files, "/data");
  ASSERT_TRUE(start) << start.error().message;
  ASSERT_TRUE(store_cut(data.files, "/data", *start));
  const auto removed = remove_leftovers(data.files, "/data", start->savepoint,
                                        kCheckpointDirectories, start->incarnation);
  ASSERT_TRUE(removed) << removed.error().message;
  std::vector<std::string> expected = needed;
  for (uint32_t number = 0; number < kMadeFiles; ++number) {
    expected.push_back(checkpoint_file_path("/fast", 3, {2, 0, number}));
  }
  std::vector<std::string> found = data.checkpoint_paths();
  std::ranges::sort(expected);
  std::ranges::sort(found);
  EXPECT_EQ(found, expected);
}

TEST(CheckpointStart, KeepsTheCheckpointAndTheLogThatABackupHasPinned) {
  CheckpointedData data;
  Savepoint& savepoint = data.start.savepoint;
  const std::string pin = std::string(kBackupPinPrefix) + "one";
  ASSERT_TRUE(pin_snapshot(data.files, "/data", savepoint, 1, pin));
  const std::vector<std::string> before = data.files.paths();
  ASSERT_EQ(make_checkpoint(data.files, "/data", savepoint, 9, 9), "");
  ASSERT_TRUE(delete_unneeded(data.files, "/data", savepoint, kCheckpointDirectories, {}));
  for (const std::string& path : before) {
    if (!path.contains("/checkpoint_1")) continue;
    EXPECT_TRUE(*data.files.exists(path)) << path;
  }
  EXPECT_EQ(data.checkpoint_paths().size(), 2 * (1u + kMadeFiles));
  EXPECT_EQ(savepoint.oldest_epoch(), 4u);
  ASSERT_TRUE(unpin_snapshot(data.files, "/data", savepoint, pin));
  const auto deleted = delete_unneeded(data.files, "/data", savepoint, kCheckpointDirectories, {});
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_EQ(data.checkpoint_paths().size(), 1u + kMadeFiles);
  EXPECT_GT(deleted->size(), 1u + kMadeFiles) << "log files are deleted, too";
  EXPECT_EQ(deleted->front(), data.metadata()) << "the metadata are deleted first";
}

TEST(CheckpointStart, DeletesNothingWhileTheNewestCheckpointCannotBeRead) {
  CheckpointedData data;
  Savepoint& savepoint = data.start.savepoint;
  ASSERT_EQ(make_checkpoint(data.files, "/data", savepoint, 9, 9), "");
  const std::string newest = checkpoint_metadata_path("/data", 2);
  data.files.bytes(newest)[40] ^= std::byte{1};
  const std::vector<std::string> before = data.files.paths();
  const auto refused = delete_unneeded(data.files, "/data", savepoint, kCheckpointDirectories, {});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.contains(newest)) << refused.error().message;
  EXPECT_EQ(data.files.paths(), before);
  data.files.bytes(newest)[40] ^= std::byte{1};
  EXPECT_TRUE(delete_unneeded(data.files, "/data", savepoint, kCheckpointDirectories, {}));
  EXPECT_FALSE(*data.files.exists(data.metadata()));
}

TEST(CheckpointStart, MovesCheckpointsAsideWithTheData) {
  CheckpointedData data;
  const auto moved = discard_data(data.files, "/data", {"/fast"});
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_TRUE(data.checkpoint_paths().empty());
  EXPECT_TRUE(*data.files.exists("/data/discarded-0/coordinator/checkpoint_1.meta"));
  EXPECT_TRUE(*data.files.exists("/data/discarded-0/node0/checkpoint_1_0_1.atcp"));
  data.scheme = DurabilityScheme::gleaned;  // an empty directory may get another scheme
  EXPECT_EQ(data.begin({kFirst}), "");
}

TEST(CheckpointStart, FindsAndRenamesTheDirectoriesOfCheckpoints) {
  CheckpointedData data;
  Savepoint& savepoint = data.start.savepoint;
  ASSERT_TRUE(take_made_checkpoint(data.files, "/data", savepoint, 9, 9, "/other"));
  auto named = named_directories(data.files, "/data");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->directories, (std::set<std::string>{"/data", "/other", "/fast"}));
  const auto rename = [](const std::string& directory) -> Result<std::string> {
    return directory == "/other" ? "/moved" : directory;
  };
  ASSERT_TRUE(rename_directories(data.files, "/data", rename));
  named = named_directories(data.files, "/data");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->directories, (std::set<std::string>{"/data", "/fast", "/moved"}));
  EXPECT_EQ(read_checkpoint_metadata(data.files, "/data", 2)->end_epoch, 9u);
  data.files.bytes(checkpoint_metadata_path("/data", 2))[40] ^= std::byte{1};
  named = named_directories(data.files, "/data");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_TRUE(named->is_partial);
}

TEST(CheckpointScrub, FindsTheFirstDamagedBlockOfEachFile) {
  CheckpointedData data;
  const CheckpointMetadata metadata = *read_checkpoint_metadata(data.files, "/data", 1);
  std::vector<ScrubDamage> found;
  uint64_t reads = 0;
  ScrubHooks hooks = {[&](uint64_t) { return ++reads < 1000; },
                      [&](const ScrubDamage& damage) { found.push_back(damage); }};
  const auto scrub = [&](size_t file) {
    found.clear();
    const auto scrubbed = scrub_checkpoint_file(data.files, metadata, file, hooks);
    EXPECT_TRUE(scrubbed) << scrubbed.error().message;
  };
  for (size_t file = 0; file < metadata.files.size(); ++file) scrub(file);
  EXPECT_TRUE(found.empty());
  EXPECT_GE(reads, 2 * metadata.files.size());
  const std::string path = CheckpointedData::file(0);
  data.files.bytes(path)[kIoBlockBytes + 200] ^= std::byte{1};
  scrub(0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, path);
  EXPECT_EQ(found[0].offset, kIoBlockBytes);
  EXPECT_TRUE(found[0].reason.contains("checksum")) << found[0].reason;
  ASSERT_TRUE(data.files.remove(path));
  scrub(0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].reason.contains("missing")) << found[0].reason;
  hooks.reads = [](uint64_t) { return false; };
  scrub(1);
  EXPECT_TRUE(found.empty());
}

/// A cluster whose files may fail at any change. It closes epochs, takes checkpoints, and deletes
/// what they supersede.
class FailingCluster {
 public:
  FailingCluster(FileSystem& files, uint64_t seed) : files_(files), random_(seed) {}

  /// Runs one incarnation. Ends with an error when the files fail.
  Result<void> live(uint64_t epochs) {
    ATOLL_ASSIGN(start_, examine(files_, "/data"));
    ATOLL_TRY(choose_scheme(start_, "/data", DurabilityScheme::silor));
    ATOLL_TRY(store_cut(files_, "/data", start_));
    ATOLL_TRY(remove_leftovers(files_, "/data", start_.savepoint, kCheckpointDirectories,
                               start_.incarnation));
    ATOLL_TRY(create_missing());
    writers_.clear();
    for (const LoggerPlace& place : {kFirst, kSecond}) {
      ATOLL_ASSIGN(auto writer,
                   LogWriter::create(files_, {place.directory, place.node, place.logger,
                                              start_.incarnation, start_.start_epoch,
                                              start_.savepoint.cluster_uuid, 8 * kLogBlockBytes}));
      writers_.push_back(std::move(writer));
    }
    ATOLL_TRY(begin_incarnation(files_, "/data", start_, {kFirst, kSecond}));
    const uint64_t first = start_.start_epoch;
    for (uint64_t epoch = first; epoch < first + epochs; ++epoch) {
      ATOLL_TRY(close(epoch));
      if (epoch % 3 == 0) {
        ATOLL_TRY(take_checkpoint(std::max(first, epoch - random_() % 3), epoch));
      }
    }
    return {};
  }

  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t checkpoints() const { return checkpoints_; }

 private:
  Result<void> create_missing() {
    ATOLL_ASSIGN(auto ddl, DdlLog::open(files_, "/data", start_.savepoint.cluster_uuid));
    for (auto id = static_cast<uint32_t>(ddl.records().size()) + 1; id <= kStorages; ++id) {
      const std::string name = "s" + std::to_string(id);
      ATOLL_TRY(
          ddl.append({DdlOperation::create_storage, id, 1, name, StorageType::mastertree, 8, 0}));
    }
    return {};
  }
  Result<void> close(uint64_t epoch) {
    for (LogWriter& writer : writers_) {
      BlockBuffer buffer(2);
      for (LogBlock& block : buffer.all()) fill_block(block, epoch, 1, random_);
      if (writer.wants_next_file()) {
        ATOLL_TRY(writer.prepare_next_file());
      }
      ATOLL_TRY(writer.append(std::array{buffer.all()}, epoch - 1));
      ATOLL_TRY(writer.close_epoch(epoch, epoch - 1));
    }
    acknowledged_ = epoch;
    return {};
  }
  Result<void> take_checkpoint(uint64_t replay_epoch, uint64_t end_epoch) {
    ATOLL_TRY(
        take_made_checkpoint(files_, "/data", start_.savepoint, replay_epoch, end_epoch, "/fast"));
    ++checkpoints_;
    ATOLL_TRY(delete_unneeded(files_, "/data", start_.savepoint, kCheckpointDirectories, {}));
    return {};
  }

  FileSystem& files_;
  std::mt19937_64 random_;
  LogStart start_;
  std::vector<LogWriter> writers_;
  uint64_t acknowledged_ = 0;
  uint64_t checkpoints_ = 0;
};

/// Checks that a start-up has every acknowledged epoch, in the checkpoint or in the log after it.
void expect_complete(FileSystem& image, uint64_t acknowledged) {
  const auto start = examine(image, "/data");
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_GE(start->recovery_epoch, acknowledged);
  const uint64_t first = start->checkpoint ? start->checkpoint->replay_epoch : 1;
  if (start->checkpoint) {
    EXPECT_EQ(read_checkpoint_files(image, *start->checkpoint, [](const LogRecord&) {}), "");
    EXPECT_LE(start->checkpoint->end_epoch, start->recovery_epoch);
  }
  const auto files = log_files_to_replay(image, start->streams_to_read, first);
  ASSERT_TRUE(files) << files.error().message;
  std::map<uint64_t, uint64_t> blocks;  // by epoch
  for (const LogReplayFile& file : *files) {
    uint64_t bytes = 0;
    uint64_t outside = 0;
    const auto count = [&](const LogBlock& block) -> Result<void> {
      ++blocks[block.header.epoch];
      return {};
    };
    const auto read = read_log_file(image, file, count, bytes, outside);
    EXPECT_TRUE(read) << read.error().message;
  }
  for (uint64_t epoch = first; epoch <= acknowledged; ++epoch) {
    EXPECT_EQ(blocks[epoch], 4u) << "epoch " << epoch << " of " << acknowledged;
  }
}

TEST(CheckpointStart, HasEveryAcknowledgedEpochAfterAPowerCutAtAnyChange) {
  std::mt19937_64 random(seed());
  bool is_done = false;
  uint64_t changes = 0;
  uint64_t checkpoints = 0;
  // Most steps are alike, so not every change is the last one of a round.
  for (; !is_done; changes += 1 + random() % 5) {
    PowerCutFileSystem disk;
    HookedFileSystem files(disk, {}, changes);
    FailingCluster cluster(files, random());
    is_done = cluster.live(10).has_value();
    checkpoints = std::max(checkpoints, cluster.checkpoints());
    for (uint64_t cut = 0; cut < 2; ++cut) {
      SCOPED_TRACE("change " + std::to_string(changes) + ", cut " + std::to_string(cut));
      const auto image = disk.cut(random());
      expect_complete(*image, cluster.acknowledged());
      if (HasFatalFailure()) return;
      // The next incarnation runs on what is left.
      FailingCluster next(*image, random());
      const auto lived = next.live(4);
      ASSERT_TRUE(lived) << lived.error().message;
      expect_complete(*image, std::max(cluster.acknowledged(), next.acknowledged()));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(checkpoints, 3u);
  EXPECT_GT(changes, 100u);
}

TEST(CheckpointStart, IsSeenToLoseDataWhenSyncsOfDirectoriesDoNothing) {
  uint64_t lost = 0;
  for (uint64_t round = 0; round < 40; ++round) {
    PowerCutFileSystem disk;
    HookedFileSystem files(disk, {.skips_directory_sync = true}, UINT64_MAX);
    FailingCluster cluster(files, round);
    ASSERT_TRUE(cluster.live(10));
    const auto start = examine(*disk.cut(round), "/data");
    lost += !start || start->recovery_epoch < cluster.acknowledged() ? 1 : 0;
  }
  EXPECT_GT(lost, 0u) << "the test above has shown nothing";
}

}  // namespace
}  // namespace atolldb::test
