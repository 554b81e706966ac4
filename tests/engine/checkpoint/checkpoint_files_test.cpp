// Files of checkpoints: what a writer writes, a reader returns, and damage is found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/checkpoint_writer.h"
#include "engine/checkpoint/stored_checkpoints.h"
#include "engine/format/crc32c.h"
#include "shared/file/forwarding_file_system.h"
#include "shared/file/read_ahead.h"
#include "tests/engine/checkpoint/read_checkpoint.h"
#include "tests/engine/log/memory_file_system.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

struct Written {
  std::string key;
  std::string payload;
  Vid vid;

  bool operator==(const Written&) const = default;
};

CheckpointWriterSettings settings_for(uint32_t files) {
  CheckpointWriterSettings settings;
  settings.directory = "/data";
  settings.node = 1;
  settings.writer = 2;
  settings.files = files;
  settings.checkpoint = 7;
  settings.replay_epoch = 20;
  settings.cluster_uuid = {1, 2, 3};
  return settings;
}

/// Writes `count` random records. Returns them and the metadata.
std::vector<Written> write_records(FileSystem& files, const CheckpointWriterSettings& settings,
                                   uint64_t count, uint64_t seed_value,
                                   CheckpointMetadata& metadata,
                                   CheckpointWriterCounters* counters = nullptr) {
  std::mt19937_64 random(seed_value);
  auto writer = CheckpointWriter::create(files, settings);
  EXPECT_TRUE(writer.has_value());
  std::vector<Written> all;
  for (uint64_t i = 0; i < count; ++i) {
    Written record{std::string(random() % 40, 'k') + std::to_string(i),
                   std::string(random() % 3000 % 2049, static_cast<char>('a' + i % 26)),
                   Vid::make(1 + random() % 19, 1 + random() % 9)};
    LogRecord& place =
        writer->begin_record(LogType::insert, 5, std::as_bytes(std::span(record.key)), 2048);
    std::ranges::copy(std::as_bytes(std::span(record.payload)), place.payload());
    // A record that is begun and not ended does not count.
    if (random() % 5 == 0) continue;
    writer->end_record(record.vid, static_cast<uint32_t>(record.payload.size()));
    all.push_back(std::move(record));
    EXPECT_TRUE(writer->write_if_full().has_value());
  }
  auto infos = writer->finish();
  EXPECT_TRUE(infos.has_value());
  metadata.id = settings.checkpoint;
  metadata.replay_epoch = settings.replay_epoch;
  metadata.end_epoch = settings.replay_epoch + 3;
  metadata.cluster_uuid = settings.cluster_uuid;
  metadata.storages = {{5, StorageType::mastertree, "tree"}};
  metadata.files = *infos;
  if (counters != nullptr) *counters = writer->counters();
  return all;
}

/// Reads all files of the checkpoint. Returns an empty text or the error.
std::string read_records(FileSystem& files, const CheckpointMetadata& metadata,
                         std::vector<Written>& all) {
  return read_checkpoint_files(files, metadata, [&](const LogRecord& record) {
    all.push_back({text_of(record.key(), record.key_bytes),
                   text_of(record.payload(), record.payload_bytes), Vid(record.vid)});
  });
}

void sort_by_key(std::vector<Written>& records) { std::ranges::sort(records, {}, &Written::key); }

TEST(CheckpointFiles, ReturnWhatWasWritten) {
  // The files of the largest checkpoint are longer than the buffer of a reader.
  for (const uint32_t count : {0u, 1u, 1000u, 12000u}) {
    MemoryFileSystem files;
    CheckpointMetadata metadata;
    std::vector<Written> written = write_records(files, settings_for(3), count, seed(), metadata);
    std::vector<Written> read;
    EXPECT_EQ(read_records(files, metadata, read), "");
    sort_by_key(written);
    sort_by_key(read);
    EXPECT_EQ(read.size(), written.size());
    EXPECT_TRUE(read == written);
    std::vector<Written> read_ahead;
    ReadAhead ahead;
    ReadAheadFileSystem ahead_files(files, ahead);
    EXPECT_EQ(read_records(ahead_files, metadata, read_ahead), "");
    sort_by_key(read_ahead);
    EXPECT_TRUE(read_ahead == written);
  }
}

