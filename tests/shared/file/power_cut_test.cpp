// The emulated power cut: synced data survives, and any part of the rest may survive.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "tests/shared/file/file_test_support.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kSeeds = 200;
constexpr uint64_t kSectorsPerBlock = kIoBlockBytes / kSectorBytes;

std::unique_ptr<File> create(FileSystem& files, const std::string& path, uint64_t blocks) {
  auto file = files.create(path, blocks * kIoBlockBytes);
  EXPECT_TRUE(file) << file.error().message;
  return file ? std::move(*file) : nullptr;
}

/// Returns a block whose sectors all contain the stamp of its write.
Blocks stamped(uint8_t stamp) { return Blocks(1, stamp); }

/// Returns the stamp of each sector.
std::vector<int> stamps(FileSystem& files, const std::string& path) {
  const auto bytes = content(files, path);
  std::vector<int> found;
  for (size_t at = 0; at < bytes.size(); at += kSectorBytes) {
    const auto sector = std::span(bytes).subspan(at, kSectorBytes);
    EXPECT_EQ(std::ranges::count(sector, sector[0]), std::ssize(sector)) << "sectors are whole";
    found.push_back(static_cast<int>(sector[0]));
  }
  return found;
}

/// Returns all names and contents of an image.
std::map<std::string, std::vector<std::byte>> dump(FileSystem& files, const std::string& folder) {
  std::map<std::string, std::vector<std::byte>> all;
  const auto names = files.list(folder);
  EXPECT_TRUE(names);
  for (const std::string& name : names.value()) {
    all[name] = content(files, folder + "/" + name);
  }
  return all;
}

TEST(PowerCut, KeepsOfEverySectorTheSyncedVersionOrALaterOne) {
  constexpr uint64_t kBlocks = 16;
  const uint64_t first_seed = seed();
  std::mt19937_64 random(first_seed);
  uint64_t torn = 0, reordered = 0, lost_all = 0, kept_all = 0;
  for (uint64_t round = 0; round < kSeeds; ++round) {
    PowerCutFileSystem files;
    const auto file = create(files, "/f", kBlocks);
    ASSERT_TRUE(file->sync());
    ASSERT_TRUE(files.sync_directory("/"));
    std::vector<int> synced(kBlocks, 0);
    std::vector<std::set<int>> later(kBlocks);
    std::vector<int> newest(kBlocks, 0);
    const int writes = 20;
    const int last_sync = static_cast<int>(random() % writes);
    for (int stamp = 1; stamp <= writes; ++stamp) {
      const uint64_t block = random() % kBlocks;
      ASSERT_TRUE(
          write(*file, block * kIoBlockBytes, stamped(static_cast<uint8_t>(stamp)).bytes()));
      later[block].insert(stamp);
      newest[block] = stamp;
      if (stamp != last_sync) continue;
      ASSERT_TRUE(file->sync());
      EXPECT_EQ(files.unsynced_sectors(), 0U);
      synced = newest;
      later.assign(kBlocks, {});
    }
    const auto image = files.cut(first_seed + round);
    const std::vector<int> found = stamps(*image, "/f");
    ASSERT_EQ(found.size(), kBlocks * kSectorsPerBlock);
    int newest_found = 0, oldest_lost = writes + 1;
    bool all_lost = true, all_kept = true;
    for (uint64_t sector = 0; sector < found.size(); ++sector) {
      const uint64_t block = sector / kSectorsPerBlock;
      ASSERT_TRUE(found[sector] == synced[block] || later[block].contains(found[sector]))
          << "round " << round << ", sector " << sector << ": " << found[sector];
      if (sector % kSectorsPerBlock != 0 && found[sector] != found[sector - 1]) ++torn;
      if (later[block].empty()) continue;
      all_lost = all_lost && found[sector] == synced[block];
      all_kept = all_kept && found[sector] == newest[block];
      if (found[sector] != newest[block]) oldest_lost = std::min(oldest_lost, newest[block]);
      if (found[sector] != synced[block]) newest_found = std::max(newest_found, found[sector]);
    }
    reordered += newest_found > oldest_lost ? 1 : 0;
    lost_all += all_lost ? 1 : 0;
    kept_all += all_kept ? 1 : 0;
  }
  EXPECT_GT(torn, 0U) << "blocks are torn at sectors";
  EXPECT_GT(reordered, 0U) << "a later write survives an earlier one";
  EXPECT_GT(lost_all, 0U);
  EXPECT_GT(kept_all, 0U);
  EXPECT_LT(lost_all + kept_all, kSeeds);
}

