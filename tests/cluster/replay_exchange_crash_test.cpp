// Kills during the exchange of a replay (R100), with real processes. A preloaded library stops each
// node when it is about to read what another node has given to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "ops/cli/running_cluster.h"
#include "shared/client/session_client.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/preloaded_library.h"
#include "tests/support/eventually.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// While the file named by the variable ATOLL_TEST_HOLD exists, a process that opens a given file
/// for reading waits. It makes a file beside that one, with its process id at the end of the name.
constexpr const char* kHoldLibrary = R"(
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
namespace {
void hold(const char* path, int flags) {
  const char* flag = std::getenv("ATOLL_TEST_HOLD");
  if (flag == nullptr || (flags & O_ACCMODE) != O_RDONLY) return;
  if (std::strstr(path, "/run_") == nullptr || std::strstr(path, ".tmp") == nullptr) return;
  if (access(flag, F_OK) != 0) return;
  char reached[4096];
  std::snprintf(reached, sizeof reached, "%s.%d", flag, static_cast<int>(getpid()));
  if (FILE* file = std::fopen(reached, "we")) std::fclose(file);
  while (access(flag, F_OK) == 0) usleep(2000);
}
using Open = int (*)(const char*, int, ...);
int call(const char* name, const char* path, int flags, va_list arguments) {
  const auto real = reinterpret_cast<Open>(dlsym(RTLD_NEXT, name));
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  hold(path, flags);
  return real(path, flags, mode);
}
}
extern "C" int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int file = call("open", path, flags, arguments);
  va_end(arguments);
  return file;
}
extern "C" int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int file = call("open64", path, flags, arguments);
  va_end(arguments);
  return file;
}
)";

constexpr uint32_t kNumbers = 200;
constexpr uint32_t kNumberBytes = 16;

class ReplayExchangeCrash : public testing::Test {
 protected:
  ReplayExchangeCrash() {
    config_.durability.mode = DurabilityMode::durable;
    config_.durability.scheme = DurabilityScheme::silor;
    config_.durability.checkpoint_interval = std::chrono::milliseconds(0);
    config_.cluster.restart = RestartPolicy::never;
    config_.nodes[1].directories = {folder_.path() + "/a", folder_.path() + "/b"};
    std::ofstream(file_) << to_toml(config_);
  }

  cli::RunningCluster cluster() const { return cli::RunningCluster(config_); }
  void create_storages() const {
    const auto numbers =
        cluster().create_storage("numbers", StorageType::array, kNumberBytes, kNumbers);
    ASSERT_TRUE(numbers) << numbers.error().message;
    const auto heap = cluster().create_storage("heap", StorageType::sequential, 0);
    ASSERT_TRUE(heap) << heap.error().message;
  }
  /// Each node changes parts of numbers, and appends to the heap.
  void write() {
    for (uint32_t node = 0; node < config_.nodes.size(); ++node) {
      auto session = SessionClient::connect(config_.cluster.run_dir, node);
      ASSERT_TRUE(session) << session.error().message;
      for (int i = 0; i < 20; ++i) write(**session);
    }
  }
  void write(SessionClient& session) {
    KvRequest request;
    for (int i = 0; i < 20; ++i) {
      const size_t index = random_() % kNumbers;
      const auto offset = static_cast<uint32_t>(random_() % (kNumberBytes - 4));
      const auto value = static_cast<uint32_t>(random_());
      const auto bytes = std::as_bytes(std::span(&value, 1));
      request.put("numbers", ordered_index_key(index), bytes, offset);
      std::ranges::copy(bytes, numbers_[index].begin() + offset);
    }
    request.append("heap", kv_bytes("appended"));
    ++appended_;
    const SessionReply reply = session.call("kv.txn", request.bytes());
    ASSERT_EQ(reply.status, Status::ok) << reply.message;
  }
  void expect_numbers() const {
    auto session = SessionClient::connect(config_.cluster.run_dir, 0);
    ASSERT_TRUE(session) << session.error().message;
    for (size_t index = 0; index < kNumbers; ++index) {
      KvRequest request;
      request.get("numbers", ordered_index_key(index));
      const SessionReply reply = (*session)->call("kv.txn", request.bytes());
      const auto results = read_kv_reply(reply.output, request.bytes());
      ASSERT_TRUE(reply.status == Status::ok && results) << reply.message;
      ASSERT_TRUE(std::ranges::equal(results->front().value, numbers_[index])) << index;
    }
  }
  /// The metadata of a checkpoint have the number of its records.
  void expect_appends() const {
    const auto taken =
        cluster().coordinator(ControlOperation::checkpoint_take, {}, Cluster::kDefaultTimeout);
    ASSERT_TRUE(taken) << taken.error().message;
    const auto heap = cluster().coordinator(ControlOperation::storage_describe, {{"name", "heap"}},
                                            Cluster::kDefaultTimeout);
    ASSERT_TRUE(heap) << heap.error().message;
    EXPECT_EQ(heap->at("checkpoint").at("records"), appended_);
  }

