// Tests of the savepoint: slots, damage, old versions, roles of directories, and interrupted
// writes.
#include "engine/log/savepoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>

#include "engine/format/byte_stream.h"
#include "engine/format/crc32c.h"
#include "shared/file/directory_table.h"
#include "tests/engine/format/hex.h"
#include "tests/engine/log/hooked_file_system.h"
#include "tests/engine/log/memory_file_system.h"
#include "tests/engine/log/stored_savepoint.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

Savepoint random_savepoint(std::mt19937_64& random) {
  Savepoint savepoint;
  savepoint.cluster_uuid = {4, 5};
  savepoint.durable_epoch = random() % 100;
  savepoint.ddl_records = random() % 100;
  uint64_t epoch = 1;
  const uint64_t count = random() % 20;
  for (uint64_t number = 1; number <= count; ++number) {
    Incarnation incarnation = {number, epoch, epoch + random() % 1000, {}};
    if (number == count && random() % 2 == 0) incarnation.cut_epoch.reset();
    for (uint16_t i = 0; i < random() % 3; ++i)
      incarnation.loggers.push_back({i, 7, "/a b/" + std::to_string(i)});
    epoch += 2000;
    savepoint.incarnations.push_back(std::move(incarnation));
  }
  savepoint.largest_incarnation = count + random() % 3;
  savepoint.largest_snapshot = static_cast<uint32_t>(random() % 5);
  if (savepoint.largest_snapshot != 0 && random() % 4 != 0) {
    savepoint.snapshot = 1 + static_cast<uint32_t>(random() % savepoint.largest_snapshot);
    savepoint.snapshot_epoch = random() % 1000;
    for (uint64_t i = random() % 3; i > 0; --i) {
      savepoint.pinned.push_back({savepoint.snapshot, random() % (savepoint.snapshot_epoch + 1),
                                  "pin " + std::to_string(i)});
    }
    savepoint.covered_incarnation = random() % (savepoint.largest_incarnation + 1);
    std::erase_if(savepoint.incarnations, [&](const Incarnation& incarnation) {
      return incarnation.number <= savepoint.covered_incarnation;
    });
  }
  savepoint.largest_epoch = (uint64_t{1} << 33) + epoch;
  return savepoint;
}

TEST(Savepoint, IsReadBackAsItWasWritten) {
  std::mt19937_64 random(seed());
  MemoryFileSystem files;
  EXPECT_FALSE(*read_savepoint(files, "/data"));
  uint64_t generation = 0;
  for (uint64_t round = 1; round <= 50; ++round) {
    Savepoint savepoint = random_savepoint(random);
    savepoint.generation = generation;
    ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
    EXPECT_EQ(savepoint.generation, round);
    EXPECT_EQ(stored_savepoint(files), savepoint);
    generation = round;
  }
}

TEST(Savepoint, FallsBackToTheOtherSlotAndThenIsCorrupt) {
  std::mt19937_64 random(seed());
  MemoryFileSystem files;
  Savepoint savepoint = random_savepoint(random);
  ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
  const Savepoint older = savepoint;
  ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
  auto& bytes = files.bytes("/data/coordinator/savepoint");
  for (uint64_t byte = 0; byte < 100; ++byte) {
    // Bytes 24 to 31 are spare. They are checked below.
    if (byte >= 24 && byte < 32) continue;
    bytes[byte] ^= std::byte{16};  // damages slot 0, which has generation 2
    auto found = read_savepoint(files, "/data");
    ASSERT_TRUE(found && *found) << byte;
    EXPECT_EQ((*found)->savepoint, older) << byte;
    EXPECT_NE((*found)->damaged_slot.find("slot 0 at offset 0"), std::string::npos);
    bytes[byte] ^= std::byte{16};
  }
  EXPECT_EQ(stored_savepoint(files), savepoint);
  bytes[28] ^= std::byte{1};
  bytes[kSavepointSlotBytes + 40] ^= std::byte{1};
  auto found = read_savepoint(files, "/data");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ExitCode::corruption);
  EXPECT_NE(found.error().message.find("/data/coordinator/savepoint"), std::string::npos);
  EXPECT_NE(found.error().message.find("checksum"), std::string::npos);
}

