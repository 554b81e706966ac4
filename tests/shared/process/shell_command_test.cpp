// Commands of the user: their end, their limit of time, their output, and what they inherit. No
// process of a command survives if the command is killed, or if the process that runs the command
// is killed.
#include "shared/process/shell_command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "shared/base/process_id.h"
#include "shared/process/output_tail.h"

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

TEST(ShellCommand, ThatFailsSaysTheEndOfItsOutput) {
  const auto failed = run_shell_command("echo one; echo two >&2; exit 3", kLong, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "the command ended with exit code 3, and wrote: one two");
  const auto late = run_shell_command("echo begun; sleep 600", std::chrono::milliseconds(300), {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message, "the command was killed after 300ms, and wrote: begun");
}

TEST(ShellCommand, MayWriteMoreThanAPipeAndAMessageHold) {
  const std::string many = "head -c 5000000 /dev/zero | tr '\\0' x";
  EXPECT_TRUE(run_shell_command(many, kLong, {}));
  const auto failed = run_shell_command(many + "; echo END; exit 3", kLong, {});
  ASSERT_FALSE(failed);
  const std::string begin = "the command ended with exit code 3, and wrote: ...xxx";
  EXPECT_TRUE(failed.error().message.starts_with(begin)) << failed.error().message;
  EXPECT_TRUE(failed.error().message.ends_with("xxxEND"));
  EXPECT_LE(failed.error().message.size(), begin.size() + kCommandOutputBytes);
}

TEST(ShellCommand, ThatLeavesAProcessWithItsOutputBehindEnds) {
  EXPECT_TRUE(run_shell_command("sleep 5 & exit 0", kLong, {}));
}

TEST(ShellCommand, IsNoProcessOfTheClusterInAListOfProcesses) {
  const auto failed =
      run_shell_command("cat /proc/$PPID/cmdline /proc/$PPID/comm; exit 3", kLong, {});
  ASSERT_FALSE(failed);
  const std::string message = failed.error().message;
  EXPECT_NE(message.find("wrote: command-guard"), std::string::npos) << message;
  EXPECT_EQ(message.find("shell_command"), std::string::npos) << message;
}

/// A command with processes in its group, in another group, and in another session. Each writes its
/// id to a file and sleeps.
class ShellCommandTree : public testing::Test {
 protected:
  ShellCommandTree() {
    std::string pattern = (std::filesystem::temp_directory_path() / "atoll_tree_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~ShellCommandTree() override {
    for (const ProcessId& process : processes_) kill(process.pid, SIGKILL);
    std::filesystem::remove_all(folder_);
  }

  std::string command() const {
    const auto sleeper = [&](const char* name) {
      return "sh -c 'echo $$ > " + folder_ + "/" + name + ".new; mv " + folder_ + "/" + name +
             ".new " + folder_ + "/" + name + "; exec sleep 600'";
    };
    return sleeper("child") + " & timeout 600 " + sleeper("group") + " & setsid " +
           sleeper("session") + " & wait";
  }
  /// Waits until all processes of the command sleep.
  void await_processes() {
    for (const char* name : {"child", "group", "session"}) {
      pid_t pid = 0;
      while (!(std::ifstream(folder_ + "/" + name) >> pid)) std::this_thread::yield();
      const auto found = find_process(pid);
      ASSERT_TRUE(found) << name;
      processes_.push_back(*found);
    }
  }
  bool is_any_alive() const {
    for (const ProcessId& process : processes_) {
      if (is_alive(process)) return true;
    }
    return false;
  }

  std::string folder_;
  std::vector<ProcessId> processes_;
};

TEST_F(ShellCommandTree, DiesWhenItIsCancelled) {
  std::atomic<bool> is_cancelled{false};
  // Relaxed: nothing else depends on it.
  const auto is_asked_to_end = [&] { return is_cancelled.load(std::memory_order_relaxed); };
  std::thread thread([&] {
    const auto ended = run_shell_command(command(), kLong, is_asked_to_end);
    EXPECT_FALSE(ended);
  });
  await_processes();
  EXPECT_TRUE(is_any_alive());
  is_cancelled.store(true, std::memory_order_relaxed);
  thread.join();
  EXPECT_FALSE(is_any_alive());
}

TEST_F(ShellCommandTree, DiesWithTheProcessThatRunsIt) {
  const pid_t parent = fork();
  if (parent == 0) {
    static_cast<void>(run_shell_command(command(), std::chrono::hours(1), {}));
    _exit(0);
  }
  await_processes();
  EXPECT_TRUE(is_any_alive());
  kill(parent, SIGKILL);
  EXPECT_EQ(describe_exit(reap(parent)), "was killed by SIGKILL");
  // The guard is no child of the test, so the test cannot reap it. The test waits until the
  // processes have ended.
  const auto give_up = std::chrono::steady_clock::now() + kLong;
  while (is_any_alive() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_FALSE(is_any_alive());
}

}  // namespace
}  // namespace atolldb
