// Snapshot metadata: format, old versions, roles of directories, damage and interrupted writes.
#include "engine/snapshot/snapshot_metadata.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>

#include "engine/format/byte_stream.h"
#include "engine/format/crc32c.h"
#include "engine/format/stand_in.h"
#include "shared/base/limits.h"
#include "shared/file/directory_table.h"
#include "tests/engine/format/hex.h"
#include "tests/engine/log/hooked_file_system.h"
#include "tests/engine/log/memory_file_system.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

SnapshotMetadata random_metadata(std::mt19937_64& random, uint32_t id) {
  SnapshotMetadata metadata;
  metadata.id = id;
  metadata.base = id - 1;
  metadata.base_epoch = random() % 1000;
  metadata.epoch = metadata.base_epoch + random() % 1000;
  for (uint8_t& byte : metadata.cluster_uuid) byte = static_cast<uint8_t>(random());
  const uint64_t files = random() % 300;
  for (uint32_t i = 0; i < files; ++i) {
    metadata.files.push_back({1 + static_cast<uint32_t>(random() % id), i % (kCoordinator + 1),
                              "/a b/" + std::to_string(random() % 20), 2 + random() % 1000});
  }
  uint32_t storage_id = static_cast<uint32_t>(random() % 3);
  const uint64_t storages = random() % 300;
  for (uint64_t i = 0; i < storages; ++i) {
    SnapshotStorage& storage = metadata.storages.emplace_back();
    storage.id = storage_id;
    storage.type = static_cast<StorageType>(1 + random() % 3);
    storage.name = std::string(random() % (kMaxStorageName + 1), 'n');
    storage.records = random();
    if (!metadata.files.empty() && random() % 4 != 0) {
      const SnapshotFilePlace& file = metadata.files[random() % metadata.files.size()];
      storage.root = SnapshotPointer::make(file.snapshot, file.node, 1);
    }
    storage_id += 1 + static_cast<uint32_t>(random() % 1000);
  }
  return metadata;
}

/// Adds random counts of live pages and records. Some snapshots and storages have none.
void add_counts(std::mt19937_64& random, SnapshotMetadata& metadata) {
  for (const uint32_t snapshot : snapshots_of(metadata.files)) {
    if (random() % 3 == 0) metadata.uncounted.push_back(snapshot);
  }
  PageCounts counts;
  for (const SnapshotStorage& storage : metadata.storages) {
    for (const SnapshotFilePlace& file : metadata.files) {
      if (random() % 50 != 0) continue;
      if (std::ranges::binary_search(metadata.uncounted, file.snapshot)) continue;
      counts.add({{storage.id, file.snapshot, file.node, random() % 1000, 1 + random() % 1000}});
    }
  }
  metadata.live = counts.list();
  for (const SnapshotStorage& storage : metadata.storages) {
    if (!is_tree(storage.type) || random() % 4 == 0) continue;
    metadata.record_counts.push_back({storage.id, random(), random() % 2 == 0});
  }
}

TEST(SnapshotMetadata, IsReadBackAsItWasWritten) {
  std::mt19937_64 random(seed());
  MemoryFileSystem files;
  for (uint64_t round = 0; round < rounds(100, 2000); ++round) {
    const auto id = static_cast<uint32_t>(1 + random() % 5);
    SnapshotMetadata metadata = random_metadata(random, id);
    add_counts(random, metadata);
    ASSERT_TRUE(write_snapshot_metadata(files, "/data", metadata));
    auto read = read_snapshot_metadata(files, "/data", id);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, metadata);
  }
}

