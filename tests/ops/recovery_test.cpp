// Recovery in thread mode: before the cluster runs again, everything committed is in a snapshot,
// and reads use it. With the scheme `silor`, everything is in memory again.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "engine/array/array.h"
#include "engine/mastertree/mastertree.h"
#include "ops/cluster/cluster.h"
#include "soc/procedure/procedure.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb {
namespace {

constexpr uint64_t kRecords = 3000;

/// Returns the value that round `round` writes to a record. The value of a round from 1 on is never
/// 0.
uint64_t value_of(uint64_t number, uint64_t round) { return round * 1'000'000 + number; }

Result<std::string> failed(Status status) {
  return make_error(ExitCode::failed, std::string(to_string(status)));
}

/// In round r every node writes to its own numbers, in array and tree. In later rounds it writes
/// only to every r-th number, and erases every 100th of the tree.
Result<std::string> write_round(JobContext& context) {
  const uint64_t round = std::stoull(std::string(context.input()));
  const Array array(*context.storage("array", StorageType::array));
  MasterTree tree(*context.storage("tree", StorageType::mastertree));
  for (uint64_t number = context.node(); number < kRecords; number += 2) {
    if (round > 1 && number % round != 0) continue;
    const uint64_t value = value_of(number, round);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    const Status status =
        run(context.transaction(), context.backoff(), kMaxEpoch, [&](Transaction& txn) {
          Status done = array.update(txn, number, 0, sizeof(value), &value);
          if (done != Status::ok) return done;
          const auto key = ordered_key(number);
          if (round > 1 && number % 100 == 0) {
            done = tree.erase(txn, key);
            return done == Status::not_found ? Status::ok : done;
          }
          return tree.upsert(txn, key, bytes);
        });
    if (status != Status::ok) return failed(status);
  }
  return std::string("written");
}

/// Checks that all records are as rounds 1 to `input` have left them.
Result<std::string> check_rounds(JobContext& context) {
  const uint64_t rounds = std::stoull(std::string(context.input()));
  const Array array(*context.storage("array", StorageType::array));
  MasterTree tree(*context.storage("tree", StorageType::mastertree));
  for (uint64_t number = 0; number < kRecords; ++number) {
    uint64_t last = rounds;
    while (last > 1 && number % last != 0) --last;
    const bool is_erased = rounds > 1 && number % 100 == 0;
    uint64_t in_array = 0;
    uint64_t in_tree = 0;
    bool is_found = false;
    const Status status =
        run(context.transaction(), context.backoff(), kMaxEpoch, [&](Transaction& txn) {
          const Status got = array.get(txn, number, &in_array);
          if (got != Status::ok) return got;
          const Status found =
              tree.get_range(txn, ordered_key(number), 0, sizeof(in_tree), &in_tree);
          is_found = found == Status::ok;
          return found == Status::not_found ? Status::ok : found;
        });
    if (status != Status::ok) return failed(status);
    const uint64_t expected = value_of(number, last);
    const bool is_right =
        in_array == expected && is_found == !is_erased && (is_erased || in_tree == expected);
    if (is_right) continue;
    return make_error(ExitCode::failed, "number " + std::to_string(number) + ": array " +
                                            std::to_string(in_array) + ", tree " +
                                            (is_found ? std::to_string(in_tree) : "none") +
                                            ", expected " + std::to_string(expected));
  }
  return std::string("right");
}

ATOLL_REGISTER_JOB(write_round_entry, "test.write_round", write_round);
ATOLL_REGISTER_JOB(check_rounds_entry, "test.check_rounds", check_rounds);

struct Setting {
  const char* name;
  DurabilityScheme scheme;
  ReplayOrder order = ReplayOrder::newest_first;
};

class RecoveryTest : public testing::TestWithParam<Setting> {
 protected:
  bool has_checkpoints() const { return GetParam().scheme == DurabilityScheme::silor; }
  std::unique_ptr<Cluster> launch() {
    Config config = folder_.config("recovery");
    config.durability.scheme = GetParam().scheme;
    config.durability.replay_order = GetParam().order;
    config.durability.checkpoint_interval = std::chrono::milliseconds(0);  // only on request
    config.memory.volatile_pool = uint64_t{16} << 20;
    config.durability.log_file_size = uint64_t{1} << 20;  // so that mappers share streams
    for (NodeConfig& node : config.nodes) {
      node.reducers = 2;
      node.recovery_threads = 3;
    }
    auto cluster = Cluster::launch(config, LaunchMode::thread);
    if (!cluster) ADD_FAILURE() << cluster.error().message;
    return cluster ? *std::move(cluster) : nullptr;
  }
  static void run_job(Cluster& cluster, const std::string& name, uint64_t rounds) {
    const auto outputs = cluster.run_job(name, std::to_string(rounds));
    ASSERT_TRUE(outputs) << outputs.error().message;
    for (const JobOutput& output : *outputs) {
      EXPECT_TRUE(output.output) << name << " " << rounds << ": " << output.output.error().message;
    }
  }
  /// Returns the id of the newest snapshot or checkpoint.
  uint64_t newest(Cluster& cluster) const {
    const auto status = cluster.coordinator(ControlOperation::status, Json::object());
    if (!status) ADD_FAILURE() << status.error().message;
    const char* const member = has_checkpoints() ? "checkpoints" : "snapshots";
    return status ? status->at(member).at("newest").get<uint64_t>() : UINT64_MAX;
  }

