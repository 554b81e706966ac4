// Starting and stopping clusters of real processes.
#include "ops/cluster/cluster.h"
#include "ops/launcher/background.h"
#include "ops/launcher/run_folder.h"
#include "shared/memory/segment_file.h"
#include "shared/message/control_client.h"
#include "shared/process/run_paths.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb::test {
namespace {

TEST(LifeCycleTest, OneToFourNodesWithOneToFourWorkersStartAndStop) {
  TestFolder folder;
  for (const uint32_t nodes : {1u, 2u, 4u}) {
    for (const uint32_t workers : {1u, 4u}) {
      const Config config = folder.config("size", nodes, workers);
      auto cluster = Cluster::launch(config, LaunchMode::process, ATOLL_BIN_DIR);
      ASSERT_TRUE(cluster) << cluster.error().message;
      const auto status = (*cluster)->coordinator(ControlOperation::status, Json::object());
      ASSERT_TRUE(status) << status.error().message;
      EXPECT_EQ(status->at("state"), "running");
      ASSERT_EQ(status->at("nodes").size(), nodes);
      for (const Json& node : status->at("nodes")) {
        EXPECT_EQ(node.at("state"), "running");
        EXPECT_EQ(node.at("workers"), workers);
        EXPECT_GT(node.at("pool").at("free").get<uint64_t>(), 0u);
      }
      EXPECT_EQ(processes_of("size").size(), nodes + 1);
      const auto ended = (*cluster)->shutdown();
      EXPECT_TRUE(ended) << ended.error().message;
      EXPECT_TRUE(processes_of("size").empty());
      EXPECT_FALSE(std::filesystem::exists(config.cluster.run_dir));
    }
  }
  EXPECT_EQ(open_segments(), 0u);
}

TEST(LifeCycleTest, ASecondStartFailsAndNamesTheLivePid) {
  TestFolder folder;
  const Config config = folder.config("twice");
  auto first = Cluster::launch(config, LaunchMode::process, ATOLL_BIN_DIR);
  ASSERT_TRUE(first) << first.error().message;
  const auto second = Cluster::launch(config, LaunchMode::process, ATOLL_BIN_DIR);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ExitCode::already_running);
  EXPECT_NE(second.error().message.find(std::to_string(getpid())), std::string::npos)
      << second.error().message;
  // The refused start has not affected the running cluster.
  EXPECT_TRUE((*first)->coordinator(ControlOperation::status, Json::object()));
  EXPECT_TRUE((*first)->shutdown());
}

TEST(LifeCycleTest, TwoClustersRunSideBySide) {
  TestFolder folder;
  auto left = Cluster::launch(folder.config("left"), LaunchMode::process, ATOLL_BIN_DIR);
  auto right = Cluster::launch(folder.config("right"), LaunchMode::process, ATOLL_BIN_DIR);
  ASSERT_TRUE(left) << left.error().message;
  ASSERT_TRUE(right) << right.error().message;
  EXPECT_TRUE((*left)->create_storage("only_left", StorageType::mastertree));
  EXPECT_TRUE((*left)->shutdown());
  const auto storages = (*right)->coordinator(ControlOperation::storage_list, Json::object());
  ASSERT_TRUE(storages) << storages.error().message;
  EXPECT_TRUE(storages->at("storages").empty());
  EXPECT_TRUE((*right)->shutdown());
}

TEST(LifeCycleTest, ABackgroundLauncherRunsUntilItIsAskedToStop) {
  TestFolder folder;
  const Config config = folder.config("back");
  const auto started = start_background(config, {.binary_dir = ATOLL_BIN_DIR});
  ASSERT_TRUE(started) << started.error().message;
  const auto launcher = running_launcher(config);
  ASSERT_TRUE(launcher);
  EXPECT_NE(launcher->pid, getpid());
  const Json endpoints = Json::parse(read_text(endpoints_path(config)));
  EXPECT_EQ(endpoints.at("launcher_pid"), launcher->pid);
  EXPECT_EQ(endpoints.at("node_endpoints").size(), 2u);

  const auto again = start_background(config, {.binary_dir = ATOLL_BIN_DIR});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ExitCode::already_running);
  EXPECT_NE(again.error().message.find(std::to_string(launcher->pid)), std::string::npos);

  const auto pidfd = open_pidfd(launcher->pid);
  ASSERT_TRUE(pidfd);
  const auto down = ControlClient(endpoints.at("coordinator_endpoint"))
                        .call(ControlOperation::down, Json::object(), std::chrono::seconds(10));
  ASSERT_TRUE(down) << down.error().message;
  EXPECT_EQ(reap(launcher->pid), 0);
  EXPECT_TRUE(processes_of("back").empty());
  EXPECT_FALSE(std::filesystem::exists(config.cluster.run_dir));
}