TEST(CheckpointFiles, OfASmallCheckpointHaveSimilarSizesAndTakeLittleRoom) {
  for (const uint32_t file_count : {3u, 30u}) {
    MemoryFileSystem files;
    CheckpointMetadata metadata;
    CheckpointWriterCounters counters;
    write_records(files, settings_for(file_count), 1000 * file_count, seed(), metadata, &counters);
    ASSERT_GE(counters.blocks, 6 * file_count);
    const auto [least, most] = std::ranges::minmax(metadata.files, {}, &CheckpointFileInfo::bytes);
    EXPECT_LE(most.bytes, 3 * least.bytes);  // 208 KiB and 72 KiB, after the second turn
    for (const CheckpointFileInfo& file : metadata.files) {
      EXPECT_NE(file.records, 0u);
      const std::string path =
          checkpoint_file_path(file.directory, file.node, {metadata.id, file.writer, file.number});
      const uint64_t unused = files.bytes(path).size() - file.bytes;
      EXPECT_LE(unused, std::max(kCheckpointGrowth.least, file.bytes)) << path;
    }
  }
}

/// A file system that keeps no writes to its files, and counts them.
class CountingFileSystem : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override {
    auto file = below().create(path, bytes);
    if (!file) return file;
    return std::make_unique<CountedFile>(*this, *std::move(file));
  }

  uint64_t unsynced = 0;  // bytes, in all files
  uint64_t most_unsynced = 0;
  uint64_t syncs = 0;
  uint64_t grows = 0;

 private:
  class CountedFile : public ForwardingFile {
   public:
    CountedFile(CountingFileSystem& counts, std::unique_ptr<File> below)
        : ForwardingFile(std::move(below)), counts_(counts) {}

    Result<void> write(uint64_t, std::span<const std::span<const std::byte>> slices) override {
      for (const auto& slice : slices) unsynced_ += slice.size();
      for (const auto& slice : slices) counts_.unsynced += slice.size();
      counts_.most_unsynced = std::max(counts_.most_unsynced, counts_.unsynced);
      return {};
    }
    Result<void> grow(uint64_t) override {
      ++counts_.grows;
      return {};
    }
    Result<void> sync() override {
      ++counts_.syncs;
      counts_.unsynced -= std::exchange(unsynced_, 0);
      return {};
    }

   private:
    CountingFileSystem& counts_;
    uint64_t unsynced_ = 0;
  };
};

TEST(CheckpointFiles, NeedAboutAsManySyncsForTheSameBytesHoweverManyTheyAre) {
  // Less than kCheckpointSyncBytes keeps the test short. Turns have a quarter of it then, too.
  constexpr uint64_t kSyncBytes = uint64_t{4} << 20;
  constexpr uint64_t kTurnBytes = kSyncBytes / kCheckpointFilesOfASync;
  constexpr uint64_t kBytes = 16 * kSyncBytes;
  const std::string payload(2000, 'x');
  for (const uint32_t file_count : {1u, 4u, 30u, 64u}) {
    MemoryFileSystem memory;
    CountingFileSystem files(memory);
    CheckpointWriterSettings settings = settings_for(file_count);
    settings.sync_bytes = kSyncBytes;
    auto writer = CheckpointWriter::create(files, settings);
    ASSERT_TRUE(writer.has_value());
    while (writer->counters().bytes < kBytes) {
      LogRecord& place = writer->begin_record(LogType::insert, 5, std::as_bytes(std::span("key")),
                                              static_cast<uint32_t>(payload.size()));
      std::ranges::copy(std::as_bytes(std::span(payload)), place.payload());
      writer->end_record(Vid::make(3, 1), static_cast<uint32_t>(payload.size()));
      ASSERT_TRUE(writer->write_if_full().has_value());
    }
    const auto infos = writer->finish();
    ASSERT_TRUE(infos.has_value());
    EXPECT_LE(files.most_unsynced, kSyncBytes + kMaxCheckpointBlockBytes);
    EXPECT_EQ(files.unsynced, 0u);
    EXPECT_EQ(files.syncs, writer->counters().syncs);
    // The bytes of a sync begin and end amid a turn. While the files are small, turns are short.
    const uint64_t turns = std::min<uint64_t>(file_count, kCheckpointFilesOfASync + 2);
    EXPECT_LE(files.syncs, kBytes / kSyncBytes * turns + 4 * uint64_t{file_count})
        << file_count << " files";
    const auto [least, most] = std::ranges::minmax(*infos, {}, &CheckpointFileInfo::bytes);
    EXPECT_LE(most.bytes - least.bytes, kTurnBytes + kMaxCheckpointBlockBytes);
    EXPECT_LE(files.grows, kBytes / kCheckpointGrowth.most + 8 * uint64_t{file_count});
  }
}

