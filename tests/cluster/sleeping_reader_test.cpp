// A procedure that sleeps after a cold read, beside cold reads of another worker (R57).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "ops/cli/running_cluster.h"
#include "shared/client/session_client.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ordered_bytes.h"
#include "tests/cluster/procedure_library.h"

namespace atolldb::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kCold = "cold";
constexpr size_t kColdValueBytes = 500;
constexpr uint64_t kColdKeys = 40'000;  // their values have several times the size of the cache

/// Input: a key, then the seconds to sleep within the transaction after its read.
constexpr const char* kSource = R"cpp(
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "soc/procedure/procedure.h"

  using namespace atolldb;

  static Status read_and_sleep(ProcedureContext& context) {
    StorageControl* storage = context.storage("cold", StorageType::mastertree);
    if (storage == nullptr) return Status::storage_not_found;
    if (context.input().size() != 16) return Status::invalid_argument;
    uint64_t seconds = 0;
    std::memcpy(&seconds, context.input().data() + 8, 8);
    std::array<std::byte, 500> value;
    uint32_t bytes = 0;
    const Status read = MasterTree(*storage).get(context.transaction(), context.input().first(8),
                                                 value.data(), value.size(), bytes);
    if (read == Status::ok) std::this_thread::sleep_for(std::chrono::seconds(seconds));
    return read;
  }

  constexpr Isolation kMode = Isolation::snapshot_read_only;
  ATOLL_PROCEDURE_LIBRARY({"read_and_sleep", read_and_sleep, nullptr, kMode});
)cpp";

std::array<std::byte, 16> input_of(uint64_t key, uint64_t seconds) {
  std::array<std::byte, 16> input;
  const std::array<std::byte, 8> bytes = ordered_bytes(key);
  std::memcpy(input.data(), bytes.data(), sizeof bytes);
  std::memcpy(input.data() + sizeof bytes, &seconds, sizeof seconds);
  return input;
}

class SleepingReaderTest : public testing::Test {
 protected:
  void fill(SessionClient& session) const {
    constexpr uint64_t kAtOnce = 100;
    std::array<std::byte, kColdValueBytes> value{};
    for (uint64_t first = 0; first < kColdKeys; first += kAtOnce) {
      KvRequest request;
      for (uint64_t key = first; key < first + kAtOnce; ++key) {
        request.put(kCold, ordered_bytes(key), value);
      }
      ASSERT_EQ(session.call("kv.txn", request.bytes()).status, Status::ok);
    }
  }

  TestFolder folder_;
  CliRunner runner_{folder_};
};

TEST_F(SleepingReaderTest, AProcedureThatSleepsAfterAColdReadDelaysNoOtherColdRead) {
  const uint64_t seconds = rounds(2, 30);
  const std::string source = folder_.path() + "/sleep.cpp";
  std::ofstream(source) << kSource;
  const std::string library = build_procedures(runner_, source, "sleep");
  ASSERT_FALSE(library.empty());
  Config config = folder_.config("sleeper", 1, 2);
  config.memory.volatile_pool = uint64_t{64} << 20;
  config.memory.snapshot_cache = uint64_t{4} << 20;
  config.procedures.libraries = {library};
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  cli::RunningCluster cluster(config);
  ASSERT_TRUE(cluster.create_storage(kCold, StorageType::mastertree, kColdValueBytes));
  auto connected = cluster.connect_session(0);
  ASSERT_TRUE(connected) << connected.error().message;
  SessionClient& session = **connected;
  ASSERT_NO_FATAL_FAILURE(fill(session));
  ASSERT_TRUE(cluster.coordinator(ControlOperation::snapshot_take, {}, Cluster::kDefaultTimeout));

  // A worker runs one request at a time, so the sleeping procedure occupies worker 0.
  const auto begin = Clock::now();
  const auto ticket =
      session.submit("read_and_sleep", input_of(kColdKeys / 2, seconds), {.worker = 0});
  ASSERT_TRUE(ticket);
  std::mt19937_64 random(seed());
  Clock::duration longest{};
  uint64_t reads = 0;
  std::optional<SessionReply> sleeper;
  while (!(sleeper = session.poll(*ticket))) {
    const auto asked = Clock::now();
    const SessionReply reply =
        session.call("read_and_sleep", input_of(random() % kColdKeys, 0), {.worker = 1});
    ASSERT_EQ(reply.status, Status::ok) << reply.message;
    longest = std::max(longest, Clock::now() - asked);
    ++reads;
  }
  const auto slept = Clock::now() - begin;
  std::printf("%lu cold reads in %.1f s, the longest %.1f ms\n", reads,
              std::chrono::duration<double>(slept).count(),
              std::chrono::duration<double, std::milli>(longest).count());
  EXPECT_EQ(sleeper->status, Status::ok) << sleeper->message;
  EXPECT_GE(slept, std::chrono::seconds(seconds)) << "it did not sleep";
  EXPECT_GT(reads, 2 * config.memory.snapshot_cache / 4096) << "the cache was not used up";
  // If a reader had to wait for a frame of the sleeper's round, it would wait until the sleeper
  // ends.
  EXPECT_LT(longest, std::chrono::seconds(1));
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
}

}  // namespace
}  // namespace atolldb::test