/// Writes metadata as earlier versions of the program did, with the paths of directories and
/// without counts of live pages.
void write_old_metadata(MemoryFileSystem& files, const SnapshotMetadata& metadata) {
  ByteWriter body;
  body.number(metadata.id);
  body.number(metadata.base);
  body.number(metadata.epoch);
  body.number(metadata.base_epoch);
  body.raw(std::as_bytes(std::span(metadata.cluster_uuid)));
  body.number(static_cast<uint32_t>(metadata.storages.size()));
  for (const SnapshotStorage& storage : metadata.storages) {
    body.number(storage.id);
    body.number(static_cast<uint8_t>(storage.type));
    body.text(storage.name);
    body.number(storage.root.word());
    body.number(storage.records);
  }
  body.number(static_cast<uint32_t>(metadata.files.size()));
  for (const SnapshotFilePlace& file : metadata.files) {
    body.number(file.snapshot);
    body.number(file.node);
    body.text(file.directory);
    body.number(file.page_count);
  }
  ByteWriter checked;
  checked.number(uint32_t{1});  // version
  checked.number(uint32_t{0});
  checked.number(body.bytes().size());
  checked.raw(body.bytes());
  ByteWriter whole;
  whole.number(uint32_t{0x4d534c41});
  whole.number(crc32c(checked.bytes()));
  whole.raw(checked.bytes());
  ASSERT_TRUE(files.make_directory("/data/coordinator"));
  const std::string path = snapshot_metadata_path("/data", metadata.id);
  ASSERT_TRUE(files.create(path, whole.bytes().size()));
  std::ranges::copy(whole.bytes(), files.bytes(path).begin());
}

TEST(SnapshotMetadata, HasTheseBytes) {
  SnapshotMetadata metadata;
  metadata.id = 3;
  metadata.base = 2;
  metadata.epoch = 0x20;
  metadata.base_epoch = 0x10;
  metadata.cluster_uuid = {4, 5};
  metadata.storages = {{9, StorageType::mastertree, "t", SnapshotPointer::make(3, 1, 1), 5}};
  metadata.files = {{3, 1, "/logs", 2}};
  metadata.live = {{9, 3, 1, 7, 2}};
  metadata.record_counts = {{9, 0x4d, true}};
  MemoryFileSystem files;
  ASSERT_TRUE(write_snapshot_metadata(files, "/data", metadata));
  const std::span<const std::byte> file = files.bytes(snapshot_metadata_path("/data", 3));
  EXPECT_EQ(hex_of(file.first(4)), "414c534d");
  EXPECT_EQ(hex_of(file.subspan(8, 16)), "04000000000000009400000000000000");
  EXPECT_EQ(hex_of(file.subspan(24, 148)),
            "0300000002000000"
            "20000000000000001000000000000000"
            "04050000000000000000000000000000"
            "01000000"
            "0900000002010074"
            "01000000010300000500000000000000"
            "01000000"
            "030000000100000005006c6f672d310200000000000000"
            "01000000"
            "09000000030000000100000007000000000000000200000000000000"
            "00000000"
            "01000000"
            "090000004d0000000000000001");
}

TEST(SnapshotMetadata, IsReadAsEarlierProgramsWroteIt) {
  std::mt19937_64 random(seed());
  for (uint32_t id = 1; id < 20; ++id) {
    MemoryFileSystem files;
    const SnapshotMetadata metadata = random_metadata(random, id);
    ASSERT_NO_FATAL_FAILURE(write_old_metadata(files, metadata));
    auto read = read_snapshot_metadata(files, "/data", id);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->uncounted, snapshots_of(metadata.files));
    read->uncounted.clear();
    EXPECT_EQ(*read, metadata);
  }
}