TEST(CheckpointFiles, AreSyncedWheneverManyBytesAreWritten) {
  MemoryFileSystem files;
  CheckpointMetadata metadata;
  CheckpointWriterSettings settings = settings_for(2);
  settings.sync_bytes = uint64_t{256} << 10;
  CheckpointWriterCounters counters;
  write_records(files, settings, 3000, seed(), metadata, &counters);
  // At least one file is synced for each 256 KiB and a block that may go beyond.
  EXPECT_GE(counters.syncs, counters.bytes / (settings.sync_bytes + kMaxCheckpointBlockBytes));
  EXPECT_LE(counters.syncs, 2 * (counters.bytes / settings.sync_bytes + 1));
  CheckpointWriterCounters few;
  settings.sync_bytes = kCheckpointSyncBytes;
  write_records(files, settings, 3000, seed(), metadata, &few);
  EXPECT_EQ(few.syncs, 2u);
  // Without a distance, the files are synced once, at the end.
  settings.sync_bytes = 0;
  CheckpointWriterCounters once;
  write_records(files, settings, 3000, seed(), metadata, &once);
  EXPECT_EQ(once.syncs, 2u);
}

TEST(CheckpointFiles, PauseAfterSoManyBytesAndHaveTheSameRecords) {
  MemoryFileSystem files;
  CheckpointMetadata metadata;
  CheckpointWriterSettings settings = settings_for(2);
  uint64_t pauses = 0;
  settings.sync_bytes = 0;
  settings.pause = [&] { ++pauses; };
  settings.pause_bytes = uint64_t{256} << 10;
  CheckpointWriterCounters counters;
  std::vector<Written> written = write_records(files, settings, 3000, seed(), metadata, &counters);
  EXPECT_GT(pauses, 1u);
  EXPECT_GE(pauses, counters.bytes / (settings.pause_bytes + kMaxCheckpointBlockBytes));
  EXPECT_LE(pauses, counters.bytes / settings.pause_bytes);
  std::vector<Written> read;
  EXPECT_EQ(read_records(files, metadata, read), "");
  sort_by_key(written);
  sort_by_key(read);
  EXPECT_TRUE(read == written);
}

TEST(CheckpointFiles, SurviveAPowerCutOnceTheyAreFinished) {
  PowerCutFileSystem files;
  CheckpointMetadata metadata;
  std::vector<Written> written = write_records(files, settings_for(4), 500, seed(), metadata);
  ASSERT_TRUE(install_checkpoint(files, "/data", metadata, metadata.end_epoch).has_value());
  const auto image = files.cut_losing_all();
  const auto installed = newest_checkpoint(*image, "/data");
  ASSERT_TRUE(installed.has_value() && installed->has_value());
  EXPECT_TRUE(**installed == metadata);
  std::vector<Written> read;
  EXPECT_EQ(read_records(*image, **installed, read), "");
  sort_by_key(written);
  sort_by_key(read);
  EXPECT_TRUE(read == written);
}

