// Checkpoints of several nodes, and their replay by several nodes, as a coordinator asks for them.
#include "soc/checkpoint/checkpoint_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "engine/checkpoint/given_records.h"
#include "engine/gleaner/sorted_run.h"
#include "shared/file/forwarding_file_system.h"
#include "tests/soc/checkpoint/silo_cluster.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

using Op = ControlOperation;

TEST(CheckpointServiceTest, NodesReplayTogetherWhatNodesHaveWritten) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(6, 40); ++round) {
    const auto nodes = static_cast<uint32_t>(1 + round % 3);
    SiloCluster silo(first + round, nodes, 2);
    // Without a checkpoint, then with one, then with a later one.
    for (uint64_t id = 0; id < 3; ++id) {
      if (id != 0) {
        ASSERT_EQ(message_of(silo.take_checkpoint(id)), "") << "seed " << first + round;
      }
      ASSERT_EQ(silo.work(600), "") << "seed " << first + round;
      const auto image = silo.logged.files().copy();
      const ReplayPlan plan = silo.plan();
      ReplayedCluster replayed(*image, plan, nodes, 1 + static_cast<uint32_t>(round % 2));
      ASSERT_EQ(message_of(replayed.replay()), "") << "seed " << first + round;
      std::string problem;
      const Content content = read_content(replayed.cluster.worker(0), replayed.storages, problem);
      EXPECT_EQ(problem, "");
      const Content expected = content_at(silo.works, plan.cut_epoch);
      EXPECT_TRUE(content == expected)
          << content.sizes() << ", expected " << expected.sizes() << ", seed " << first + round;
      // Every node has replayed a part of the files.
      for (const Json& each : replayed.read) EXPECT_GT(each.at("records").get<uint64_t>(), 0u);
      EXPECT_EQ(replayed.given != 0, nodes > 1) << "seed " << first + round;
      for (uint32_t node = 0; node < nodes; ++node) {
        EXPECT_TRUE(list_sorted_runs(*image, "/data", node)->empty()) << "given files are left";
      }
    }
  }
}

