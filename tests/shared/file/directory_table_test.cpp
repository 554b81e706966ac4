// The table of directories and their roles (R48).
#include "shared/file/directory_table.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "shared/file/file_system.h"
#include "shared/file/posix_file_system.h"
#include "tests/cluster/cluster_folder.h"
#include "tests/engine/log/hooked_file_system.h"
#include "tests/engine/log/memory_file_system.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

TEST(DirectoryTable, GivesEachDirectoryARoleAndNoRoleTwice) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.make_directory("/data"));
  auto table = DirectoryTable::read(files, "/data");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->add("/data"), "data");
  EXPECT_EQ(table->add("/fast"), "log-1");
  EXPECT_EQ(table->add("/big"), "log-2");
  EXPECT_EQ(table->add("/fast"), "log-1");
  table->remove("log-2");
  ASSERT_TRUE(table->write(files));
  table = DirectoryTable::read(files, "/data");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->entries(), (std::vector<DirectoryRole>{{"log-1", "/fast"}}));
  EXPECT_EQ(table->add("/big"), "log-3") << "what names log-2 still must not find another one";
  EXPECT_EQ(table->path_of("data"), "/data");
  EXPECT_EQ(table->path_of("log-3"), "/big");
  EXPECT_FALSE(table->path_of("log-2"));
  EXPECT_FALSE(table->role_of("/other"));
  table->set("log-1", "/big");
  EXPECT_EQ(table->entries(), (std::vector<DirectoryRole>{{"log-1", "/big"}}));
}

TEST(DirectoryTable, KnowsADirectoryByAnyPathThatLeadsThere) {
  TestFolder folder;
  const std::string fast = folder.path() + "/fast";
  std::filesystem::create_directories(fast);
  std::filesystem::create_directory_symlink(fast, folder.path() + "/link");
  std::filesystem::create_directory_symlink(folder.path(), folder.path() + "/again");
  DirectoryTable table(folder.path() + "/data");
  EXPECT_EQ(table.add(fast), "log-1");
  for (const std::string path : {"/link", "/fast/.", "/fast/", "/again/link"}) {
    EXPECT_EQ(table.role_of(folder.path() + path), "log-1") << path;
  }
  EXPECT_EQ(table.role_of(folder.path() + "/again/data"), "data");
}

TEST(DirectoryTable, IsRefusedWhenItsFileIsDamagedOrOfALaterProgramOrTooLarge) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.make_directory("/data"));
  for (const char* text :
       {"", "[]", "{", R"({"version": 1, "directories": []})",
        R"({"version": 2, "last_number": 0, "directories": []})",
        R"({"version": 1, "last_number": 1, "directories": [{"role": "log-1"}]})"}) {
    ASSERT_TRUE(replace_text_file(files, "/data/directories", text));
    const auto table = DirectoryTable::read(files, "/data");
    ASSERT_FALSE(table) << text;
    EXPECT_EQ(table.error().code, ExitCode::corruption) << text;
    EXPECT_TRUE(table.error().message.starts_with("/data/directories: ")) << text;
  }
  const auto largest =
      replace_text_file(files, "/data/t", std::string(kMaxTextFileBytes - kIoBlockBytes, 'x'));
  EXPECT_TRUE(largest);
  EXPECT_TRUE(read_text_file(files, "/data/t"));
  const auto larger = replace_text_file(files, "/data/t", std::string(kMaxTextFileBytes + 1, 'x'));
  ASSERT_FALSE(larger);
  EXPECT_EQ(larger.error().code, ExitCode::resources);
  files.bytes("/data/t").resize(kMaxTextFileBytes + 1);
  EXPECT_FALSE(read_text_file(files, "/data/t"));
}

TEST(DirectoryTable, IsTheOldOneOrTheNewOneWhateverChangeACrashInterrupts) {
  const uint64_t first_seed = seed();
  bool is_done = false;
  for (uint64_t works = 0; !is_done; ++works) {
    PowerCutFileSystem disk;
    ASSERT_TRUE(disk.make_directory("/data"));
    DirectoryTable table("/data");
    table.add("/fast");
    ASSERT_TRUE(table.write(disk));
    table.add("/big");
    HookedFileSystem killed(disk, {}, works);
    is_done = table.write(killed).has_value();
    for (uint64_t cut = 0; cut < 8; ++cut) {
      auto after = DirectoryTable::read(*disk.cut(first_seed + cut), "/data");
      ASSERT_TRUE(after) << after.error().message;
      EXPECT_TRUE(after->entries().size() == 2 || (!is_done && after->entries().size() == 1));
    }
    // The next process finds the table that the killed one has left, perhaps without a sync.
    auto next = DirectoryTable::read(disk, "/data");
    ASSERT_TRUE(next) << next.error().message;
    const std::vector<DirectoryRole> left = next->entries();
    ASSERT_TRUE(next->write(disk));
    for (uint64_t cut = 0; cut < 8; ++cut) {
      auto after = DirectoryTable::read(*disk.cut(first_seed + cut), "/data");
      ASSERT_TRUE(after) << after.error().message;
      EXPECT_EQ(after->entries(), left);
    }
  }
}

}  // namespace
}  // namespace atolldb::test