TEST(CheckpointFiles, OfACheckpointThatIsNotInstalledReplaceNoOther) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(20, 400); ++round) {
    PowerCutFileSystem files;
    CheckpointMetadata metadata;
    write_records(files, settings_for(2), 50, first, metadata);
    ASSERT_TRUE(install_checkpoint(files, "/data", metadata, metadata.end_epoch).has_value());
    CheckpointWriterSettings next = settings_for(2);
    next.checkpoint = 8;
    CheckpointMetadata newer;
    write_records(files, next, 50, first + round, newer);
    const auto image = files.cut(first + round);
    const auto found = newest_checkpoint(*image, "/data");
    ASSERT_TRUE(found.has_value() && found->has_value()) << "round " << round;
    EXPECT_EQ((*found)->id, 7u);
    std::vector<Written> read;
    EXPECT_EQ(read_records(*image, **found, read), "") << "round " << round;
  }
}

TEST(CheckpointFiles, FlippedBitsAreFoundAndTheErrorNamesTheFile) {
  MemoryFileSystem files;
  CheckpointMetadata metadata;
  const uint64_t seed_value = seed();
  write_records(files, settings_for(2), 400, seed_value, metadata);
  std::mt19937_64 random(seed_value);
  for (uint64_t round = 0; round < rounds(200, 5000); ++round) {
    const CheckpointFileInfo& file = metadata.files[random() % metadata.files.size()];
    const std::string path =
        checkpoint_file_path(file.directory, file.node, {metadata.id, file.writer, file.number});
    const uint64_t at = random() % file.bytes;
    const auto mask = static_cast<std::byte>(1u << random() % 8);
    files.bytes(path)[at] ^= mask;
    std::vector<Written> read;
    const std::string problem = read_records(files, metadata, read);
    files.bytes(path)[at] ^= mask;
    EXPECT_NE(problem, "") << path << " at " << at;
    EXPECT_TRUE(problem.starts_with(path)) << problem;
  }
}

TEST(CheckpointFiles, ShortenedAndMissingFilesAreFoundAndTheErrorNamesTheFile) {
  MemoryFileSystem files;
  CheckpointMetadata metadata;
  write_records(files, settings_for(2), 400, seed(), metadata);
  const CheckpointFileInfo& file = metadata.files[1];
  const std::string path =
      checkpoint_file_path(file.directory, file.node, {metadata.id, file.writer, file.number});
  const MemoryFileSystem::Bytes all = files.bytes(path);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{kIoBlockBytes}, file.bytes - 1}) {
    files.bytes(path).resize(bytes);
    std::vector<Written> read;
    const std::string problem = read_records(files, metadata, read);
    EXPECT_TRUE(problem.starts_with(path)) << problem;
    files.bytes(path) = all;
  }
  // Exactly the written bytes suffice.
  files.bytes(path).resize(file.bytes);
  std::vector<Written> read;
  EXPECT_EQ(read_records(files, metadata, read), "");
  ASSERT_TRUE(files.remove(path).has_value());
  EXPECT_TRUE(read_records(files, metadata, read).starts_with(path));
}

TEST(CheckpointFiles, ExchangedFilesAreFound) {
  MemoryFileSystem files;
  CheckpointMetadata metadata;
  write_records(files, settings_for(2), 100, seed(), metadata);
  std::vector<std::string> paths;
  for (const CheckpointFileInfo& file : metadata.files) {
    paths.push_back(
        checkpoint_file_path(file.directory, file.node, {metadata.id, file.writer, file.number}));
  }
  std::swap(files.bytes(paths[0]), files.bytes(paths[1]));
  std::vector<Written> read;
  EXPECT_NE(read_records(files, metadata, read), "");
}