TEST(PowerCut, LosesSomeFilesAndKeepsOthersOfTheSameCut) {
  PowerCutFileSystem files;
  const auto a = create(files, "/a", 8);
  const auto b = create(files, "/b", 8);
  for (File* file : {a.get(), b.get()}) ASSERT_TRUE(file->sync());
  ASSERT_TRUE(files.sync_directory("/"));
  for (File* file : {a.get(), b.get()}) ASSERT_TRUE(write(*file, 0, Blocks(8, 1).bytes()));
  const uint64_t first = seed();
  uint64_t apart = 0;
  const std::vector<int> none(64, 0), all(64, 1);
  for (uint64_t round = 0; round < kSeeds; ++round) {
    const auto image = files.cut(first + round);
    const auto of_a = stamps(*image, "/a");
    const auto of_b = stamps(*image, "/b");
    apart += (of_a == none && of_b == all) || (of_a == all && of_b == none) ? 1 : 0;
  }
  EXPECT_GT(apart, 0U);
}

TEST(PowerCut, MayLoseASyncedFileWhoseFolderWasNotSynced) {
  PowerCutFileSystem files;
  ASSERT_TRUE(files.make_directory("/d/e"));
  const auto file = create(files, "/d/e/f", 1);
  ASSERT_TRUE(write(*file, 0, stamped(1).bytes()));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(files.unsynced_names(), 1U);
  const uint64_t first = seed();
  uint64_t lost = 0;
  for (uint64_t round = 0; round < kSeeds; ++round) {
    const auto image = files.cut(first + round);
    ASSERT_TRUE(image->exists("/d/e").value()) << "folders are synced when they are made";
    if (!image->exists("/d/e/f").value()) {
      ++lost;
    } else {
      ASSERT_EQ(stamps(*image, "/d/e/f"), std::vector<int>(kSectorsPerBlock, 1));
    }
  }
  EXPECT_GT(lost, 0U);
  EXPECT_LT(lost, kSeeds);
  ASSERT_TRUE(files.sync_directory("/d/e"));
  EXPECT_EQ(files.unsynced_names(), 0U);
  for (uint64_t round = 0; round < kSeeds; ++round) {
    ASSERT_TRUE(files.cut(first + round)->exists("/d/e/f").value());
  }
}

TEST(PowerCut, MayCutTheSizeOfAFileThatWasNeverSynced) {
  PowerCutFileSystem files;
  const auto file = create(files, "/f", 4);
  ASSERT_TRUE(files.sync_directory("/"));
  const uint64_t first = seed();
  std::set<uint64_t> sizes;
  for (uint64_t round = 0; round < kSeeds; ++round) {
    sizes.insert(content(*files.cut(first + round), "/f").size());
  }
  EXPECT_TRUE(sizes.contains(0));
  EXPECT_TRUE(sizes.contains(4 * kIoBlockBytes));
  EXPECT_GT(sizes.size(), 2U);
  ASSERT_TRUE(file->sync());
  for (uint64_t round = 0; round < kSeeds; ++round) {
    ASSERT_EQ(content(*files.cut(first + round), "/f").size(), 4U * kIoBlockBytes);
  }
}

/// Replaces a file of one stamp by a file of another: writes a new file, and renames it over the
/// old one.
void replace(FileSystem& files, bool with_sync) {
  const auto old_file = create(files, "/slot", 2);
  ASSERT_TRUE(write(*old_file, 0, Blocks(2, 1).bytes()));
  ASSERT_TRUE(old_file->sync());
  ASSERT_TRUE(files.sync_directory("/"));
  const auto new_file = create(files, "/slot.new", 2);
  ASSERT_TRUE(write(*new_file, 0, Blocks(2, 2).bytes()));
  if (with_sync) {
    ASSERT_TRUE(new_file->sync());
  }
  ASSERT_TRUE(files.rename("/slot.new", "/slot"));
}

