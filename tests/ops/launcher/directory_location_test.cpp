// Tests which facts about a directory's location are recorded, by the type of its file system
// (R47).
#include "ops/launcher/directory_location.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tests/cluster/cluster_folder.h"

namespace {
long type_of_all = 0;  // type that fstatfs reports for every file system; 0: the kernel's result
}

/// Replaces the function of the C library.
extern "C" int fstatfs(int descriptor, struct statfs* info) noexcept {
  const auto result = static_cast<int>(syscall(SYS_fstatfs, descriptor, info));
  if (result == 0 && type_of_all != 0) info->f_type = type_of_all;
  return result;
}

namespace atolldb::test {
namespace {

TEST(DirectoryLocationTest, InodesThatARemountChangesAreUnknownAndAllOthersCount) {
  constexpr long kExfatMagic = 0x2011BAB0;
  const TestFolder folder;
  struct stat info{};
  ASSERT_EQ(stat(folder.path().c_str(), &info), 0);
  for (const long type : {long{EXT4_SUPER_MAGIC}, long{XFS_SUPER_MAGIC}, long{TMPFS_MAGIC}}) {
    type_of_all = type;
    const auto location = locate_directory(folder.path());
    ASSERT_TRUE(location) << location.error().message;
    EXPECT_EQ(location->inode, info.st_ino) << type;
  }
  for (const long type : {long{FUSE_SUPER_MAGIC}, long{MSDOS_SUPER_MAGIC}, kExfatMagic}) {
    type_of_all = type;
    const auto location = locate_directory(folder.path());
    ASSERT_TRUE(location) << location.error().message;
    EXPECT_EQ(location->inode, 0u) << type;
    // Earlier versions of the program recorded the inode.
    DirectoryLocation recorded = *location;
    recorded.inode = 7;
    EXPECT_EQ(difference(recorded, *location), "") << type;
  }
}

}  // namespace
}  // namespace atolldb::test