TEST(CheckpointFiles, HaveNamesThatAreParsedExactly) {
  const CheckpointFileName name{12, 3, 4};
  EXPECT_EQ(to_string(name), "checkpoint_12_3_4.atcp");
  EXPECT_EQ(parse_checkpoint_file_name(to_string(name)), name);
  for (const char* other : {"checkpoint_12_3.atcp", "checkpoint_012_3_4.atcp",
                            "checkpoint_12_3_4.atcp2", "log_1_0_000000.atlog", ""}) {
    EXPECT_FALSE(parse_checkpoint_file_name(other).has_value()) << other;
  }
}

TEST(CheckpointMetadataFile, FlippedBitsAreFoundAndTheErrorNamesTheFile) {
  MemoryFileSystem files;
  CheckpointMetadata metadata;
  write_records(files, settings_for(2), 10, seed(), metadata);
  ASSERT_TRUE(install_checkpoint(files, "/data", metadata, metadata.end_epoch).has_value());
  const std::string path = checkpoint_metadata_path("/data", metadata.id);
  for (size_t at = 0; at < files.bytes(path).size(); at += 7) {
    files.bytes(path)[at] ^= std::byte{16};
    const auto read = read_checkpoint_metadata(files, "/data", metadata.id);
    ASSERT_FALSE(read.has_value()) << "at " << at;
    EXPECT_EQ(read.error().code, ExitCode::corruption);
    EXPECT_TRUE(read.error().message.starts_with(path)) << read.error().message;
    files.bytes(path)[at] ^= std::byte{16};
  }
  EXPECT_TRUE(read_checkpoint_metadata(files, "/data", metadata.id).has_value());
  EXPECT_FALSE(read_checkpoint_metadata(files, "/data", metadata.id + 1).has_value());
}

TEST(CheckpointMetadataFile, HasTheNumbersOfRecordsThatAreKnown) {
  MemoryFileSystem files;
  CheckpointMetadata metadata;
  write_records(files, settings_for(1), 10, seed(), metadata);
  metadata.storages = {{5, StorageType::mastertree, "tree", 10, true},
                       {6, StorageType::hash, "hash"},
                       {8, StorageType::sequential, "heap", 0, false}};
  ASSERT_TRUE(install_checkpoint(files, "/data", metadata, metadata.end_epoch).has_value());
  const auto read = read_checkpoint_metadata(files, "/data", metadata.id);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_TRUE(*read == metadata);
}

/// Gives the file another version and length, with the right checksum.
void rewrite_header(MemoryFileSystem::Bytes& bytes, uint32_t version, int64_t added) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data() + 16, sizeof length);
  length += static_cast<uint64_t>(added);
  std::memcpy(bytes.data() + 8, &version, sizeof version);
  std::memcpy(bytes.data() + 16, &length, sizeof length);
  const uint32_t crc = crc32c(std::span(bytes).subspan(8));
  std::memcpy(bytes.data() + 4, &crc, sizeof crc);
}

TEST(CheckpointMetadataFile, OfVersion1HasNoNumbersAndIsRead) {
  MemoryFileSystem files;
  CheckpointMetadata metadata;
  write_records(files, settings_for(1), 10, seed(), metadata);
  ASSERT_TRUE(install_checkpoint(files, "/data", metadata, metadata.end_epoch).has_value());
  auto& bytes = files.bytes(checkpoint_metadata_path("/data", metadata.id));
  const auto read = [&] { return read_checkpoint_metadata(files, "/data", metadata.id); };
  // Version 1 ends before the count of the numbers, which is 0 here.
  rewrite_header(bytes, 1, -int64_t{sizeof(uint32_t)});
  ASSERT_TRUE(read().has_value()) << read().error().message;
  EXPECT_TRUE(*read() == metadata);
  rewrite_header(bytes, 2, 0);
  EXPECT_FALSE(read().has_value()) << "version 2 ends after the count";
  rewrite_header(bytes, 3, sizeof(uint32_t));
  ASSERT_FALSE(read().has_value());
  EXPECT_NE(read().error().message.find("version 3"), std::string::npos) << read().error().message;
}