TEST(SnapshotMetadata, CountsAreThoseOfListedStoragesAndFilesOnly) {
  SnapshotMetadata good;
  good.id = 3;
  good.storages = {{9, StorageType::mastertree, "t", {}, 5}};
  good.files = {{2, 0, "/data", 9}, {3, 0, "/data", 9}};
  good.live = {{9, 3, 0, 7, 0}};
  good.uncounted = {2};
  good.record_counts = {{9, 5, false}};
  using Change = void (*)(SnapshotMetadata&);
  for (const Change change :
       {Change([](SnapshotMetadata& bad) { bad.live[0].storage_id = 8; }),
        Change([](SnapshotMetadata& bad) { bad.live[0].snapshot = 1; }),
        Change([](SnapshotMetadata& bad) { bad.live[0].node = 1; }),
        Change([](SnapshotMetadata& bad) { bad.live[0].snapshot = 2; }),
        Change([](SnapshotMetadata& bad) { bad.live[0].first_layer = 0; }),
        Change([](SnapshotMetadata& bad) { bad.uncounted = {1}; }),
        Change([](SnapshotMetadata& bad) { bad.record_counts = {{8, 1}}; }),
        Change([](SnapshotMetadata& bad) { bad.storages[0].type = StorageType::array; })}) {
    MemoryFileSystem files;
    ASSERT_TRUE(write_snapshot_metadata(files, "/data", good));
    SnapshotMetadata bad = good;
    change(bad);
    EXPECT_DEATH(static_cast<void>(write_snapshot_metadata(files, "/data", bad)), "is_sensible");
  }
}

TEST(SnapshotMetadata, IsRefusedIfAFileHasMorePagesThanAWriterCanWrite) {
  MemoryFileSystem files;
  SnapshotMetadata metadata;
  metadata.id = 3;
  metadata.files = {{3, 0, "/data", kStandInBit}};
  ASSERT_NO_FATAL_FAILURE(write_old_metadata(files, metadata));
  EXPECT_TRUE(read_snapshot_metadata(files, "/data", 3));
  ASSERT_TRUE(files.remove(snapshot_metadata_path("/data", 3)));
  metadata.files = {{3, 0, "/data", uint64_t{kStandInBit} + 1}};
  ASSERT_NO_FATAL_FAILURE(write_old_metadata(files, metadata));
  const auto read = read_snapshot_metadata(files, "/data", 3);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ExitCode::corruption);
}

TEST(SnapshotMetadata, NamesDirectoriesByTheirRolesAndFindsThemWhereTheTableSays) {
  MemoryFileSystem files;
  SnapshotMetadata metadata;
  metadata.id = 3;
  metadata.files = {{3, 0, "/fast", 9}, {3, 1, "/data", 9}, {3, kCoordinator, "/data", 2}};
  ASSERT_TRUE(write_snapshot_metadata(files, "/data", metadata));
  const std::string path = snapshot_metadata_path("/data", 3);
  for (const std::string& directory : {std::string("/fast"), std::string("/data")}) {
    EXPECT_TRUE(
        std::ranges::search(files.bytes(path), std::as_bytes(std::span(directory))).empty());
  }
  // Moves the data directory, and changes the path of the other directory.
  ASSERT_TRUE(files.make_directory("/moved/coordinator"));
  ASSERT_TRUE(files.rename(path, snapshot_metadata_path("/moved", 3)));
  ASSERT_TRUE(files.rename("/data/directories", "/moved/directories"));
  auto table = DirectoryTable::read(files, "/moved");
  ASSERT_TRUE(table);
  table->set("log-1", "/faster");
  ASSERT_TRUE(table->write(files));
  auto read = read_snapshot_metadata(files, "/moved", 3);
  ASSERT_TRUE(read) << read.error().message;
  metadata.files = {{3, 0, "/faster", 9}, {3, 1, "/moved", 9}, {3, kCoordinator, "/moved", 2}};
  EXPECT_EQ(*read, metadata);
  table->remove("log-1");
  ASSERT_TRUE(table->write(files));
  read = read_snapshot_metadata(files, "/moved", 3);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ExitCode::corruption);
  EXPECT_NE(read.error().message.find("it names directory log-1"), std::string::npos)
      << read.error().message;
}

