// Processes: liveness, exit descriptions, death with the parent, and the handover channel.
#include <gtest/gtest.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "shared/base/process_id.h"
#include "shared/process/child_process.h"
#include "shared/process/handover.h"
#include "shared/process/line_channel.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

TEST(ProcessTest, AProcessIsAliveUntilItEndsAndItsNumberAloneProvesNothing) {
  const pid_t pid = fork();
  if (pid == 0) {
    pause();
    _exit(0);
  }
  const auto id = find_process(pid);
  ASSERT_TRUE(id);
  EXPECT_TRUE(is_alive(*id));
  EXPECT_FALSE(is_alive({pid, id->start_time + 1}));
  const auto pidfd = open_pidfd(pid);
  ASSERT_TRUE(pidfd);
  EXPECT_TRUE(send_signal(*pidfd, SIGKILL));
  pollfd ended{pidfd->get(), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 30'000), 1);
  EXPECT_FALSE(is_alive(*id));  // a zombie is not alive
  EXPECT_EQ(describe_exit(reap(pid)), "was killed by SIGKILL");
  EXPECT_FALSE(is_alive(*id));
}

/// The kernel needs a while to free much memory. This thread may get no processor in that time, so
/// there are several attempts.
TEST(ProcessTest, AKilledProcessIsEndingWhileTheKernelFreesItsMemory) {
  constexpr size_t kBytes = size_t{256} << 20;
  bool was_ending = false;
  for (int attempt = 0; attempt < 20 && !was_ending; ++attempt) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t self = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
      const void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
      const bool is_ready = die_with_parent(self) && memory != MAP_FAILED;
      if (is_ready && write(pipe_ends[1], "y", 1) == 1) pause();
      _exit(0);
    }
    close(pipe_ends[1]);
    char ready = 0;
    ASSERT_EQ(read(pipe_ends[0], &ready, 1), 1);
    const auto id = find_process(pid);
    ASSERT_TRUE(id);
    EXPECT_FALSE(is_ending(*id));
    kill(pid, SIGKILL);
    while (is_alive(*id)) was_ending = was_ending || is_ending(*id);
    EXPECT_FALSE(is_ending(*id));
    reap(pid);
    close(pipe_ends[0]);
  }
  EXPECT_TRUE(was_ending);
}

TEST(ProcessTest, AChildDiesWithItsParent) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t self = getpid();
    const pid_t child = fork();
    if (child == 0) {
      const bool armed = die_with_parent(self);
      [[maybe_unused]] const ssize_t put = write(pipe_ends[1], armed ? "y" : "n", 1);
      pause();
      _exit(0);
    }
    pause();
    _exit(0);
  }
  close(pipe_ends[1]);
  char armed = 0;
  ASSERT_EQ(read(pipe_ends[0], &armed, 1), 1);
  EXPECT_EQ(armed, 'y');
  kill(parent, SIGKILL);
  reap(parent);
  // The end of file comes when the grandchild, which is the last writer, has died.
  EXPECT_EQ(read(pipe_ends[0], &armed, 1), 0);
  close(pipe_ends[0]);
}

TEST(ProcessTest, AChildWhoseParentIsGoneAlreadyIsTold) {
  const pid_t child = fork();
  if (child == 0) _exit(die_with_parent(1 << 22) ? 1 : 0);
  EXPECT_EQ(reap(child), 0);
}

TEST(ProcessTest, AThreadIsFirstOrLastAtDevices) {
  constexpr int kWhoProcess = 1;
  const auto priority = [] { return syscall(SYS_ioprio_get, kWhoProcess, 0); };
  const long of_test = priority();
  if (of_test < 0) GTEST_SKIP() << "this system has no priorities for devices";
  std::thread([&] {
    set_io_priority(IoPriority::first);
    const bool is_root = geteuid() == 0;  // may lack the right in a container
    EXPECT_TRUE(priority() == 2 << 13 || (is_root && priority() == 1 << 13)) << priority();
    set_io_priority(IoPriority::last);
    EXPECT_EQ(priority(), 3 << 13);
  }).join();
  EXPECT_EQ(priority(), of_test) << "of the thread only";
}

