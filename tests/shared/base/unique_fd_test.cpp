// Reading small files whole: long ones, and those of processes that have ended.
#include "shared/base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "shared/base/process_id.h"

namespace atolldb::test {
namespace {

TEST(FileText, OfAFileLongerThanOneReadIsWhole) {
  std::string path = "/tmp/atoll-text-XXXXXX";
  const UniqueFd file(mkstemp(path.data()));
  ASSERT_TRUE(file.is_open());
  std::string content;
  for (int i = 0; i < 3000; ++i) content += std::to_string(i) + '\n';
  ASSERT_EQ(write(file.get(), content.data(), content.size()),
            static_cast<ssize_t>(content.size()));
  EXPECT_EQ(file_text(path), content);
  std::remove(path.c_str());
  EXPECT_EQ(file_text(path), "");
}

TEST(FileText, OfAProcessThatEndsBeforeTheReadIsEmptyAndThrowsNothing) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const std::string path = "/proc/" + std::to_string(child) + "/stat";
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(file.is_open());
  ASSERT_TRUE(find_process(child));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(file_text(file.get()), "");
  EXPECT_FALSE(find_process(child));
}

}  // namespace
}  // namespace atolldb::test
