// A device that does not answer, with real processes (R58). A preloaded library delays fdatasync of
// selected files for as long as the test wants.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"
#include "tests/cluster/preloaded_library.h"

namespace atolldb::test {
namespace {

/// Source of the preloaded library. While the file named by the variable ATOLL_TEST_HANG exists,
/// syncs of paths that contain the text of this file do not return.
constexpr const char* kLibrary = R"(
#include <dlfcn.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
extern "C" int fdatasync(int fd) {
  static const auto real = reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, "fdatasync"));
  const char* flag = std::getenv("ATOLL_TEST_HANG");
  for (;; usleep(5000)) {
    FILE* file = flag == nullptr ? nullptr : std::fopen(flag, "re");
    if (file == nullptr) return real(fd);
    char wanted[256] = {};
    const bool is_read = std::fgets(wanted, sizeof wanted, file) != nullptr;
    std::fclose(file);
    char link[64];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    char path[4096] = {};
    if (readlink(link, path, sizeof path - 1) < 0) return real(fd);
    if (!is_read || std::strstr(path, wanted) == nullptr) return real(fd);
  }
}
)";

class DeviceHang : public testing::TestWithParam<DurabilityScheme> {
 protected:
  Config config(const std::string& name) const {
    Config config = folder_.config(name);
    config.durability.mode = DurabilityMode::durable;
    config.durability.scheme = GetParam();
    // Checkpoints would delete log that a test reads.
    config.durability.checkpoint_interval = std::chrono::milliseconds(0);
    config.durability.device_hang_limit = std::chrono::milliseconds(300);
    return config;
  }
  /// From now on, syncs of files whose path contains `part` hang.
  void hang(const std::string& part) const {
    std::ofstream(flag_ + ".new") << part;
    std::filesystem::rename(flag_ + ".new", flag_);
  }
  void answer() const { std::filesystem::remove(flag_); }
  nlohmann::json hangs(const std::string& file) {
    const Ran ran = runner_.atoll({"status", "--json", "-c", file});
    return nlohmann::json::parse(ran.out, nullptr, false).value("device_hangs", nlohmann::json());
  }

  TestFolder folder_;
  CliRunner runner_{folder_};
  std::string flag_ = folder_.path() + "/hang";
  PreloadedLibrary library_{runner_, kLibrary, "ATOLL_TEST_HANG", flag_};
};

INSTANTIATE_TEST_SUITE_P(Schemes, DeviceHang,
                         testing::Values(DurabilityScheme::gleaned, DurabilityScheme::silor),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(DeviceHang, IsReportedWithinItsLimitAndTheClusterGoesOnAfterwards) {
  const Config config = this->config("hanging");
  const std::string file = folder_.path() + "/hanging.toml";
  std::ofstream(file) << to_toml(config);
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  ASSERT_TRUE(create_ledger(config));
  EXPECT_EQ(hangs(file), nlohmann::json::array());
  LedgerClients clients(config, folder_.path(), seed());
  ASSERT_TRUE(eventually([&] { return clients.has_written(1, 10'000); }));
  const auto begun = std::chrono::steady_clock::now();
  hang("/node1/log_");
  ASSERT_TRUE(eventually([&] { return !hangs(file).empty(); }));
  const auto took = std::chrono::steady_clock::now() - begun;
  std::printf("reported after %.2f s\n", std::chrono::duration<double>(took).count());
  const nlohmann::json told = hangs(file);
  ASSERT_EQ(told.size(), 1u) << told.dump();
  EXPECT_EQ(told[0]["process"], "node1");
  const std::string text = told[0]["text"];
  EXPECT_TRUE(text.starts_with("device hangs: sync on ")) << text;
  EXPECT_TRUE(text.contains("/node1/log_")) << text;
  EXPECT_TRUE(text.ends_with("(limit 300ms)")) << text;
  const Ran status = runner_.atoll({"status", "-c", file});
  EXPECT_TRUE(status.out.contains("what is wrong: node1: device hangs: sync on ")) << status.out;
  // In the long form the device hangs for a minute. The report stays all this time.
  std::this_thread::sleep_for(std::chrono::seconds(rounds(0, 60)));
  EXPECT_EQ(hangs(file).size(), 1u);
  EXPECT_FALSE(launcher.has_ended());
  answer();
  EXPECT_TRUE(eventually([&] { return hangs(file) == nlohmann::json::array(); }));
  const uint64_t before = std::filesystem::file_size(clients.file(1));
  EXPECT_TRUE(eventually([&] { return clients.has_written(1, before + 10'000); }));
  clients.stop();
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(WEXITSTATUS(launcher.wait()), 0);
}

TEST_P(DeviceHang, EndsTheClusterWithCode8IfSoConfigured) {
  Config config = this->config("stopping");
  config.durability.on_device_hang = atolldb::DeviceHang::stop;
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  ASSERT_TRUE(create_ledger(config));
  LedgerClients clients(config, folder_.path(), seed());
  ASSERT_TRUE(eventually([&] { return clients.has_written(1, 10'000); }));
  hang("/node1/log_");
  const int status = launcher.wait();
  EXPECT_EQ(WEXITSTATUS(status), 8);
  clients.join();
  const std::string message = last_failure(config);
  EXPECT_TRUE(message.contains("device hangs: sync on ")) << message;
  EXPECT_TRUE(eventually([&] { return processes_of(config.cluster.name).empty(); }));
  answer();
  EXPECT_GT(expect_log_keeps(config, clients.ledger()), 0u);
}

TEST_P(DeviceHang, OfTheCoordinatorIsReportedToo) {
  const Config config = this->config("coordinating");
  const std::string file = folder_.path() + "/coordinating.toml";
  std::ofstream(file) << to_toml(config);
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  hang("/coordinator/ddl_");
  std::jthread creator([&] { EXPECT_TRUE(create_ledger(config)); });
  ASSERT_TRUE(eventually([&] { return !hangs(file).empty(); }));
  const nlohmann::json told = hangs(file);
  EXPECT_EQ(told[0]["process"], "coordinator") << told.dump();
  answer();
  creator.join();
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(WEXITSTATUS(launcher.wait()), 0);
}

}  // namespace
}  // namespace atolldb::test