/// Writes the file as earlier versions of the program did, with slot 1 only. Version 1 has no
/// snapshots. All versions have the paths of directories, not their roles.
void write_old_savepoint(MemoryFileSystem& files, const Savepoint& savepoint, uint32_t version) {
  ByteWriter body;
  body.raw(std::as_bytes(std::span(savepoint.cluster_uuid)));
  body.number(savepoint.largest_epoch);
  body.number(savepoint.largest_incarnation);
  body.number(savepoint.durable_epoch);
  if (version >= 2) {
    body.number(savepoint.snapshot);
    body.number(savepoint.snapshot_epoch);
    body.number(savepoint.largest_snapshot);
    body.number(savepoint.covered_incarnation);
    body.number(static_cast<uint32_t>(savepoint.pinned.size()));
    for (const PinnedSnapshot& pin : savepoint.pinned) {
      body.number(pin.id);
      body.number(pin.epoch);
      body.text(pin.name);
    }
  }
  if (version >= 3) body.number(uint32_t{0});  // number of kept older snapshots
  body.number(static_cast<uint32_t>(savepoint.incarnations.size()));
  for (const Incarnation& incarnation : savepoint.incarnations) {
    body.number(incarnation.number);
    body.number(incarnation.start_epoch);
    body.number(incarnation.cut_epoch.value_or(UINT64_MAX));
    body.number(static_cast<uint32_t>(incarnation.loggers.size()));
    for (const LoggerPlace& place : incarnation.loggers) {
      body.number(place.node);
      body.number(place.logger);
      body.text(place.directory);
    }
  }
  constexpr uint32_t kHeader = 32;
  ByteWriter checked;
  checked.number(version);
  checked.number(static_cast<uint32_t>(body.bytes().size()));
  checked.number(uint64_t{1});  // generation
  checked.number(savepoint.ddl_records);
  checked.raw(body.bytes());
  ASSERT_TRUE(files.make_directory("/data/coordinator"));
  ASSERT_TRUE(files.create("/data/coordinator/savepoint", 2 * kSavepointSlotBytes));
  auto& bytes = files.bytes("/data/coordinator/savepoint");
  const std::span<std::byte> slot(bytes.data() + kSavepointSlotBytes, kSavepointSlotBytes);
  const uint32_t words[] = {0x50534c41, crc32c(checked.bytes())};
  std::memcpy(slot.data(), words, sizeof words);
  std::ranges::copy(checked.bytes(), slot.begin() + sizeof words);
  static_assert(kHeader == sizeof words + 24);
}

TEST(Savepoint, HasTheseBytes) {
  Savepoint savepoint;
  savepoint.cluster_uuid = {4, 5};
  savepoint.largest_epoch = 0x102;
  savepoint.largest_incarnation = 3;
  savepoint.durable_epoch = 9;
  savepoint.snapshot = 7;
  savepoint.snapshot_epoch = 0x20;
  savepoint.largest_snapshot = 8;
  savepoint.ddl_records = 6;
  savepoint.pinned = {{7, 0x20, "p"}};
  savepoint.kept = {{5, 0x10}};
  savepoint.covered_incarnation = 1;
  const std::vector<LoggerPlace> loggers = {{0, 1, "/data"}, {1, 2, "/logs"}};
  savepoint.incarnations = {{2, 0x21, 0x30, loggers}, {3, 0x41, std::nullopt, loggers}};
  MemoryFileSystem files;
  ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
  const std::span<const std::byte> file = files.bytes("/data/coordinator/savepoint");
  const auto slot = file.subspan(kSavepointSlotBytes);
  EXPECT_EQ(hex_of(slot.first(4)), "414c5350");
  EXPECT_EQ(hex_of(slot.subspan(8, 24)), "04000000b400000001000000000000000600000000000000");
  EXPECT_EQ(hex_of(slot.subspan(32, 180)),
            "04050000000000000000000000000000"
            "020100000000000003000000000000000900000000000000"
            "070000002000000000000000080000000100000000000000"
            "01000000"
            "070000002000000000000000010070"
            "01000000"
            "050000001000000000000000"
            "02000000"
            "020000000000000021000000000000003000000000000000"
            "02000000"
            "00000100040064617461"
            "0100020005006c6f672d31"
            "03000000000000004100000000000000ffffffffffffffff"
            "ffffffff");
}

