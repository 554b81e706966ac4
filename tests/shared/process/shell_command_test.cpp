// Commands of the user: their end, their limit of time, and what they inherit.
#include "shared/process/shell_command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace atolldb {
namespace {

constexpr std::chrono::seconds kLong{60};

TEST(ShellCommand, SucceedsWithExitCodeZeroOnly) {
  EXPECT_TRUE(run_shell_command("true", kLong, {}));
  const auto failed = run_shell_command("exit 7", kLong, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "the command ended with exit code 7");
  const auto killed = run_shell_command("kill -9 $$", kLong, {});
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().message, "the command was killed by SIGKILL");
  const auto missing = run_shell_command("/there/is/no/such/program 2>/dev/null", kLong, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "the command ended with exit code 127");
}

TEST(ShellCommand, IsKilledWithItsChildrenAfterItsTime) {
  const auto begun = std::chrono::steady_clock::now();
  const auto late = run_shell_command("sleep 600 & sleep 600", std::chrono::milliseconds(300), {});
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kLong);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ExitCode::failed);
  EXPECT_EQ(late.error().message, "the command was killed after 300ms");
}

TEST(ShellCommand, EndsWhenItIsCancelled) {
  std::atomic<int> asked{0};
  const auto cancelled = run_shell_command("sleep 600", kLong, [&] { return ++asked > 2; });
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, ExitCode::not_running);
}

TEST(ShellCommand, InheritsNoDescriptorButItsOutput) {
  const int leak = open("/dev/null", O_RDONLY);  // not close-on-exec
  ASSERT_GE(leak, 3);
  const std::string number = std::to_string(leak);
  EXPECT_FALSE(run_shell_command("test -e /proc/self/fd/" + number, kLong, {}));
  EXPECT_TRUE(run_shell_command("test -e /proc/self/fd/1", kLong, {}));
  close(leak);
}

}  // namespace
}  // namespace atolldb
