// Thread mode: nodes and coordinator in one process, so that ThreadSanitizer can check them.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/array/array.h"
#include "engine/mastertree/mastertree.h"
#include "ops/cluster/cluster.h"
#include "soc/procedure/procedure.h"
#include "tests/support/procedure_call.h"

namespace atolldb {
namespace {

Status echo(ProcedureContext& context) {
  context.set_output(context.input());
  return Status::ok;
}
Status throwing(ProcedureContext&) { throw std::runtime_error("planted"); }
Status returns_garbage(ProcedureContext&) { return static_cast<Status>(200); }
Status endless(ProcedureContext& context) {
  while (context.transaction().check() == Status::ok) std::this_thread::yield();
  return context.transaction().check();
}
/// Adds one to record 0 of the array "counter".
Status increment(ProcedureContext& context) {
  StorageControl* storage = context.storage("counter", StorageType::array);
  if (storage == nullptr) return Status::storage_not_found;
  const Array array(*storage);
  uint64_t value = 0;
  Status status = array.get(context.transaction(), 0, &value);
  if (status != Status::ok) return status;
  ++value;
  return array.update(context.transaction(), 0, 0, sizeof(value), &value);
}
Result<std::string> increment_often(JobContext& context) {
  StorageControl* storage = context.storage("counter", StorageType::array);
  if (storage == nullptr) return make_error(ExitCode::failed, "no counter");
  const Array array(*storage);
  const int times = std::stoi(std::string(context.input()));
  for (int i = 0; i < times; ++i) {
    const Status status =
        run(context.transaction(), context.backoff(), kMaxEpoch, [&](Transaction& txn) {
          uint64_t value = 0;
          const Status got = array.get(txn, 0, &value);
          if (got != Status::ok) return got;
          ++value;
          return array.update(txn, 0, 0, sizeof(value), &value);
        });
    if (status != Status::ok) return make_error(ExitCode::failed, std::string(to_string(status)));
  }
  return std::to_string(times);
}
Result<std::string> until_stopped(JobContext& context) {
  while (!context.should_stop()) std::this_thread::yield();
  return std::string("stopped");
}
Result<std::string> fill_tree(JobContext& context) {
  MasterTree tree(*context.storage("tree", StorageType::mastertree));
  const std::vector<std::byte> payload(100, std::byte{7});
  for (uint64_t i = 0; i < 5000; ++i) {
    const auto key = ordered_key(i * 4 + context.node());
    const Status status = run(context.transaction(), context.backoff(), kMaxEpoch,
                              [&](Transaction& txn) { return tree.insert(txn, key, payload); });
    if (status != Status::ok) return make_error(ExitCode::failed, std::string(to_string(status)));
  }
  return std::string("filled");
}

ATOLL_REGISTER_PROCEDURE(echo_entry, "test.echo", echo);
ATOLL_REGISTER_PROCEDURE(throwing_entry, "test.throw", throwing);
ATOLL_REGISTER_PROCEDURE(garbage_entry, "test.garbage", returns_garbage);
ATOLL_REGISTER_PROCEDURE(endless_entry, "test.endless", endless);
ATOLL_REGISTER_PROCEDURE(increment_entry, "test.increment", increment);
ATOLL_REGISTER_JOB(increment_often_entry, "test.increment_often", increment_often);
ATOLL_REGISTER_JOB(until_stopped_entry, "test.until_stopped", until_stopped);
ATOLL_REGISTER_JOB(fill_tree_entry, "test.fill_tree", fill_tree);

/// Starts a cluster without a log, or with a log in `data_dir` if that is given.
std::unique_ptr<Cluster> launch(uint32_t nodes, uint32_t workers,
                                const std::string& data_dir = "") {
  Config config = default_config();
  config.durability.mode = data_dir.empty() ? DurabilityMode::off : DurabilityMode::durable;
  if (!data_dir.empty()) config.cluster.data_dir = data_dir;
  config.durability.log_file_size = uint64_t{1} << 20;
  config.nodes.assign(nodes, NodeConfig{});
  for (NodeConfig& node : config.nodes) node.workers = workers;
  config.memory.volatile_pool = uint64_t{16} << 20;
  config.memory.log_buffer = uint64_t{2} << 20;
  config.memory.exchange = uint64_t{2} << 20;
  config.procedures.time_limit = std::chrono::milliseconds(200);
  auto cluster = Cluster::launch(config, LaunchMode::thread);
  if (!cluster) ADD_FAILURE() << cluster.error().message;
  return cluster ? *std::move(cluster) : nullptr;
}

TEST(ThreadClusterTest, AValueThatNoConfigFileMayHaveIsRefused) {
  Config config = default_config();
  config.nodes[1].workers = 251;
  const auto cluster = Cluster::launch(config, LaunchMode::thread);
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().code, ExitCode::config);
  EXPECT_NE(
      cluster.error().message.find("node[1].workers: expected an integer from 1 to 250, got 251"),
      std::string::npos)
      << cluster.error().message;
}

TEST(ThreadClusterTest, WithALogIncrementsAreDurableAndStoragesOutliveTheCluster) {
  std::string folder = "/tmp/atoll-thread-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  uint32_t id = 0;
  for (int start = 0; start < 3; ++start) {
    const auto cluster = launch(2, 2, folder);
    ASSERT_NE(cluster, nullptr);
    if (start == 0) {
      const auto created = cluster->create_storage("empty", StorageType::mastertree, 8, 0);
      ASSERT_TRUE(created) << created.error().message;
      id = *created;
    } else if (start == 1) {
      const auto again = cluster->create_storage("empty", StorageType::mastertree, 8, 0);
      EXPECT_FALSE(again) << "a storage that was acknowledged is forgotten (R34)";
      const auto other = cluster->create_storage("counter", StorageType::array, 8, 10);
      ASSERT_TRUE(other) << other.error().message;
      EXPECT_GT(*other, id) << "an id is given twice";
      const SessionReply reply = test::call_procedure(*cluster, 0, "test.increment");
      ASSERT_EQ(reply.status, Status::ok) << reply.message;
    } else {
      const auto status = cluster->coordinator(ControlOperation::status, Json::object());
      ASSERT_TRUE(status) << status.error().message;
      EXPECT_EQ(status->at("snapshots").at("newest"), 1) << status->dump(2);
    }
    const auto ended = cluster->shutdown();
    EXPECT_TRUE(ended) << ended.error().message;
  }
  std::filesystem::remove_all(folder);
}

TEST(ThreadClusterTest, OneToFourNodesWithOneToFourWorkersStartAndStop) {
  for (uint32_t nodes = 1; nodes <= 4; ++nodes) {
    for (const uint32_t workers : {1u, 4u}) {
      const auto cluster = launch(nodes, workers);
      ASSERT_NE(cluster, nullptr);
      const auto status = cluster->coordinator(ControlOperation::status, Json::object());
      ASSERT_TRUE(status);
      EXPECT_EQ(status->at("state"), "running");
      EXPECT_EQ(status->at("nodes").size(), nodes);
      EXPECT_TRUE(cluster->shutdown());
    }
  }
}

TEST(ThreadClusterTest, AProcedureAnswersWithItsOutputOrWithWhyItFailed) {
  const auto cluster = launch(2, 2);
  const auto call = [&](const char* name, std::string_view input = "",
                        const SessionOptions& options = {}) {
    return test::call_procedure(*cluster, 0, name, input, options);
  };
  EXPECT_EQ(test::output_of(test::call_procedure(*cluster, 1, "test.echo", "hello")), "hello");
  const std::string bytes("\0\xff", 2);
  EXPECT_EQ(test::output_of(call("test.echo", bytes)), bytes);
  SessionReply reply = call("test.throw");
  EXPECT_EQ(reply.status, Status::procedure_failed);
  EXPECT_NE(reply.message.find("planted"), std::string::npos) << reply.message;
  reply = call("test.garbage");
  EXPECT_EQ(reply.status, Status::procedure_failed);
  EXPECT_NE(reply.message.find("200"), std::string::npos) << reply.message;
  EXPECT_EQ(call("test.endless").status, Status::deadline_exceeded);
  EXPECT_EQ(call("test.none").status, Status::procedure_not_found);
  EXPECT_EQ(call("test.echo", "", {.worker = 2}).status, Status::invalid_argument);
  // The node has survived all of these requests.
  EXPECT_EQ(test::output_of(call("test.echo", "again")), "again");
}

TEST(ThreadClusterTest, IncrementsOfAllWorkersOfAllNodesAddUp) {
  const auto cluster = launch(2, 2);
  ASSERT_TRUE(cluster->create_storage("counter", StorageType::array, 8, 10));
  const auto outputs = cluster->run_job("test.increment_often", "200");
  ASSERT_TRUE(outputs) << outputs.error().message;
  ASSERT_EQ(outputs->size(), 4u);
  for (const JobOutput& output : *outputs) EXPECT_EQ(output.output.value_or("failed"), "200");
  EXPECT_EQ(test::call_procedure(*cluster, 1, "test.increment").status, Status::ok);
  const auto status = cluster->coordinator(ControlOperation::status, Json::object());
  uint64_t commits = 0;
  for (const Json& node : status->at("nodes")) commits += node.at("commits").get<uint64_t>();
  EXPECT_EQ(commits, 801u);
}

TEST(ThreadClusterTest, AJobRunsUntilItIsStopped) {
  const auto cluster = launch(1, 2);
  const auto job = cluster->call(0, ControlOperation::job_start,
                                 {{"name", "test.until_stopped"}, {"workers", {1}}});
  ASSERT_TRUE(job) << job.error().message;
  const Json id = {{"job", job->at("job")}, {"timeout_ms", 20}};
  auto answer = cluster->call(0, ControlOperation::job_wait, id);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_FALSE(answer->at("done").get<bool>());
  EXPECT_TRUE(cluster->call(0, ControlOperation::job_stop, id));
  answer = cluster->call(0, ControlOperation::job_wait,
                         {{"job", job->at("job")}, {"timeout_ms", 60'000}});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->at("done").get<bool>());
  EXPECT_EQ(answer->at("outputs").at(0).at("output"), "stopped");
  EXPECT_EQ(answer->at("outputs").at(0).at("worker"), 1);
  EXPECT_FALSE(cluster->call(0, ControlOperation::job_wait, {{"job", 99}}));
}

TEST(ThreadClusterTest, ShutdownEndsRunningJobs) {
  const auto cluster = launch(2, 1);
  ASSERT_TRUE(cluster->call(0, ControlOperation::job_start, {{"name", "test.until_stopped"}}));
  EXPECT_TRUE(cluster->shutdown());
  EXPECT_FALSE(cluster->call(0, ControlOperation::job_start, {{"name", "test.until_stopped"}}));
}

TEST(ThreadClusterTest, ADroppedStorageGivesAllItsPagesBack) {
  const auto cluster = launch(2, 1);
  const auto free_pages = [&] {
    uint64_t free = 0;
    for (uint32_t node = 0; node < 2; ++node) {
      const NodeShared& shared = *cluster->view()->shared[node];
      free += shared.pages_free.load(std::memory_order_relaxed);
    }
    return free;
  };
  const auto eventually_free = [&](uint64_t expected) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (free_pages() != expected && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::yield();
    }
    return free_pages();
  };
  const uint64_t before = free_pages();
  ASSERT_TRUE(cluster->create_storage("tree", StorageType::mastertree, 100));
  ASSERT_TRUE(cluster->create_storage("counter", StorageType::array, 8, 100'000));
  ASSERT_TRUE(cluster->run_job("test.fill_tree", ""));
  ASSERT_TRUE(cluster->run_job("test.increment_often", "3"));
  const auto dropped = cluster->coordinator(ControlOperation::storage_drop, {{"name", "tree"}});
  ASSERT_TRUE(dropped) << dropped.error().message;
  EXPECT_GT(dropped->at("pages").get<uint64_t>(), 200u);
  EXPECT_TRUE(cluster->drop_storage("counter"));
  EXPECT_EQ(eventually_free(before), before);
  EXPECT_FALSE(cluster->drop_storage("tree"));
}

}  // namespace
}  // namespace atolldb