TEST(Savepoint, NamesTheSchemeInVersionFiveAndIsVersionFourWithoutIt) {
  MemoryFileSystem files;
  Savepoint savepoint;
  const auto version = [&] {
    const auto slot = savepoint.generation % 2 * kSavepointSlotBytes;
    return hex_of(std::span(files.bytes("/data/coordinator/savepoint")).subspan(slot + 8, 4));
  };
  ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
  EXPECT_EQ(version(), "04000000");
  savepoint.scheme = DurabilityScheme::silor;
  ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
  EXPECT_EQ(version(), "05000000");
  EXPECT_EQ(stored_savepoint(files), savepoint);
}

TEST(Savepoint, IsReadAsEarlierProgramsWroteIt) {
  std::mt19937_64 random(seed());
  for (uint64_t round = 0; round < 50; ++round) {
    for (const uint32_t version : {1u, 2u, 3u}) {
      SCOPED_TRACE("version " + std::to_string(version));
      MemoryFileSystem files;
      Savepoint savepoint = random_savepoint(random);
      if (version == 1) {
        savepoint.snapshot = savepoint.largest_snapshot = 0;
        savepoint.snapshot_epoch = savepoint.covered_incarnation = 0;
        savepoint.pinned.clear();
      }
      savepoint.generation = 1;
      ASSERT_NO_FATAL_FAILURE(write_old_savepoint(files, savepoint, version));
      EXPECT_EQ(stored_savepoint(files), savepoint);
      // The next write uses the current format.
      ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
      EXPECT_EQ(stored_savepoint(files), savepoint);
    }
  }
}

Savepoint with_loggers(const std::vector<std::string>& directories) {
  Savepoint savepoint;
  savepoint.largest_incarnation = 1;
  Incarnation& incarnation = savepoint.incarnations.emplace_back(Incarnation{1, 1, {}, {}});
  for (const std::string& directory : directories) {
    incarnation.loggers.push_back(
        {static_cast<uint16_t>(incarnation.loggers.size()), 0, directory});
  }
  return savepoint;
}

/// Returns true if the file contains `text`.
bool holds_text(MemoryFileSystem& files, const std::string& path, const std::string& text) {
  const auto& bytes = files.bytes(path);
  return std::ranges::search(bytes, std::as_bytes(std::span(text))).size() != 0;
}

TEST(Savepoint, NamesDirectoriesByTheirRolesAndFindsThemWhereTheTableSays) {
  MemoryFileSystem files;
  Savepoint savepoint = with_loggers({"/data", "/fast", "/big", "/fast"});
  ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
  const std::string path = "/data/coordinator/savepoint";
  for (const char* directory : {"/data", "/fast", "/big"}) {
    EXPECT_FALSE(holds_text(files, path, directory)) << directory;
  }
  EXPECT_TRUE(holds_text(files, path, "log-2"));
  // Moves the data directory, and changes the path of one of the other directories.
  ASSERT_TRUE(files.make_directory("/moved/coordinator"));
  ASSERT_TRUE(files.rename(path, "/moved/coordinator/savepoint"));
  ASSERT_TRUE(files.rename("/data/directories", "/moved/directories"));
  auto table = DirectoryTable::read(files, "/moved");
  ASSERT_TRUE(table);
  table->set("log-1", "/faster");
  ASSERT_TRUE(table->write(files));
  auto found = read_savepoint(files, "/moved");
  ASSERT_TRUE(found && *found);
  savepoint.incarnations = with_loggers({"/moved", "/faster", "/big", "/faster"}).incarnations;
  EXPECT_EQ((*found)->savepoint, savepoint);
  // A role that the table does not list must not resolve to any directory.
  table->remove("log-2");
  ASSERT_TRUE(table->write(files));
  found = read_savepoint(files, "/moved");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ExitCode::corruption);
  EXPECT_NE(found.error().message.find("it names directory log-2"), std::string::npos)
      << found.error().message;
}

