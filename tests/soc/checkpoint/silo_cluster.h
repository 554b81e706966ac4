// A cluster whose nodes take checkpoints, and one that replays its files, as a coordinator asks for
// them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/checkpoint/given_records.h"
#include "engine/mastertree/inspect.h"
#include "shared/base/try.h"
#include "tests/engine/checkpoint/random_work.h"
#include "tests/engine/gleaner/locked_file_system.h"
#include "tests/engine/log/logged_cluster.h"
#include "tests/soc/checkpoint/service_nodes.h"

namespace atolldb::test {

inline std::vector<uint32_t> ids_of(const StagedStorages& storages) {
  std::vector<uint32_t> ids;
  for (const StorageControl* storage : storages.all()) ids.push_back(storage->id);
  std::ranges::sort(ids);
  return ids;
}

/// A running cluster with logs, whose nodes take checkpoints.
class SiloCluster {
 public:
  static constexpr uint32_t kThreads = 2;  // of each node's checkpoint
  static constexpr uint32_t kFiles = 3;    // of each thread

  SiloCluster(uint64_t seed_value, uint32_t node_count, uint32_t workers)
      : random_(seed_value),
        logged(node_count, workers, logged_options(), uint64_t{64} << 10),
        storages(logged.cluster()),
        files(logged.files()),
        nodes(logged.cluster(), files),
        start_epoch(logged.epoch()) {
    CHECK(logged.files().make_directory("/data/coordinator").has_value());
    for (uint32_t i = 0; i < logged.cluster().worker_count(); ++i) {
      works.emplace_back(seed_value, i, logged.cluster().worker_count());
    }
  }

  std::string work(uint64_t steps) {
    for (uint64_t i = 0; i < steps; ++i) {
      const auto who = static_cast<uint32_t>(random_() % works.size());
      std::string problem = works[who].step(logged.worker(who), storages);
      if (!problem.empty()) return problem;
      if (random_() % 40 == 0) next_epoch();
    }
    return {};
  }
  /// Inserts `count` records of the largest size into the Master-tree, so that each thread of a
  /// checkpoint writes several blocks.
  std::string insert_large(int count) {
    const MasterTree tree(*storages.tree);
    const std::string payload(MasterTree::kMaxPayloadBytes, 'x');
    for (int i = 0; i < count; ++i) {
      const std::string key = "large" + std::to_string(i);
      const Status status = logged.worker(0).run(
          [&](Transaction& txn) { return tree.insert(txn, as_key(key), as_key(payload)); });
      if (status != Status::ok) return std::string(to_string(status));
      if (i % 20 == 19) next_epoch();
    }
    return {};
  }
  void next_epoch() {
    const uint64_t epoch = logged.epoch();
    logged.tick();
    logged.close(epoch);
  }
  uint64_t durable_epoch() {
    return logged.cluster().view().control->epochs.durable.load(std::memory_order_acquire);
  }

