// Locks of directories on file systems that have none (rule R31).
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "ops/launcher/data_lock.h"
#include "tests/cluster/cluster_folder.h"

namespace {
int refusal_of_directories = 0;  // errno that flock reports; 0: the kernel's result
}

/// Replaces the function of the C library.
extern "C" int flock(int descriptor, int operation) noexcept {
  struct stat info{};
  if (refusal_of_directories != 0 && fstat(descriptor, &info) == 0 && S_ISDIR(info.st_mode)) {
    errno = refusal_of_directories;
    return -1;
  }
  return static_cast<int>(syscall(SYS_flock, descriptor, operation));
}

namespace atolldb::test {
namespace {

TEST(DirectoryLock, WhereThereIsNoneTheLockFileAloneCountsAndAWarningSaysSo) {
  for (const int refusal : {ENOLCK, EOPNOTSUPP, EINVAL, EBADF}) {
    refusal_of_directories = refusal;
    const TestFolder folder;
    const Config config = folder.config("network");
    const auto lock = lock_data(config);
    ASSERT_TRUE(lock && *lock) << refusal << ": " << lock.error().message;
    EXPECT_EQ((*lock)->fds().size(), 1u);
    const std::vector<std::string> warnings = (*lock)->warnings();
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_TRUE(warnings[0].starts_with(config.cluster.data_dir + "/lock: ")) << warnings[0];
    const auto refused = lock_data(config);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ExitCode::already_running) << refused.error().message;
  }
}

TEST(DirectoryLock, AnyOtherFailureIsAnError) {
  refusal_of_directories = EIO;
  const TestFolder folder;
  const Config config = folder.config("broken");
  const auto lock = lock_data(config);
  ASSERT_FALSE(lock);
  EXPECT_TRUE(lock.error().message.starts_with(config.cluster.data_dir + ": cannot be locked"))
      << lock.error().message;
}

}  // namespace
}  // namespace atolldb::test