TEST(Savepoint, SurvivesAPowerCutAtAnyChange) {
  std::mt19937_64 random(seed());
  PowerCutFileSystem files;
  Savepoint savepoint;
  for (uint64_t round = 0; round < rounds(20, 300); ++round) {
    // A cut during the write leaves the previous savepoint, or the new one.
    const Savepoint before = savepoint;
    Savepoint next = random_savepoint(random);
    next.generation = savepoint.generation;
    auto half = files.cut_losing_nothing();
    ASSERT_TRUE(write_savepoint(files, "/data", next));
    auto image = files.cut(random());
    EXPECT_EQ(stored_savepoint(*image), next);
    if (before.generation != 0) {
      auto file = half->open("/data/coordinator/savepoint");
      ASSERT_TRUE(file);
      alignas(kIoBlockBytes) static std::array<std::byte, kIoBlockBytes> torn;
      torn.fill(static_cast<std::byte>(random()));
      const std::span<const std::byte> slice = torn;
      ASSERT_TRUE((*file)->write((before.generation + 1) % 2 * kSavepointSlotBytes, {&slice, 1}));
      EXPECT_EQ(stored_savepoint(*half->cut(random())), before);
    }
    savepoint = next;
  }
}

TEST(Savepoint, WhatAKilledProcessHasNotSyncedIsNotReliedOnByTheNextOne) {
  const uint64_t first_seed = seed();
  // The savepoint covers several sectors, all of which change, so a slot can be torn.
  const auto change = [](Savepoint& savepoint) {
    const uint64_t number = ++savepoint.largest_incarnation;
    savepoint.incarnations = {{number, 1, {}, {}}};
    for (uint16_t i = 0; i < 300; ++i) {
      savepoint.incarnations[0].loggers.push_back({i, static_cast<uint16_t>(number), "/data"});
    }
  };
  // Two processes are killed during their writes of the savepoint: the first after `first` changes,
  // the second after `second` changes. Then the power fails.
  for (uint64_t first = 0; first < 5; ++first) {
    for (uint64_t second = 0; second < 5; ++second) {
      PowerCutFileSystem disk;
      Savepoint savepoint;
      for (; savepoint.generation < 2;) {
        change(savepoint);
        ASSERT_TRUE(write_savepoint(disk, "/data", savepoint));
      }
      for (const uint64_t changes : {first, second}) {
        auto read = read_savepoint(disk, "/data");
        ASSERT_TRUE(read && *read);
        Savepoint next = (*read)->savepoint;
        change(next);
        HookedFileSystem killed(disk, {}, changes);
        [[maybe_unused]] const auto may_fail = write_savepoint(killed, "/data", next);
      }
      for (uint64_t cut = 0; cut < 10; ++cut) {
        auto read = read_savepoint(*disk.cut(first_seed + cut), "/data");
        ASSERT_TRUE(read && *read) << first << ' ' << second;
        EXPECT_GE((*read)->savepoint.generation, 2u) << first << ' ' << second;
        EXPECT_EQ((*read)->savepoint.largest_incarnation, (*read)->savepoint.generation);
      }
    }
  }
}

TEST(Savepoint, RefusesWhatDoesNotFitAndStaysAsItWas) {
  MemoryFileSystem files;
  Savepoint savepoint;
  ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
  const Savepoint before = savepoint;
  Incarnation& incarnation = savepoint.incarnations.emplace_back(Incarnation{1, 1, {}, {}});
  for (uint32_t i = 0; i < 120'000; ++i) {
    incarnation.loggers.push_back(
        {static_cast<uint16_t>(i >> 8), static_cast<uint16_t>(i & 255), "/data"});
  }
  savepoint.largest_incarnation = 1;
  auto written = write_savepoint(files, "/data", savepoint);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ExitCode::resources);
  EXPECT_NE(written.error().message.find("1048576"), std::string::npos);
  EXPECT_EQ(stored_savepoint(files), before);
}

}  // namespace
}  // namespace atolldb::test