TEST(ProcessTest, APromptThreadKeepsItsPolicyAndPriorityAndGetsAShortSlice) {
  struct {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns;
    uint64_t deadline_ns;
    uint64_t period_ns;
  } before{}, after{};
  std::thread([&] {
    ASSERT_EQ(syscall(SYS_sched_getattr, 0, &before, sizeof before, 0), 0);
    become_prompt_thread();
    ASSERT_EQ(syscall(SYS_sched_getattr, 0, &after, sizeof after, 0), 0);
  }).join();
  EXPECT_EQ(after.policy, before.policy);
  EXPECT_EQ(after.nice, before.nice);
  // Kernels before 6.12 report no slice of ordinary threads.
  EXPECT_EQ(after.runtime_ns, before.runtime_ns == 0 ? 0u : 100'000u);
}

TEST(LineChannelTest, LinesArriveWholeAndInOrder) {
  auto channel = make_channel();
  ASSERT_TRUE(channel);
  LineReader reader(channel->first.get());
  EXPECT_TRUE(send_line(channel->second.get(), "one"));
  EXPECT_TRUE(send_line(channel->second.get(), "two\nlines"));
  ASSERT_EQ(::write(channel->second.get(), "par", 3), 3);
  EXPECT_EQ(reader.read(), (std::vector<std::string>{"one", "two lines"}));
  ASSERT_EQ(::write(channel->second.get(), "tial\n", 5), 5);
  EXPECT_EQ(reader.read(), (std::vector<std::string>{"partial"}));
  EXPECT_FALSE(reader.is_closed());
  channel->second.reset();
  EXPECT_TRUE(reader.read().empty());
  EXPECT_TRUE(reader.is_closed());
  EXPECT_FALSE(send_line(channel->first.get(), "no reader"));  // no SIGPIPE is raised
}

TEST(ChildLoopTest, AProcessWithTooFewDescriptorsReportsItAndEnds) {
  auto channel = make_channel();
  ASSERT_TRUE(channel);
  const pid_t child = fork();
  if (child == 0) {
    Handover handover;
    handover.channel_fd = channel->second.get();
    Logger logger = make_silent_logger("child");
    ChildSteps steps;
    const auto unexpected = [] { _exit(99); };
    steps.prepare = [=]() -> Result<void> { return unexpected(), Result<void>(); };
    steps.attach = steps.prepare;
    steps.start = [=]() -> Result<std::string> { return unexpected(), std::string(); };
    steps.open = [=](const std::string&) -> Result<void> { return unexpected(), Result<void>(); };
    steps.drain = unexpected;
    steps.stop = unexpected;
    // The open descriptors stay open, and no further one can be opened.
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) _exit(98);
    _exit(static_cast<int>(
        run_child(handover, std::chrono::milliseconds(10), std::move(logger), std::move(steps))));
  }
  EXPECT_EQ(describe_exit(reap(child)), describe_exit(static_cast<int>(ExitCode::resources) << 8));
  LineReader reader(channel->first.get());
  const auto lines = reader.read();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("failed: ")) << lines[0];
  EXPECT_NE(lines[0].find("raise `ulimit -n`"), std::string::npos) << lines[0];
}

TEST(HandoverTest, AChildReadsWhatTheLauncherWrote) {
  Handover handover;
  handover.role = "node3";
  handover.node = 3;
  handover.launcher_pid = 77;
  handover.cluster_uuid[1] = ~uint64_t{0};
  handover.config_text = "[cluster]\nname = \"x\"\n";
  handover.restarts = 4;
  handover.segments = {{"control", 5}};
  const auto fd = write_handover(handover);
  ASSERT_TRUE(fd);
  const auto read = read_handover(fd->get());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->role, "node3");
  EXPECT_EQ(read->cluster_uuid[1], ~uint64_t{0});
  EXPECT_EQ(read->restarts, 4u);
  EXPECT_EQ(read->config_text, handover.config_text);
  EXPECT_EQ(read->segments, handover.segments);
  EXPECT_FALSE(read_handover(-1));
}

TEST(LargeBlocks, ReturnToTheSystemAgainAndAgain) {
  if (mallinfo2().uordblks == 0) GTEST_SKIP() << "malloc is not that of glibc";
  return_large_blocks();
  const size_t before = mallinfo2().hblks;
  // By default, the first of these blocks would raise the threshold above the later ones.
  for (int turn = 0; turn < 3; ++turn) {
    void* const block = std::malloc(2 * size_t{kLargeBlockBytes});
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(mallinfo2().hblks, before + 1) << turn;
    std::free(block);
  }
  EXPECT_EQ(mallinfo2().hblks, before);
}

}  // namespace
}  // namespace atolldb