TEST(PowerCut, ShowsARenamedFileAsTheOldOrTheNewOne) {
  const std::vector<int> old_content(2 * kSectorsPerBlock, 1), new_content(2 * kSectorsPerBlock, 2);
  const uint64_t first = seed();
  for (const bool with_sync : {true, false}) {
    PowerCutFileSystem files;
    replace(files, with_sync);
    uint64_t old_count = 0, new_count = 0, broken = 0;
    for (uint64_t round = 0; round < kSeeds; ++round) {
      const auto found = stamps(*files.cut(first + round), "/slot");
      ++(found == old_content ? old_count : found == new_content ? new_count : broken);
    }
    EXPECT_GT(old_count, 0U);
    EXPECT_GT(new_count, 0U);
    EXPECT_EQ(broken == 0, with_sync) << "without a sync the new file may be torn: " << broken;
    ASSERT_TRUE(files.sync_directory("/"));
    for (uint64_t round = 0; round < kSeeds && with_sync; ++round) {
      const auto image = files.cut(first + round);
      ASSERT_EQ(stamps(*image, "/slot"), new_content);
      ASSERT_EQ(image->list("/").value(), std::vector<std::string>{"slot"});
    }
  }
}

TEST(PowerCut, MayBringBackARemovedFile) {
  PowerCutFileSystem files;
  ASSERT_TRUE(create(files, "/f", 1)->sync());
  ASSERT_TRUE(files.sync_directory("/"));
  ASSERT_TRUE(files.remove("/f"));
  EXPECT_FALSE(files.exists("/f").value());
  EXPECT_TRUE(files.cut_losing_all()->exists("/f").value());
  EXPECT_FALSE(files.cut_losing_nothing()->exists("/f").value());
  ASSERT_TRUE(files.sync_directory("/"));
  EXPECT_FALSE(files.cut_losing_all()->exists("/f").value());
}

TEST(PowerCut, SyncsBothFoldersOfARename) {
  PowerCutFileSystem files;
  ASSERT_TRUE(files.make_directory("/a"));
  ASSERT_TRUE(files.make_directory("/b"));
  create(files, "/b/f", 0);
  create(files, "/a/f", 1);
  ASSERT_TRUE(files.rename("/a/f", "/b/f"));
  ASSERT_TRUE(files.sync_directory("/b"));
  EXPECT_EQ(files.unsynced_names(), 0U) << "with what the rename builds on";
  const auto image = files.cut_losing_all();
  EXPECT_FALSE(image->exists("/a/f").value());
  EXPECT_TRUE(image->exists("/b/f").value());
}

TEST(PowerCut, GivesTheSameImageForTheSameSeedAndOthersForOthers) {
  PowerCutFileSystem files;
  for (const char* path : {"/a", "/b", "/c", "/d"}) {
    ASSERT_TRUE(write(*create(files, path, 4), 0, Blocks(4, 1).bytes()));
  }
  const uint64_t first = seed();
  std::set<std::map<std::string, std::vector<std::byte>>> images;
  for (uint64_t round = 0; round < kSeeds; ++round) {
    const auto image = dump(*files.cut(first + round), "/");
    ASSERT_EQ(image, dump(*files.cut(first + round), "/"));
    images.insert(image);
  }
  EXPECT_GT(images.size(), kSeeds / 4);
}

TEST(PowerCut, GivesAnImageOfItsOwnThatIsAllSynced) {
  PowerCutFileSystem files;
  const auto file = create(files, "/f", 2);
  ASSERT_TRUE(write(*file, 0, stamped(1).bytes()));
  const auto image = files.cut_losing_nothing();
  EXPECT_EQ(image->unsynced_sectors() + image->unsynced_names(), 0U);
  EXPECT_EQ(dump(*image->cut_losing_all(), "/"), dump(files, "/"));
  auto opened = image->open("/f");
  ASSERT_TRUE(opened);
  ASSERT_TRUE(write(**opened, kIoBlockBytes, stamped(2).bytes()));
  EXPECT_EQ(image->unsynced_sectors(), kSectorsPerBlock);
  EXPECT_EQ(content(*image->cut_losing_all(), "/f"), content(*file))
      << "the first one is as it was";
}