TEST(StoredCheckpoints, AreListedWithTheirMetadataFirstWhereverTheyAre) {
  MemoryFileSystem files;
  for (const uint64_t id : {7u, 9u, 10u}) {
    CheckpointMetadata metadata;
    CheckpointWriterSettings settings = settings_for(2);
    settings.checkpoint = id;
    if (id == 9) settings.directory = "/other";
    write_records(files, settings, 10, seed(), metadata);
    ASSERT_TRUE(install_checkpoint(files, "/data", metadata, metadata.end_epoch).has_value());
  }
  // Checkpoint 11 was not installed.
  CheckpointWriterSettings settings = settings_for(1);
  settings.checkpoint = 11;
  CheckpointMetadata unused;
  write_records(files, settings, 10, seed(), unused);
  EXPECT_EQ(*installed_checkpoints(files, "/data"), (std::vector<uint64_t>{7, 9, 10}));
  const auto newest = newest_checkpoint(files, "/data");
  ASSERT_TRUE(newest.has_value() && newest->has_value());
  EXPECT_EQ((*newest)->id, 10u);
  ASSERT_TRUE(files.create("/data/coordinator/checkpoint_11.meta.new", 0).has_value());
  const auto found = checkpoint_files_in(files, "/data", {});
  ASSERT_TRUE(found.has_value());
  std::vector<std::string> paths;
  for (const StoredCheckpointFile& file : *found) paths.push_back(file.path);
  EXPECT_EQ(paths,
            (std::vector<std::string>{
                "/data/coordinator/checkpoint_7.meta", "/data/node1/checkpoint_7_2_0.atcp",
                "/data/node1/checkpoint_7_2_1.atcp", "/data/coordinator/checkpoint_9.meta",
                "/other/node1/checkpoint_9_2_0.atcp", "/other/node1/checkpoint_9_2_1.atcp",
                "/data/coordinator/checkpoint_10.meta", "/data/node1/checkpoint_10_2_0.atcp",
                "/data/node1/checkpoint_10_2_1.atcp", "/data/coordinator/checkpoint_11.meta.new",
                "/data/node1/checkpoint_11_2_0.atcp"}));
  const auto is_of_other = [&](const ClusterUuid& uuid) {
    return is_foreign(files, found->back(), uuid).value_or(false);
  };
  EXPECT_FALSE(is_of_other(settings.cluster_uuid));
  EXPECT_TRUE(is_of_other({4}));
}

TEST(StoredCheckpoints, HaveNamesThatAreTakenApartExactly) {
  using enum StoredCheckpointKind;
  const auto kind_of = [](const char* name) { return parse_stored_checkpoint_name(name)->kind; };
  EXPECT_EQ(parse_stored_checkpoint_name("checkpoint_12_0_3.atcp")->checkpoint, 12u);
  EXPECT_EQ(kind_of("checkpoint_12_0_3.atcp"), records);
  EXPECT_EQ(kind_of("checkpoint_7.meta"), metadata);
  EXPECT_EQ(kind_of("checkpoint_7.meta.new"), unfinished);
  for (const char* other :
       {"checkpoint_.meta", "checkpoint_07.meta", "checkpoint_7.metas", "checkpoint_7",
        "checkpoint_0.meta", "checkpoint_7_0.atcp", "checkpoint_7_0_1.atcp.new",
        "checkpoint_0_0_0.atcp", "snapshot_7.meta", ".new", ""}) {
    EXPECT_FALSE(parse_stored_checkpoint_name(other)) << other;
  }
}

TEST(CheckpointFiles, OfAFailedAttemptAreRemovedOrReplaced) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.make_directory("/data/node1").has_value());
  files.changes_left = 3;  // the first file and its header, then no more
  EXPECT_FALSE(CheckpointWriter::create(files, settings_for(4)).has_value());
  files.changes_left = UINT64_MAX;
  CheckpointMetadata metadata;
  std::vector<Written> written = write_records(files, settings_for(4), 50, seed(), metadata);
  std::vector<Written> read;
  EXPECT_EQ(read_records(files, metadata, read), "");
  EXPECT_EQ(read.size(), written.size());
}

}  // namespace
}  // namespace atolldb::test