  /// Returns the number of files of given records of all nodes.
  size_t given_files() const {
    size_t count = 0;
    const auto entries = std::filesystem::recursive_directory_iterator(folder_.path());
    for (const auto& entry : entries) {
      const std::string name = entry.path().filename();
      count += name.starts_with("run_") && name.ends_with(".tmp") ? 1 : 0;
    }
    return count;
  }
  void expect_dead(LauncherProcess& launcher) const {
    launcher.wait();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  }
  /// Runs a cluster, writes, and kills all its processes.
  void write_and_crash() {
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running") << last_failure(config_);
    create_storages();
    write();
    kill(launcher.pid(), SIGKILL);
    expect_dead(launcher);
  }
  /// Runs a cluster that recovers, and checks what is in it. It keeps no checkpoint, so the next
  /// start replays the same log.
  void expect_recovers() const {
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running") << last_failure(config_);
    EXPECT_EQ(given_files(), 0u);
    expect_numbers();
    kill(launcher.pid(), SIGTERM);
    EXPECT_EQ(launcher.wait(), 0);
  }
  /// Starts the cluster, and returns when both nodes are in the exchange.
  void await_exchange() const {
    std::ofstream(hold_) << "held";
    const auto is_held = [&](const char* role) {
      const auto found = processes_of(config_.cluster.name, role);
      return found.size() == 1 &&
             std::filesystem::exists(hold_ + "." + std::to_string(found.front()));
    };
    ASSERT_TRUE(eventually([&] { return is_held("node0") && is_held("node1"); }));
    EXPECT_GE(given_files(), 2u);
  }
  void release() const { std::filesystem::remove(hold_); }

  TestFolder folder_;
  CliRunner runner_{folder_};
  Config config_ = folder_.config("exchange");
  std::string file_ = folder_.path() + "/exchange.toml";
  std::string hold_ = folder_.path() + "/hold";
  PreloadedLibrary library_{runner_, kHoldLibrary, "ATOLL_TEST_HOLD", hold_};
  std::mt19937_64 random_{seed()};
  std::vector<std::array<std::byte, kNumberBytes>> numbers_{kNumbers};
  uint64_t appended_ = 0;
};

TEST_F(ReplayExchangeCrash, ANodeOrAllAreKilledAndTheNextStartHasEverything) {
  ASSERT_NO_FATAL_FAILURE(write_and_crash());
  for (const std::string victim : {"node1", "node0", "coordinator", "launcher"}) {
    SCOPED_TRACE(victim);
    LauncherProcess launcher(config_);
    ASSERT_NO_FATAL_FAILURE(await_exchange());
    const bool is_all = victim == "launcher";  // all other processes end with it
    const auto found = processes_of(config_.cluster.name, victim);
    ASSERT_EQ(found.size(), is_all ? 0u : 1u);
    kill(is_all ? launcher.pid() : found.front(), SIGKILL);
    expect_dead(launcher);
    EXPECT_GE(given_files(), 1u) << "the kill came after the exchange";
    release();
    ASSERT_NO_FATAL_FAILURE(expect_recovers());
  }
  LauncherProcess launcher(config_);
  ASSERT_EQ(launcher.next_line(), "running") << last_failure(config_);
  expect_numbers();
  expect_appends();
}

TEST_F(ReplayExchangeCrash, TheExchangeIsShownWithoutAPercentage) {
  ASSERT_NO_FATAL_FAILURE(write_and_crash());
  LauncherProcess launcher(config_);
  ASSERT_NO_FATAL_FAILURE(await_exchange());
  const Ran status = runner_.atoll({"status", "-c", file_});
  EXPECT_NE(status.out.find("now exchanging and applying updates"), std::string::npos)
      << status.out << status.error;
  EXPECT_EQ(status.out.find("100 %"), std::string::npos) << status.out;
  // The text for refused requests follows with the next heartbeat.
  std::string refused;
  EXPECT_TRUE(eventually([&] {
    const auto taken =
        cluster().coordinator(ControlOperation::checkpoint_take, {}, Cluster::kDefaultTimeout);
    refused = taken ? "" : taken.error().message;
    return refused.find("the checkpoint and the log are read") != std::string::npos;
  })) << refused;
  EXPECT_EQ(refused.find('%'), std::string::npos) << refused;
  release();
  ASSERT_EQ(launcher.next_line(), "running") << last_failure(config_);
  expect_numbers();
  expect_appends();
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
}

}  // namespace
}  // namespace atolldb::test