TEST(PowerCut, KeepsWhatWasAcknowledgedBeforeItWhileThreadsGoOn) {
  constexpr int kThreads = 2;
  constexpr int kLastStamp = 200;
  PowerCutFileSystem files;
  std::vector<std::unique_ptr<File>> opened;
  for (int thread = 0; thread < kThreads; ++thread) {
    opened.push_back(create(files, "/" + std::to_string(thread), 1));
    ASSERT_TRUE(opened.back()->sync());
  }
  ASSERT_TRUE(files.sync_directory("/"));
  std::array<std::atomic<int>, kThreads> acknowledged{};
  std::vector<std::jthread> writers;
  for (int thread = 0; thread < kThreads; ++thread) {
    writers.emplace_back([&, thread] {
      File& file = *opened[static_cast<size_t>(thread)];
      for (int stamp = 1; stamp <= kLastStamp; ++stamp) {
        EXPECT_TRUE(write(file, 0, stamped(static_cast<uint8_t>(stamp)).bytes()));
        EXPECT_TRUE(file.sync());
        // Release pairs with the acquire below: a cut that follows has this stamp.
        acknowledged[static_cast<size_t>(thread)].store(stamp, std::memory_order_release);
      }
    });
  }
  const uint64_t first = seed();
  for (uint64_t round = 0; round < kSeeds; ++round) {
    std::array<int, kThreads> least{};
    for (size_t thread = 0; thread < kThreads; ++thread) {
      least[thread] = acknowledged[thread].load(std::memory_order_acquire);
    }
    const auto image = files.cut(first + round);
    for (size_t thread = 0; thread < kThreads; ++thread) {
      for (const int stamp : stamps(*image, "/" + std::to_string(thread))) {
        ASSERT_GE(stamp, least[thread]);
      }
    }
  }
}

TEST(PowerCut, StopsTheMachineWhenThePowerIsOff) {
  PowerCutFileSystem files;
  const auto file = create(files, "/f", 1);
  ASSERT_TRUE(write(*file, 0, stamped(1).bytes()));
  files.power_off();
  EXPECT_EQ(file->sync().error().code, ExitCode::durability);
  EXPECT_FALSE(write(*file, 0, stamped(2).bytes()));
  EXPECT_FALSE(files.create("/g", 0));
  EXPECT_FALSE(files.sync_directory("/"));
  EXPECT_FALSE(files.list("/"));
  const auto image = files.cut_losing_nothing();
  EXPECT_EQ(stamps(*image, "/f"), std::vector<int>(kSectorsPerBlock, 1));
  EXPECT_FALSE(files.cut_losing_all()->exists("/f").value());
}

TEST(PowerCut, DamagesTheByteItIsAskedTo) {
  PowerCutFileSystem files;
  const auto file = create(files, "/f", 2);
  ASSERT_TRUE(write(*file, 0, stamped(1).bytes()));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(files.sync_directory("/"));
  ASSERT_TRUE(write(*file, 0, stamped(2).bytes()));
  auto expected = content(*file);
  ASSERT_TRUE(files.corrupt("/f", 700, 0x80));
  ASSERT_TRUE(files.corrupt("/f", 5000, 0x01));
  expected[700] ^= std::byte{0x80};
  expected[5000] ^= std::byte{0x01};
  EXPECT_EQ(content(*file), expected);
  EXPECT_EQ(content(*files.cut_losing_all(), "/f")[700], std::byte{0x81});
  EXPECT_FALSE(files.corrupt("/f", 8192, 1));
  EXPECT_FALSE(files.corrupt("/none", 0, 1));
}

}  // namespace
}  // namespace atolldb::test