TEST(CheckpointServiceTest, TheAnswersHaveTheRecordsOfEachStorage) {
  const uint64_t seed_value = seed();
  SiloCluster silo(seed_value, 2, 2);
  ASSERT_EQ(silo.work(2'000), "") << "seed " << seed_value;
  silo.next_epoch();
  ASSERT_EQ(message_of(silo.take_checkpoint(1)), "");
  const Content expected = content_at(silo.works, silo.durable_epoch());
  uint64_t sum = 0;
  for (const CheckpointStorage& storage : silo.metadata.storages) {
    const uint64_t records = storage.type == StorageType::sequential
                                 ? expected.heap.size()
                                 : expected.map(storage.type).size();
    EXPECT_GT(records, 0u) << storage.name << ", seed " << seed_value;
    EXPECT_EQ(storage.records, records) << storage.name << ", seed " << seed_value;
    sum += records;
  }
  uint64_t in_files = 0;
  for (const CheckpointFileInfo& file : silo.metadata.files) in_files += file.records;
  EXPECT_EQ(sum, in_files);
}

TEST(CheckpointServiceTest, NodesReplayAllRecordsAndEachOnce) {
  const uint64_t seed_value = seed();
  SiloCluster silo(seed_value, 2, 2);
  ASSERT_EQ(silo.work(800), "");
  ASSERT_EQ(message_of(silo.take_checkpoint(1)), "");
  ASSERT_EQ(silo.work(800), "");
  const auto image = silo.logged.files().copy();
  ReplayedCluster two(*image, silo.plan(), 2, 1);
  ASSERT_EQ(message_of(two.replay()), "") << "seed " << seed_value;
  const auto together = [&](const char* name) {
    uint64_t sum = 0;
    for (const Json& each : two.ended) sum += each.at(name).get<uint64_t>();
    return sum;
  };
  ReplayedCluster one(*image, silo.plan(), 1, 2);
  ASSERT_EQ(message_of(one.replay()), "") << "seed " << seed_value;
  EXPECT_EQ(one.ended.front().at("records"), together("records")) << "seed " << seed_value;
  // Each file is read by one node.
  EXPECT_EQ(one.ended.front().at("bytes"), together("bytes"));
  EXPECT_EQ(one.ended.front().at("bytes_total"), together("bytes_total"));
  for (const Json& each : two.ended) EXPECT_GT(each.at("bytes").get<uint64_t>(), 0u);
  EXPECT_LE(one.ended.front().at("bytes"), one.ended.front().at("bytes_total"));
}

/// Also: some nodes have no file to read, and an earlier start-up has left a given file.
TEST(CheckpointServiceTest, MoreNodesReplayWhatOneNodeHasWritten) {
  const uint64_t seed_value = seed();
  SiloCluster silo(seed_value, 1, 2);
  for (const uint64_t steps : {3u, 900u}) {
    ASSERT_EQ(silo.work(steps), "") << "seed " << seed_value;
    silo.next_epoch();
    const auto image = silo.logged.files().copy();
    const std::string left = "/data/node1/" + to_string(SortedRunName{0, 0, 2});
    ASSERT_TRUE(image->make_directory("/data/node1"));
    ASSERT_TRUE(image->create(left, GivenRecords::kChunkBytes));
    const ReplayPlan plan = silo.plan();
    ReplayedCluster replayed(*image, plan, 3, 1);
    ASSERT_EQ(message_of(replayed.replay()), "") << "seed " << seed_value;
    std::string problem;
    const Content content = read_content(replayed.cluster.worker(0), replayed.storages, problem);
    EXPECT_EQ(problem, "");
    EXPECT_TRUE(content == content_at(silo.works, plan.cut_epoch)) << "seed " << seed_value;
    const auto idle = std::ranges::count_if(
        replayed.read, [](const Json& each) { return each.at("bytes_total") == 0; });
    EXPECT_EQ(idle, steps == 3 ? 2 : 0) << "there is one log file only at first";
    EXPECT_FALSE(*image->exists(left));
  }
}

TEST(CheckpointServiceTest, ReplaysTheFilesInTheOrderOfThePlan) {
  const uint64_t seed_value = seed();
  SiloCluster silo(seed_value, 2, 2);
  ASSERT_EQ(silo.work(2500), "");
  const auto image = silo.logged.files().copy();
  ReplayPlan plan = silo.plan();
  const Content expected = content_at(silo.works, plan.cut_epoch);
  std::vector<uint64_t> overwritten;
  for (const auto order : {ReplayOrder::newest_first, ReplayOrder::oldest_first}) {
    plan.order = order;
    ReplayedCluster replayed(*image, plan, 2, 1);
    ASSERT_EQ(message_of(replayed.replay()), "") << "seed " << seed_value;
    std::string problem;
    const Content content = read_content(replayed.cluster.worker(0), replayed.storages, problem);
    EXPECT_EQ(problem, "");
    EXPECT_TRUE(content == expected) << "seed " << seed_value;
    uint64_t& sum = overwritten.emplace_back(0);
    for (const Json& each : replayed.ended) sum += each.at("overwritten").get<uint64_t>();
  }
  EXPECT_LT(overwritten[0], overwritten[1]) << "seed " << seed_value;
}

TEST(CheckpointServiceTest, SyncsEachFileOnceWithoutASyncDistance) {
  SiloCluster silo(seed(), 1, 1);
  ASSERT_EQ(silo.insert_large(400), "");
  NodeCheckpointMetrics metrics{};
  const auto syncs_with = [&](uint64_t id, uint64_t sync_bytes) {
    const uint64_t before = metrics.syncs.load(std::memory_order_relaxed);
    silo.settings = {{"sync_bytes", sync_bytes}};
    EXPECT_EQ(message_of(silo.take_checkpoint(id)), "");
    silo.nodes.service(0).publish(metrics);
    return metrics.syncs.load(std::memory_order_relaxed) - before;
  };
  constexpr uint64_t kAllFiles = uint64_t{SiloCluster::kThreads} * SiloCluster::kFiles;
  EXPECT_EQ(syncs_with(1, 0), kAllFiles);
  EXPECT_GT(syncs_with(2, 1), kAllFiles);
}

TEST(CheckpointServiceTest, ACheckpointThatPausesEndsWhenItIsGivenUp) {
  SiloCluster silo(seed(), 1, 1);
  ASSERT_EQ(silo.insert_large(400), "");
  constexpr uint64_t kHourUs = 3'600'000'000;
  silo.settings = {{"pause_us", kHourUs}, {"pause_bytes", 1}};
  ASSERT_EQ(message_of(silo.begin(1)), "");
  const auto waited =
      silo.nodes.ask(0, Op::checkpoint_wait, {{"checkpoint", 1}, {"timeout_ms", 100}});
  ASSERT_TRUE(waited) << waited.error().message;
  EXPECT_EQ(waited->at("done"), false);
  ASSERT_TRUE(silo.nodes.ask_all(Op::checkpoint_end, {{"checkpoint", 1}, {"keep", false}}));
  EXPECT_TRUE(silo.checkpoint_files().empty());
  silo.settings = Json::object();
  EXPECT_EQ(message_of(silo.take_checkpoint(2)), "");
}

TEST(CheckpointServiceTest, CountsCheckpointsAndReplaysForTheMetrics) {
  SiloCluster silo(seed(), 1, 1);
  ASSERT_EQ(silo.work(300), "");
  NodeCheckpointMetrics metrics{};
  uint64_t records = 0;
  uint64_t bytes = 0;
  for (uint64_t id = 1; id <= 2; ++id) {
    ASSERT_EQ(message_of(silo.take_checkpoint(id)), "");
    silo.nodes.service(0).publish(metrics);
    for (const CheckpointFileInfo& file : silo.metadata.files) {
      records += file.records;
      bytes += file.bytes;
    }
    EXPECT_EQ(metrics.records.load(std::memory_order_relaxed), records);
    EXPECT_EQ(metrics.bytes.load(std::memory_order_relaxed), bytes);
    EXPECT_GT(metrics.syncs.load(std::memory_order_relaxed), 0u);
  }
  EXPECT_EQ(metrics.phase.load(std::memory_order_relaxed),
            static_cast<uint64_t>(CheckpointPhase::idle));
  const auto image = silo.logged.files().copy();
  ReplayedCluster replayed(*image, silo.plan(), 1, 1);
  ASSERT_EQ(message_of(replayed.replay()), "");
  replayed.nodes.service(0).publish(metrics);
  EXPECT_EQ(metrics.replayed_records.load(std::memory_order_relaxed),
            replayed.ended.front().at("records").get<uint64_t>());
  EXPECT_EQ(metrics.replayed_bytes.load(std::memory_order_relaxed),
            replayed.ended.front().at("bytes").get<uint64_t>());
}

TEST(CheckpointServiceTest, ADiscardedCheckpointLeavesNoFiles) {
  SiloCluster silo(seed(), 2, 1);
  ASSERT_EQ(silo.work(500), "");
  ASSERT_EQ(message_of(silo.begin(1)), "");
  // One node has ended, the other perhaps not.
  ASSERT_TRUE(silo.nodes.ask(0, Op::checkpoint_wait, {{"checkpoint", 1}, {"timeout_ms", 60'000}}));
  ASSERT_TRUE(silo.nodes.ask_all(Op::checkpoint_end, {{"checkpoint", 1}, {"keep", false}}));
  EXPECT_TRUE(silo.checkpoint_files().empty());
  // A repeated request, and one for a checkpoint that never began.
  EXPECT_TRUE(silo.nodes.ask_all(Op::checkpoint_end, {{"checkpoint", 1}, {"keep", false}}));
  EXPECT_TRUE(silo.nodes.ask_all(Op::checkpoint_end, {{"checkpoint", 9}, {"keep", false}}));
  EXPECT_EQ(message_of(silo.take_checkpoint(2)), "");
  EXPECT_EQ(silo.checkpoint_files().size(), 2 * SiloCluster::kThreads * SiloCluster::kFiles);
}

TEST(CheckpointServiceTest, AFailedWriteFailsTheCheckpointAndLaterOnesSucceed) {
  SiloCluster silo(seed(), 1, 2);
  ASSERT_EQ(silo.work(500), "");
  silo.logged.files().changes_left = 7;
  ASSERT_EQ(message_of(silo.begin(1)), "");
  const auto failed =
      silo.nodes.ask(0, Op::checkpoint_wait, {{"checkpoint", 1}, {"timeout_ms", 60'000}});
  ASSERT_FALSE(failed);
  silo.logged.files().changes_left = UINT64_MAX;
  EXPECT_TRUE(silo.nodes.ask(0, Op::checkpoint_end, {{"checkpoint", 1}, {"keep", false}}));
  EXPECT_EQ(message_of(silo.take_checkpoint(2)), "");
}

TEST(CheckpointServiceTest, RefusesWhatItCannotCopy) {
  SiloCluster silo(seed(), 1, 1);
  ASSERT_EQ(silo.work(100), "");
  ASSERT_EQ(message_of(silo.take_checkpoint(5)), "");
  const auto divided =
      silo.nodes.ask(0, Op::checkpoint_divide, {{"parts", 4}, {"storages", ids_of(silo.storages)}});
  ASSERT_TRUE(divided) << divided.error().message;
  const Json good = {{"checkpoint", 6}, {"replay_epoch", 3}, {"threads", 2},
                     {"files", 1},      {"first_part", 2},   {"ranges", divided->at("ranges")}};
  const auto refused = [&](const char* member, const Json& value) {
    Json body = good;
    body[member] = value;
    const auto answer = silo.nodes.ask(0, Op::checkpoint_begin, body);
    return answer ? std::string() : answer.error().message;
  };
  EXPECT_NE(refused("checkpoint", 5).find("take a new id"), std::string::npos);
  EXPECT_NE(refused("checkpoint", 0).find("out of range"), std::string::npos);
  EXPECT_NE(refused("replay_epoch", 0).find("out of range"), std::string::npos);
  EXPECT_NE(refused("pause_bytes", 0).find("out of range"), std::string::npos);
  EXPECT_NE(refused("threads", 0).find("from 1 to"), std::string::npos);
  EXPECT_NE(refused("threads", kMaxInstallers + 1).find("from 1 to"), std::string::npos);
  EXPECT_NE(refused("files", kMaxCheckpointFiles + 1).find("from 1 to"), std::string::npos);
  EXPECT_NE(refused("first_part", 3).find("out of range"), std::string::npos);
  EXPECT_NE(refused("first_part", UINT64_MAX).find("out of range"), std::string::npos);
  EXPECT_NE(refused("ranges", to_binary({})).find("did not write"), std::string::npos);
  ASSERT_TRUE(silo.nodes.ask(0, Op::checkpoint_begin, good));
  ASSERT_TRUE(silo.nodes.ask(0, Op::checkpoint_end, {{"checkpoint", 6}, {"keep", false}}));
  EXPECT_FALSE(silo.nodes.ask(0, Op::checkpoint_wait, {{"checkpoint", 7}}));
  EXPECT_FALSE(silo.nodes.ask(0, Op::checkpoint_divide, {{"parts", 1}, {"storages", {-1}}}));
  silo.nodes.service(0).stop();
  EXPECT_NE(refused("checkpoint", 7).find("stops"), std::string::npos);
}

TEST(CheckpointServiceTest, SkipsStoragesThatAreDroppedMeanwhile) {
  SiloCluster silo(seed(), 1, 1);
  ASSERT_EQ(silo.work(200), "");
  silo.storages.hash->state.store(static_cast<uint32_t>(StorageState::dropping),
                                  std::memory_order_seq_cst);
  const auto divided =
      silo.nodes.ask(0, Op::checkpoint_divide, {{"parts", 2}, {"storages", ids_of(silo.storages)}});
  ASSERT_TRUE(divided);
  const auto storages = decode_divided(*find_binary(*divided, "ranges"));
  ASSERT_TRUE(storages) << storages.error().message;
  EXPECT_EQ(storages->size(), 3u);
  for (const DividedStorage& storage : *storages) EXPECT_NE(storage.id, silo.storages.hash->id);
}

TEST(CheckpointServiceTest, TheStepsOfAReplayHaveTheirOrder) {
  SiloCluster silo(seed(), 1, 1);
  ASSERT_EQ(silo.work(200), "");
  const auto image = silo.logged.files().copy();
  ReplayedCluster replayed(*image, silo.plan(), 1, 1);
  ServiceNodes& nodes = replayed.nodes;
  EXPECT_FALSE(nodes.ask(0, Op::replay_wait, Json::object()));
  EXPECT_FALSE(nodes.ask(0, Op::replay_clean, {{"storages", Json::array()}}));
  EXPECT_FALSE(nodes.ask(0, Op::replay_end, Json::object()));
  const Json given = {{"given", to_binary(encode_given_files({}))}};
  EXPECT_FALSE(nodes.ask(0, Op::replay_exchange, given));
  const Json plan = {{"plan", to_binary(encode_replay_plan(silo.plan()))}};
  ASSERT_TRUE(nodes.ask(0, Op::replay_begin, plan));
  EXPECT_FALSE(nodes.ask(0, Op::replay_begin, plan)) << "a second replay";
  ASSERT_TRUE(nodes.ask(0, Op::replay_wait, {{"timeout_ms", 60'000}}));
  EXPECT_FALSE(nodes.ask(0, Op::replay_clean, {{"storages", Json::array()}})) << "no exchange";
  EXPECT_FALSE(nodes.ask(0, Op::replay_exchange, {{"given", to_binary({})}})) << "no list of files";
  GivenFile wrong;
  wrong.to = 1;
  wrong.run.path = "/data/node1/run_0_0_1.tmp";
  wrong.run.chunk_bytes = GivenRecords::kChunkBytes;
  wrong.run.chunks = 1;
  const auto refused =
      nodes.ask(0, Op::replay_exchange, {{"given", to_binary(encode_given_files({wrong}))}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("was given to node 1"), std::string::npos)
      << refused.error().message;
  ASSERT_TRUE(nodes.ask(0, Op::replay_exchange, given));
  ASSERT_TRUE(nodes.ask(0, Op::replay_wait, {{"timeout_ms", 60'000}}));
  EXPECT_FALSE(nodes.ask(0, Op::replay_exchange, given));
  EXPECT_FALSE(nodes.ask(0, Op::replay_end, Json::object())) << "tombstones are not removed";
  ASSERT_TRUE(nodes.ask(0, Op::replay_clean, {{"storages", Json::array()}}));
  ASSERT_TRUE(nodes.ask(0, Op::replay_wait, {{"timeout_ms", 60'000}}));
  EXPECT_FALSE(nodes.ask(0, Op::replay_clean, {{"storages", Json::array()}}));
  EXPECT_TRUE(nodes.ask(0, Op::replay_end, Json::object()));
  EXPECT_FALSE(nodes.ask(0, Op::replay_end, Json::object()));
}

TEST(CheckpointServiceTest, ADamagedFileFailsTheReplay) {
  SiloCluster silo(seed(), 1, 2);
  ASSERT_EQ(silo.work(500), "");
  ASSERT_EQ(message_of(silo.take_checkpoint(1)), "");
  const auto image = silo.logged.files().copy();
  const CheckpointFileInfo& file = silo.metadata.files.back();
  image->bytes(checkpoint_file_path(file.directory, file.node,
                                    {silo.metadata.id, file.writer, file.number}))[100] ^=
      std::byte{1};
  ReplayedCluster replayed(*image, silo.plan(), 1, 2);
  const auto failed = replayed.replay();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ExitCode::corruption) << failed.error().message;
}

TEST(CheckpointServiceTest, AReplayFailsIfAStorageIsNewerThanThePlan) {
  SiloCluster silo(seed(), 1, 1);
  ASSERT_EQ(silo.work(100), "");
  const auto image = silo.logged.files().copy();
  ReplayPlan plan = silo.plan();
  --plan.last_storage;
  ReplayedCluster replayed(*image, plan, 1, 1);
  const auto failed = replayed.replay();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("internal error"), std::string::npos);
}

TEST(CheckpointServiceTest, AReplayEndsWithItsWorkers) {
  SiloCluster silo(seed(), 1, 2);
  ASSERT_EQ(silo.work(500), "");
  const auto image = silo.logged.files().copy();
  ReplayedCluster replayed(*image, silo.plan(), 1, 2);
  replayed.nodes.close_workers();
  const auto failed = replayed.replay();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ExitCode::not_running) << failed.error().message;
}

/// A file system whose files can be opened once the test allows it.
class ClosedFileSystem : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  void allow() { may_open_.set_value(); }
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    allowed_.wait();
    return below().open_for_reading(path);
  }

 private:
  std::promise<void> may_open_;
  std::shared_future<void> allowed_ = may_open_.get_future().share();
};

TEST(CheckpointServiceTest, AStoppedReplayAnswersWithAnError) {
  SiloCluster silo(seed(), 1, 2);
  ASSERT_EQ(silo.work(500), "");
  const auto image = silo.logged.files().copy();
  ClosedFileSystem closed(*image);
  ReplayedCluster replayed(closed, silo.plan(), 1, 2);
  CheckpointService& service = replayed.nodes.service(0);
  const Json plan = {{"plan", to_binary(encode_replay_plan(silo.plan()))}};
  ASSERT_TRUE(replayed.nodes.ask(0, Op::replay_begin, plan));
  ControlAnswer waiting;
  service.handle(ControlRequest(Op::replay_wait, {{"timeout_ms", 60'000}}), waiting.reply());
  {
    const std::jthread stop([&] { service.stop(); });
    while (!replayed.nodes.ask(0, Op::replay_begin, plan).error().message.ends_with("stops")) {
      std::this_thread::yield();
    }
    closed.allow();
  }
  const auto answer = waiting.get();
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("cancelled"), std::string::npos);
}

}  // namespace
}  // namespace atolldb::test
