// Rules about the content of the log and the order of its writes (R26, R27). A body returns an
// error text, or an empty text if all is right. Needs the engine with sync points
// (`ATOLL_MUTANTS`).
#pragma once

#include <atomic>
#include <string>

#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/log/logged_cluster.h"

namespace atolldb::test {

/// A logged cluster with one worker, and a tree into which it puts numbers.
class LogStage {
 public:
  LogStage()
      : cluster_(1, 1, logged_options()),
        tree_(Kind::tree, cluster_.cluster().create("tree", StorageType::mastertree, 8)) {}

  LoggedCluster& cluster() { return cluster_; }
  Transaction& txn() { return *cluster_.worker(0).transaction; }
  void plan(uint64_t key) {
    CHECK(txn().begin() == Status::ok);
    CHECK(tree_.put(txn(), key, key) == Status::ok);
  }
  void commit() { CHECK(txn().commit() == Status::ok); }
  void put(uint64_t key) {
    plan(key);
    commit();
  }
  /// Returns the number of log records of this key. Also checks that the log is sound.
  size_t count_logged(uint64_t key, Problem& problem) {
    const LogContent content = read_logs(cluster_.files());
    problem.expect(content.defect.empty(), content.defect);
    const auto wanted = ordered_key(key);
    return static_cast<size_t>(std::ranges::count_if(content.records, [&](const auto& record) {
      return std::ranges::equal(record.key, wanted);
    }));
  }

 private:
  LoggedCluster cluster_;
  Table tree_;
};

/// The epoch advances during a transaction, and the logger writes the block in which the
/// transaction began.
inline std::string a_commit_in_a_later_epoch_leaves_the_block() {
  LogStage stage;
  Problem problem;
  stage.put(1);
  stage.plan(2);
  stage.cluster().tick();
  stage.cluster().close(stage.cluster().epoch() - 1);
  stage.commit();
  stage.cluster().tick();
  stage.cluster().close(stage.cluster().epoch() - 1);
  problem.expect(stage.count_logged(1, problem) == 1, "the first commit is not in the log");
  problem.expect(stage.count_logged(2, problem) == 1, "the second commit is not in the log");
  return problem.text();
}

/// A commit has passed its serialization point when the logger closes its epoch.
inline std::string closing_waits_for_commits_under_way() {
  LogStage stage;
  Problem problem;
  std::atomic<bool> logger_waits{false};
  std::atomic<bool> closes{false};
  {
    std::unique_ptr<Other> logger;
    const AtSyncPoints at_points([&](SyncPoint reached) {
      if (reached == SyncPoint::awaiting_closed)
        logger_waits.store(true, std::memory_order_release);
      if (reached != SyncPoint::verified || closes.exchange(true, std::memory_order_acq_rel))
        return;
      stage.cluster().tick();
      const uint64_t epoch = stage.cluster().epoch() - 1;
      logger = std::make_unique<Other>(
          [&stage, epoch] { CHECK(stage.cluster().logger(0).close(epoch).has_value()); });
      logger->wait_until([&] { return logger_waits.load(std::memory_order_acquire); });
    });
    stage.put(1);
    logger->join();
  }
  problem.expect(logger_waits.load(std::memory_order_acquire), "closed amid a commit");
  problem.expect(stage.count_logged(1, problem) == 1,
                 "a marker closes an epoch without its commit");
  return problem.text();
}

/// A thread that sees an epoch closed sees that the epoch has commits to make durable.
inline std::string a_commit_makes_its_epoch_dirty() {
  LogStage stage;
  Problem problem;
  const std::atomic<uint64_t>& dirty = stage.cluster().cluster().view().shared[0]->dirty_epoch;
  for (int epoch = 0; epoch < 3; ++epoch) {
    stage.put(1);
    stage.put(2);
    problem.expect(dirty.load(std::memory_order_seq_cst) == stage.cluster().epoch(),
                   "the node does not know that it is dirty");
    stage.cluster().tick();
  }
  return problem.text();
}

}  // namespace atolldb::test
