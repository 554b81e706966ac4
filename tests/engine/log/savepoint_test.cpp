#include "engine/log/savepoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>

#include "engine/log/crc32c.h"
#include "tests/engine/log/hooked_file_system.h"
#include "tests/engine/log/memory_file_system.h"
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

Savepoint read(FileSystem& files) {
  auto found = read_savepoint(files, "/data");
  CHECK(found.has_value() && found->has_value());
  return (*found)->savepoint;
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
    EXPECT_EQ(read(files), savepoint);
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
    if (byte >= 24 && byte < 32) continue;  // spare, yet checked: below
    bytes[byte] ^= std::byte{16};           // generation 2 is in slot 0
    auto found = read_savepoint(files, "/data");
    ASSERT_TRUE(found && *found) << byte;
    EXPECT_EQ((*found)->savepoint, older) << byte;
    EXPECT_NE((*found)->damaged_slot.find("slot 0 at offset 0"), std::string::npos);
    bytes[byte] ^= std::byte{16};
  }
  EXPECT_EQ(read(files), savepoint);
  bytes[28] ^= std::byte{1};
  bytes[kSavepointSlotBytes + 40] ^= std::byte{1};
  auto found = read_savepoint(files, "/data");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ExitCode::corruption);
  EXPECT_NE(found.error().message.find("/data/coordinator/savepoint"), std::string::npos);
  EXPECT_NE(found.error().message.find("checksum"), std::string::npos);
}

/// Version 1 had the same body without what it says of snapshots: 28 bytes behind uuid and epochs.
TEST(Savepoint, IsReadAsItWasBeforeThereWereSnapshots) {
  std::mt19937_64 random(seed());
  MemoryFileSystem files;
  Savepoint savepoint = random_savepoint(random);
  savepoint.snapshot = savepoint.largest_snapshot = 0;
  savepoint.snapshot_epoch = savepoint.covered_incarnation = 0;
  savepoint.pinned.clear();
  ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
  constexpr uint32_t kHeader = 32;
  constexpr uint32_t kBehind = kHeader + 40;
  constexpr uint32_t kRemoved = 28;
  auto& bytes = files.bytes("/data/coordinator/savepoint");
  const std::span<std::byte> slot(bytes.data() + kSavepointSlotBytes, kSavepointSlotBytes);
  std::copy(slot.begin() + kBehind + kRemoved, slot.end(), slot.begin() + kBehind);
  uint32_t words[4];  // magic, checksum, version, length
  std::memcpy(words, slot.data(), sizeof words);
  words[2] = 1;
  words[3] -= kRemoved;
  std::memcpy(slot.data(), words, sizeof words);
  words[1] = crc32c(slot.subspan(8, kHeader - 8 + words[3]));
  std::memcpy(slot.data(), words, sizeof words);
  EXPECT_EQ(read(files), savepoint);
  // The next write is one of today.
  savepoint.largest_snapshot = 1;
  ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
  EXPECT_EQ(read(files), savepoint);
}

TEST(Savepoint, SurvivesAPowerCutAtAnyChange) {
  std::mt19937_64 random(seed());
  PowerCutFileSystem files;
  Savepoint savepoint;
  for (uint64_t round = 0; round < rounds(20, 300); ++round) {
    // Cut amid the write: what was written before is there, or what is being written.
    const Savepoint before = savepoint;
    Savepoint next = random_savepoint(random);
    next.generation = savepoint.generation;
    auto half = files.cut_losing_nothing();
    ASSERT_TRUE(write_savepoint(files, "/data", next));
    auto image = files.cut(random());
    EXPECT_EQ(read(*image), next);
    if (before.generation != 0) {
      auto file = half->open("/data/coordinator/savepoint");
      ASSERT_TRUE(file);
      alignas(kIoBlockBytes) static std::array<std::byte, kIoBlockBytes> torn;
      torn.fill(static_cast<std::byte>(random()));
      const std::span<const std::byte> slice = torn;
      ASSERT_TRUE((*file)->write((before.generation + 1) % 2 * kSavepointSlotBytes, {&slice, 1}));
      EXPECT_EQ(read(*half->cut(random())), before);
    }
    savepoint = next;
  }
}

TEST(Savepoint, WhatAKilledProcessHasNotSyncedIsNotReliedOnByTheNextOne) {
  const uint64_t first_seed = seed();
  // Over several sectors, all of which change: a slot can be torn.
  const auto change = [](Savepoint& savepoint) {
    const uint64_t number = ++savepoint.largest_incarnation;
    const auto letter = static_cast<char>('a' + number);
    savepoint.incarnations = {
        {number, 1, {}, {LoggerPlace{0, 0, "/" + std::string(3000, letter)}}}};
  };
  // Two processes are killed while they write, each before any of its changes, then power fails.
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
  for (uint16_t i = 0; i < 8000; ++i) incarnation.loggers.push_back({i, 0, std::string(200, 'x')});
  savepoint.largest_incarnation = 1;
  auto written = write_savepoint(files, "/data", savepoint);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ExitCode::resources);
  EXPECT_NE(written.error().message.find("1048576"), std::string::npos);
  EXPECT_EQ(read(files), before);
}

}  // namespace
}  // namespace atolldb::test