TEST(SnapshotMetadata, IsRefusedWhateverBitTurnsAndTheFileIsNamed) {
  std::mt19937_64 random(seed());
  MemoryFileSystem files;
  ASSERT_TRUE(write_snapshot_metadata(files, "/data", random_metadata(random, 3)));
  const std::string path = snapshot_metadata_path("/data", 3);
  EXPECT_EQ(path, "/data/coordinator/snapshot_3.meta");
  auto& bytes = files.bytes(path);
  for (uint64_t byte = 0; byte < bytes.size(); ++byte) {
    const auto bit = std::byte{1} << (random() % 8);
    bytes[byte] ^= bit;
    auto read = read_snapshot_metadata(files, "/data", 3);
    ASSERT_FALSE(read) << "byte " << byte;
    EXPECT_EQ(read.error().code, ExitCode::corruption);
    EXPECT_TRUE(read.error().message.starts_with(path + ": ")) << read.error().message;
    bytes[byte] ^= bit;
  }
  EXPECT_TRUE(read_snapshot_metadata(files, "/data", 3));
}

TEST(SnapshotMetadata, IsRefusedWhenItIsShortOrMissingOrOfAnotherSnapshot) {
  std::mt19937_64 random(seed());
  MemoryFileSystem files;
  ASSERT_TRUE(write_snapshot_metadata(files, "/data", random_metadata(random, 3)));
  auto& bytes = files.bytes(snapshot_metadata_path("/data", 3));
  const auto reason = [&](uint32_t id) {
    auto read = read_snapshot_metadata(files, "/data", id);
    EXPECT_FALSE(read);
    if (read) return std::string();
    EXPECT_EQ(read.error().code, ExitCode::corruption);
    return read.error().message;
  };
  EXPECT_NE(reason(4).find("missing"), std::string::npos);
  ASSERT_TRUE(files.rename(snapshot_metadata_path("/data", 3), snapshot_metadata_path("/data", 4)));
  EXPECT_NE(reason(4).find("it is of snapshot 3"), std::string::npos);
  bytes[8] = std::byte{9};  // the version, which is covered by the checksum
  EXPECT_NE(reason(4).find("checksum"), std::string::npos);
  bytes.resize(bytes.size() - 1);
  EXPECT_NE(reason(4).find("checksum"), std::string::npos);
  bytes.resize(20);
  EXPECT_NE(reason(4).find("ends within"), std::string::npos);
  bytes.clear();
  EXPECT_NE(reason(4).find("ends within"), std::string::npos);
}

TEST(SnapshotMetadata, SurvivesAPowerCutOnceItIsWritten) {
  std::mt19937_64 random(seed());
  for (uint64_t round = 0; round < rounds(20, 300); ++round) {
    PowerCutFileSystem disk;
    const SnapshotMetadata metadata = random_metadata(random, 7);
    ASSERT_TRUE(write_snapshot_metadata(disk, "/data", metadata));
    auto read = read_snapshot_metadata(*disk.cut(random()), "/data", 7);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, metadata);
  }
}

TEST(SnapshotMetadata, IsTheOldOneOrTheNewOneWhateverChangeACrashInterrupts) {
  std::mt19937_64 random(seed());
  uint64_t changes = 0;
  for (bool is_done = false; !is_done; ++changes) {
    PowerCutFileSystem disk;
    const SnapshotMetadata old = random_metadata(random, 7);
    SnapshotMetadata next = random_metadata(random, 7);
    next.epoch = old.epoch + 1;
    next.base_epoch = 0;
    ASSERT_TRUE(write_snapshot_metadata(disk, "/data", old));
    HookedFileSystem killed(disk, {}, changes);
    is_done = write_snapshot_metadata(killed, "/data", next).has_value();
    for (uint64_t cut = 0; cut < 10; ++cut) {
      auto image = disk.cut(random());
      auto read = read_snapshot_metadata(*image, "/data", 7);
      ASSERT_TRUE(read) << changes << ": " << read.error().message;
      EXPECT_TRUE(*read == next || (!is_done && *read == old)) << changes;
      // Files that the crash left do not stop the next write.
      ASSERT_TRUE(write_snapshot_metadata(*image, "/data", next));
      EXPECT_EQ(*read_snapshot_metadata(*image->cut(random()), "/data", 7), next);
    }
  }
  EXPECT_GT(changes, 5u);
}

}  // namespace
}  // namespace atolldb::test
