// A replay of nodes with several directories each: checkpoint files, log files and files of given
// records (R100) are in all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/cluster_folder.h"
#include "tests/coordinator/checkpoint_rules.h"
#include "tests/coordinator/staged_cluster.h"

namespace atolldb::test {
namespace {

/// Three nodes of one worker, each with two directories. A worker of a replay gives records to two
/// other nodes, so it writes two files.
class ReplayDirectories : public testing::Test {
 protected:
  static constexpr uint32_t kNodes = 3;
  static constexpr uint32_t kNumbers = 300;

  ReplayDirectories() : cluster_(configured(folder_.path())) {
    cluster_.start();
    EXPECT_TRUE(
        cluster_.coordinator(ControlOperation::storage_create, {{"name", "numbers"},
                                                                {"type", "array"},
                                                                {"payload_bytes", 16},
                                                                {"record_count", kNumbers}}));
    EXPECT_TRUE(cluster_.coordinator(ControlOperation::storage_create,
                                     {{"name", "heap"}, {"type", "sequential"}}));
  }

  static Config configured(const std::string& folder) {
    Config config = checkpoint_config(kNodes);
    config.durability.checkpoint_threads = 2;  // they take turns in the directories
    for (uint32_t node = 0; node < kNodes; ++node) {
      config.nodes[node].workers = 1;
      for (const char* name : {"a", "b"}) {
        config.nodes[node].directories.push_back(folder + "/" + name + std::to_string(node));
      }
    }
    return config;
  }
  /// Each node changes a part of each number, and appends to the heap.
  void write(uint32_t value) {
    for (uint32_t node = 0; node < kNodes; ++node) {
      constexpr uint32_t kAtOnce = 100;
      for (uint32_t index = 0; index < kNumbers; index += kAtOnce) {
        KvRequest request;
        for (uint32_t i = index; i < index + kAtOnce; ++i) {
          request.put("numbers", ordered_index_key(i), std::as_bytes(std::span(&value, 1)),
                      node * sizeof value);
        }
        request.append("heap", std::as_bytes(std::span(&value, 1)));
        const auto session = cluster_.connect_session(node);
        ASSERT_TRUE(session) << session.error().message;
        const SessionReply reply = (*session)->call("kv.txn", request.bytes());
        ASSERT_EQ(reply.status, Status::ok) << reply.message;
        ++appended_;
      }
    }
  }
  /// Returns the bytes of all numbers, or the status of a failed request.
  std::string numbers() {
    std::string all;
    for (uint32_t index = 0; index < kNumbers; ++index) {
      KvRequest request;
      request.get("numbers", ordered_index_key(index));
      const auto session = cluster_.connect_session(index % kNodes);
      if (!session) return session.error().message;
      const SessionReply reply = (*session)->call("kv.txn", request.bytes());
      const auto results = read_kv_reply(reply.output, request.bytes());
      if (reply.status != Status::ok || !results) return std::string(to_string(reply.status));
      const KvBytes value = results->front().value;
      all.append(reinterpret_cast<const char*>(value.data()), value.size());
    }
    return all;
  }
  /// Returns the number of files in each directory whose names begin with this text.
  std::map<std::string, int> files(const std::string& prefix) const {
    std::map<std::string, int> found;
    for (const NodeConfig& node : cluster_.config().nodes) {
      for (const std::string& directory : node.directories) found[directory] = 0;
    }
    for (auto& [directory, count] : found) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
        count += entry.path().filename().string().starts_with(prefix) ? 1 : 0;
      }
    }
    return found;
  }
  static bool is_everywhere(const std::map<std::string, int>& found) {
    return std::ranges::all_of(found, [](const auto& each) { return each.second > 0; });
  }
  static bool is_nowhere(const std::map<std::string, int>& found) {
    return std::ranges::all_of(found, [](const auto& each) { return each.second == 0; });
  }

  TestFolder folder_;
  StagedCluster cluster_;
  uint64_t appended_ = 0;
};

TEST_F(ReplayDirectories, AllGetGivenRecordsAndKeepNone) {
  write(1);
  ASSERT_TRUE(cluster_.coordinator(ControlOperation::checkpoint_take));
  EXPECT_TRUE(is_everywhere(files("checkpoint_1_")));
  write(2);
  cluster_.restart();
  // An earlier start-up was killed.
  const std::string left = folder_.path() + "/b2/node2/run_1_77_0.tmp";
  std::ofstream(left) << "left";
  std::map<std::string, int> given;
  std::mutex mutex;
  cluster_.before_call = [&](uint32_t, ControlOperation operation, const Json&) {
    const std::lock_guard guard(mutex);
    if (operation == ControlOperation::replay_exchange && given.empty()) {
      given = files("run_");
      EXPECT_FALSE(std::filesystem::exists(left));
    }
  };
  cluster_.start();
  cluster_.before_call = {};
  EXPECT_TRUE(is_everywhere(given)) << Json(given).dump();
  EXPECT_TRUE(is_nowhere(files("run_"))) << Json(files("run_")).dump();
  const std::array<uint32_t, 4> number = {2, 2, 2, 0};
  std::string expected;
  for (uint32_t i = 0; i < kNumbers; ++i) {
    expected.append(reinterpret_cast<const char*>(number.data()), sizeof number);
  }
  EXPECT_EQ(numbers(), expected);
  ASSERT_TRUE(cluster_.coordinator(ControlOperation::checkpoint_take));
  const auto heap = cluster_.coordinator(ControlOperation::storage_describe, {{"name", "heap"}});
  ASSERT_TRUE(heap) << heap.error().message;
  EXPECT_EQ(heap->at("checkpoint").at("records"), appended_);
}

}  // namespace
}  // namespace atolldb::test