  /// Divides the storages and begins checkpoint `id` on all nodes.
  Result<void> begin(uint64_t id) {
    metadata = {};
    metadata.id = id;
    metadata.replay_epoch = replay_epoch_of_checkpoint(logged.cluster().view().control->epochs);
    for (const StorageControl* storage : storages.all()) {
      metadata.storages.push_back({storage->id, storage->type, storage->name});
    }
    ATOLL_ASSIGN(const Json divided,
                 nodes.ask(0, ControlOperation::checkpoint_divide,
                           {{"parts", nodes.count() * kThreads}, {"storages", ids_of(storages)}}));
    const auto ranges = find_binary(divided, "ranges");
    CHECK(ranges);
    for (uint32_t node = 0; node < nodes.count(); ++node) {
      Json body = {{"checkpoint", id},
                   {"replay_epoch", metadata.replay_epoch},
                   {"threads", kThreads},
                   {"files", kFiles},
                   {"first_part", node * kThreads},
                   {"ranges", to_binary(*ranges)}};
      body.update(settings);
      ATOLL_TRY(nodes.ask(node, ControlOperation::checkpoint_begin, std::move(body)));
    }
    return {};
  }
  /// Waits for the files of all nodes, and installs the checkpoint.
  Result<void> finish() {
    for (uint32_t node = 0; node < nodes.count(); ++node) {
      ATOLL_ASSIGN(const Json ended,
                   nodes.ask(node, ControlOperation::checkpoint_wait,
                             {{"checkpoint", metadata.id}, {"timeout_ms", 60'000}}));
      CHECK(ended.at("done") == true);
      for (const Json& file : ended.at("files")) {
        metadata.files.push_back({file.at("directory"), static_cast<uint16_t>(node),
                                  file.at("writer"), file.at("number"), file.at("bytes"),
                                  file.at("records"), file.at("checksum")});
      }
      for (const Json& copied : ended.at("storages")) {
        for (CheckpointStorage& storage : metadata.storages) {
          if (copied.at("id") != storage.id) continue;
          storage.records = storage.records.value_or(0) + copied.at("records").get<uint64_t>();
        }
      }
    }
    metadata.end_epoch = end_epoch_of_checkpoint(logged.cluster().view().control->epochs);
    while (!is_end_durable(metadata, durable_epoch())) next_epoch();
    ATOLL_TRY(install_checkpoint(files, "/data", metadata, durable_epoch()));
    ATOLL_TRY(nodes.ask_all(ControlOperation::checkpoint_end,
                            {{"checkpoint", metadata.id}, {"keep", true}}));
    return {};
  }
  Result<void> take_checkpoint(uint64_t id) {
    ATOLL_TRY(begin(id));
    return finish();
  }

  ReplayPlan plan() {
    ReplayPlan plan;
    plan.checkpoint = metadata.id;
    plan.first_epoch = metadata.id != 0 ? metadata.replay_epoch : start_epoch;
    plan.cut_epoch = durable_epoch();
    plan.last_storage = ids_of(storages).back();
    for (uint32_t node = 0; node < nodes.count(); ++node) {
      LogStream stream;
      stream.directory = "/data";
      stream.node = static_cast<uint16_t>(node);
      stream.incarnation = 1;
      stream.start_epoch = start_epoch;
      plan.streams.push_back({stream, plan.cut_epoch});
    }
    return plan;
  }
  std::vector<std::string> checkpoint_files() {
    std::vector<std::string> found;
    for (const std::string& path : logged.files().paths()) {
      if (path.ends_with(".atcp")) found.push_back(path);
    }
    return found;
  }

 private:
  std::mt19937_64 random_;

 public:
  LoggedCluster logged;
  StagedStorages storages;
  LockedFileSystem files;
  ServiceNodes nodes;
  uint64_t start_epoch;
  CheckpointMetadata metadata;     // of the latest checkpoint
  Json settings = Json::object();  // further members of checkpoint.begin
  std::vector<RandomWork> works;
};

/// A cluster that replays the files of another one.
class ReplayedCluster {
 public:
  ReplayedCluster(FileSystem& image, const ReplayPlan& plan, uint32_t node_count, uint32_t workers,
                  const std::vector<Logger>& loggers = {})
      : cluster(node_count, workers, options(plan)),
        storages(cluster),
        files(image),
        nodes(cluster, files, loggers),
        plan_(plan) {}

  Result<void> replay() {
    const Json plan = {{"plan", to_binary(encode_replay_plan(plan_))}};
    ATOLL_TRY(nodes.ask_all(ControlOperation::replay_begin, plan));
    ATOLL_ASSIGN(read, nodes.ask_all(ControlOperation::replay_wait, {{"timeout_ms", 60'000}}));
    ATOLL_TRY(exchange());
    ATOLL_ASSIGN(ended, nodes.ask_all(ControlOperation::replay_wait, {{"timeout_ms", 60'000}}));
    cluster.view().control->epochs.settled.store(plan_.cut_epoch, std::memory_order_release);
    std::set<uint32_t> tombstones;
    for (const auto& answers : {read, ended}) {
      for (const Json& each : answers) {
        tombstones.merge(each.at("tombstones").get<std::set<uint32_t>>());
      }
    }
    std::vector<Json> shares(nodes.count(), Json::array());
    for (const uint32_t id : tombstones) shares[id % nodes.count()].push_back(id);
    for (uint32_t node = 0; node < nodes.count(); ++node) {
      ATOLL_TRY(nodes.ask(node, ControlOperation::replay_clean, {{"storages", shares[node]}}));
    }
    ATOLL_TRY(nodes.ask_all(ControlOperation::replay_wait, {{"timeout_ms", 60'000}}));
    ATOLL_TRY(nodes.ask_all(ControlOperation::replay_end, Json::object()));
    nodes.join_workers();
    return check();
  }

  TestCluster cluster;
  StagedStorages storages;
  LockedFileSystem files;
  ServiceNodes nodes;
  std::vector<Json> read;   // answers of the nodes after the files
  std::vector<Json> ended;  // those after the exchange
  uint64_t given = 0;       // records that nodes have given to others

 private:
  /// Lets each node take what the others have given to it.
  Result<void> exchange() {
    std::vector<std::vector<GivenFile>> for_node(nodes.count());
    for (const Json& each : read) {
      EXPECT_EQ(each.at("division"), read.front().at("division"));
      ATOLL_ASSIGN(const auto given_files, decode_given_files(*find_binary(each, "given")));
      for (const GivenFile& file : given_files) {
        given += file.run.records;
        for_node[file.to].push_back(file);
      }
    }
    for (uint32_t node = 0; node < nodes.count(); ++node) {
      ATOLL_TRY(nodes.ask(node, ControlOperation::replay_exchange,
                          {{"given", to_binary(encode_given_files(for_node[node]))}}));
    }
    return {};
  }

  static TestClusterOptions options(const ReplayPlan& plan) {
    TestClusterOptions options;
    options.clock = false;
    options.start_epoch = plan.cut_epoch + 10;
    return options;
  }
  /// Checks that the trees are sound and have no tombstones.
  Result<void> check() {
    for (StorageControl* storage : {storages.tree, storages.hash}) {
      TreeStatistics statistics;
      const std::string problem = check_tree(cluster.view(), *storage, statistics);
      if (!problem.empty()) return make_error(ExitCode::failed, problem);
      if (statistics.tombstones != 0) return make_error(ExitCode::failed, "tombstones are left");
    }
    return {};
  }

  ReplayPlan plan_;
};

inline std::string message_of(const Result<void>& result) {
  return result ? "" : result.error().message;
}

}  // namespace atolldb::test