  test::TestFolder folder_;
};

/// With checkpoints, the second start reads only the log, the third one a checkpoint and the log
/// after it, and the fourth one has the log of two incarnations.
TEST_P(RecoveryTest, EveryStartHasWhatAllEarlierOnesHaveCommitted) {
  for (uint64_t start = 1; start <= 4; ++start) {
    const auto cluster = launch();
    ASSERT_NE(cluster, nullptr) << "start " << start;
    EXPECT_EQ(newest(*cluster), has_checkpoints() ? (start > 2 ? 1 : 0) : start - 1);
    if (start == 1) {
      ASSERT_TRUE(cluster->create_storage("array", StorageType::array, 8, kRecords));
      ASSERT_TRUE(cluster->create_storage("tree", StorageType::mastertree, 8));
    } else {
      run_job(*cluster, "test.check_rounds", start - 1);
    }
    if (has_checkpoints() && start == 2) {
      const auto taken = cluster->coordinator(ControlOperation::checkpoint_take, Json::object());
      ASSERT_TRUE(taken) << taken.error().message;
    }
    run_job(*cluster, "test.write_round", start);
    run_job(*cluster, "test.check_rounds", start);
    const auto ended = cluster->shutdown();
    EXPECT_TRUE(ended) << ended.error().message;
  }
}

TEST_P(RecoveryTest, AStartAfterWhichNothingWasCommittedNeedsNoFurtherSnapshot) {
  for (uint64_t start = 0; start < 3; ++start) {
    const auto cluster = launch();
    ASSERT_NE(cluster, nullptr);
    EXPECT_EQ(newest(*cluster), start == 0 || has_checkpoints() ? 0 : 1);
    if (start == 0) {
      ASSERT_TRUE(cluster->create_storage("array", StorageType::array, 8, kRecords));
      ASSERT_TRUE(cluster->create_storage("tree", StorageType::mastertree, 8));
      run_job(*cluster, "test.write_round", 1);
    } else {
      run_job(*cluster, "test.check_rounds", 1);
    }
    EXPECT_TRUE(cluster->shutdown());
  }
}

TEST_P(RecoveryTest, AStorageThatWasDroppedIsInNoSnapshot) {
  {
    const auto cluster = launch();
    ASSERT_NE(cluster, nullptr);
    ASSERT_TRUE(cluster->create_storage("array", StorageType::array, 8, kRecords));
    ASSERT_TRUE(cluster->create_storage("tree", StorageType::mastertree, 8));
    run_job(*cluster, "test.write_round", 1);
    ASSERT_TRUE(cluster->drop_storage("tree"));
    EXPECT_TRUE(cluster->shutdown());
  }
  const auto cluster = launch();
  ASSERT_NE(cluster, nullptr);
  ASSERT_TRUE(cluster->create_storage("tree", StorageType::mastertree, 8));
  const auto outputs = cluster->run_job("test.check_rounds", "1");
  ASSERT_TRUE(outputs);
  for (const JobOutput& output : *outputs) {
    ASSERT_FALSE(output.output);
    EXPECT_NE(output.output.error().message.find("tree none"), std::string::npos)
        << output.output.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, RecoveryTest,
                         testing::Values(Setting{"gleaned", DurabilityScheme::gleaned},
                                         Setting{"silor", DurabilityScheme::silor},
                                         Setting{"silor_oldest_first", DurabilityScheme::silor,
                                                 ReplayOrder::oldest_first}),
                         [](const auto& setting) { return std::string(setting.param.name); });

}  // namespace
}  // namespace atolldb