TEST(LifeCycleTest, TheFolderOfTheProgramsMayBeRelative) {
  TestFolder folder;
  const Config config = folder.config("relative");
  const std::string programs = std::filesystem::relative(ATOLL_BIN_DIR);
  auto cluster = Cluster::launch(config, LaunchMode::process, programs);
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_TRUE((*cluster)->shutdown());
  const auto started = start_background(config, {.binary_dir = programs});
  ASSERT_TRUE(started) << started.error().message;
  const pid_t launcher = running_launcher(config)->pid;
  kill(launcher, SIGTERM);
  EXPECT_EQ(reap(launcher), 0);
}

TEST(LifeCycleTest, AStartThatCannotSucceedSaysWhyAndLeavesNothing) {
  TestFolder folder;
  Config config = folder.config("library");
  config.procedures.libraries = {folder.path() + "/missing.so"};
  auto cluster = Cluster::launch(config, LaunchMode::process, ATOLL_BIN_DIR);
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().code, ExitCode::config);
  EXPECT_NE(cluster.error().message.find("missing.so"), std::string::npos)
      << cluster.error().message;
  EXPECT_TRUE(processes_of("library").empty());

  config = folder.config("pages");
  config.memory.huge_pages = HugePages::require;
  // The pool needs a few more huge pages than this machine has reserved.
  config.memory.volatile_pool = (MemoryAvailable::detect().huge_pages + 32) * (uint64_t{2} << 20);
  cluster = Cluster::launch(config, LaunchMode::process, ATOLL_BIN_DIR);
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().code, ExitCode::resources);
  EXPECT_NE(cluster.error().message.find("sysctl"), std::string::npos) << cluster.error().message;
  EXPECT_FALSE(std::filesystem::exists(config.cluster.run_dir));

  config = folder.config("programs");
  cluster = Cluster::launch(config, LaunchMode::process, folder.path());
  ASSERT_FALSE(cluster);
  EXPECT_NE(cluster.error().message.find("atoll-coordinator"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(config.cluster.run_dir));
}

TEST(LifeCycleTest, AnIdleClusterUsesLessThanTwoPercentOfACore) {
  TestFolder folder;
  const Config config = folder.config("idle");
  ASSERT_TRUE(start_background(config, {.binary_dir = ATOLL_BIN_DIR}));
  const pid_t launcher = running_launcher(config)->pid;
  std::vector<pid_t> all = processes_of("idle");
  ASSERT_EQ(all.size(), 3u);
  all.push_back(launcher);
  const auto total_us = [&] {
    uint64_t sum = 0;
    for (const pid_t pid : all) sum += cpu_time_us(pid);
    return sum;
  };
  constexpr std::chrono::seconds kWindow{4};
  const uint64_t before = total_us();
  std::this_thread::sleep_for(kWindow);  // the measured idle time
  const uint64_t used = total_us() - before;
  const double percent = 100.0 * static_cast<double>(used) / (kWindow.count() * 1e6);
  std::printf("idle cluster: %.2f %% of a core\n", percent);
  EXPECT_LT(percent, 2.0);
  kill(launcher, SIGTERM);
  EXPECT_EQ(reap(launcher), 0);
}

TEST(LifeCycleTest, GarbageOnASocketIsDroppedAndTheClusterGoesOn) {
  TestFolder folder;
  const Config config = folder.config("garbage");
  auto cluster = Cluster::launch(config, LaunchMode::process, ATOLL_BIN_DIR);
  ASSERT_TRUE(cluster) << cluster.error().message;
  const auto unknown = ControlClient(config.control.endpoint)
                           .call_by_name("no.such.op", Json::object(), std::chrono::seconds(10));
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("no.such.op"), std::string::npos);
  const auto wrong = (*cluster)->call(0, ControlOperation::job_start, {{"name", 7}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ExitCode::usage);
  EXPECT_TRUE((*cluster)->coordinator(ControlOperation::status, Json::object()));
  EXPECT_TRUE((*cluster)->shutdown());
}

}  // namespace
}  // namespace atolldb::test
