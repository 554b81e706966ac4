#include "tests/coordinator/checkpoint_rules.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "soc/procedure/procedure.h"
#include "tests/coordinator/one_record_cluster.h"
#include "tests/coordinator/two_nodes.h"
#include "tests/support/procedure_call.h"

namespace atolldb::test {
namespace {

/// Calls a procedure on the first worker of node 0. Returns its output, or the status if it is not
/// ok.
std::string call(StagedCluster& cluster, const char* name, const char* input) {
  return output_of(call_procedure(cluster, 0, name, input, {.worker = 0}));
}

/// Waits until the clock has ticked a few times.
void await_ticks(const EpochBlock& epochs) {
  const uint64_t last = epochs.current.load(std::memory_order_relaxed) + 3;
  while (epochs.current.load(std::memory_order_relaxed) < last) std::this_thread::yield();
}

/// Starts the cluster and stores the number 7. Returns the problem, or an empty text.
std::string start_with_a_number(StagedCluster& cluster) {
  cluster.start();
  if (const auto created = create_records(cluster); !created) return created.error().message;
  if (const std::string put = call(cluster, kPutNumber, "7"); !put.empty()) return "put: " + put;
  return {};
}

/// While it is false, the transactions of "test.hold" do not end.
std::atomic<bool> may_end{false};
std::atomic<bool> is_held{false};

Status hold(ProcedureContext&) {
  is_held.store(true, std::memory_order_release);
  while (!may_end.load(std::memory_order_acquire)) std::this_thread::yield();
  return Status::ok;
}
ATOLL_REGISTER_PROCEDURE(kHoldProcedure, "test.hold", hold);

}  // namespace

Config checkpoint_config(uint32_t nodes) {
  Config config = staged_config(nodes, std::chrono::milliseconds(2));
  config.durability.scheme = DurabilityScheme::silor;
  config.durability.checkpoint_interval = std::chrono::milliseconds(0);
  return config;
}

std::string the_settled_epoch_is_held_until_all_nodes_have_replayed() {
  StagedCluster cluster(checkpoint_config(2));
  if (std::string failed = start_with_a_number(cluster); !failed.empty()) return failed;
  cluster.restart();
  std::mutex mutex;
  std::string problem;
  uint32_t waits = 0;
  uint32_t exchanges = 0;
  uint32_t cleans = 0;
  uint32_t waiting = 0;  // requests replay.wait that are under way
  const auto check = [&](bool is_right, const char* text) {
    if (!is_right && problem.empty()) problem = text;
  };
  cluster.before_call = [&](uint32_t, ControlOperation operation, const Json&) {
    const std::lock_guard guard(mutex);
    const EpochBlock& epochs = cluster.control().epochs;
    const auto settled = [&] { return epochs.settled.load(std::memory_order_relaxed); };
    if (operation == ControlOperation::replay_wait) ++waiting;
    if (operation == ControlOperation::replay_wait && cleans == 0) {
      await_ticks(epochs);
      check(settled() == 0, "the settled epoch has risen before the end of the replay");
      ++waits;
    } else if (operation == ControlOperation::replay_exchange) {
      check(waits >= 2 && waiting == 0, "records are exchanged while a node replays its files");
      check(settled() == 0, "the settled epoch has risen before the exchange");
      ++exchanges;
    } else if (operation == ControlOperation::replay_clean) {
      check(settled() + 1 >= cluster.control().start_epoch,
            "tombstones are removed before the settled epoch has reached the cut");
      ++cleans;
    }
  };
  cluster.after_call = [&](uint32_t, ControlOperation operation, const Json&) {
    const std::lock_guard guard(mutex);
    if (operation == ControlOperation::replay_wait) --waiting;
  };
  cluster.start();
  check(waits >= 4 && exchanges == 2 && cleans == 2, "a node was not asked to replay");
  const std::string number = call(cluster, "test.get_number", "");
  if (problem.empty() && number != "7") problem = "the record has the value " + number;
  cluster.before_call = {};
  cluster.after_call = {};
  return problem;
}

std::string nodes_exchange_when_all_have_read_their_files() {
  // Nodes that obey the rule exchange nothing during the pause, so it lasts to its end. Under the
  // mutant it ends with the exchange, but node 0 may take long to read its files.
  const std::chrono::milliseconds pause(fault::exchange_amid_files ? 10'000 : 100);
  StagedCluster cluster(checkpoint_config(2));
  if (std::string failed = start_with_a_number(cluster); !failed.empty()) return failed;
  cluster.restart();
  std::mutex mutex;
  std::condition_variable changed;
  // The next members are guarded by the mutex.
  bool has_paused = false;
  bool has_answered = false;  // node 1, for the first time
  uint32_t exchanges = 0;
  std::string problem;
  cluster.before_call = [&](uint32_t node, ControlOperation operation, const Json&) {
    std::unique_lock lock(mutex);
    if (operation == ControlOperation::replay_exchange) {
      ++exchanges;
      if (!has_answered) problem = "records are exchanged while a node reads its files";
      changed.notify_all();
    }
    if (operation != ControlOperation::replay_wait || node != 1 || has_paused) return;
    has_paused = true;
    changed.wait_for(lock, pause, [&] { return exchanges != 0; });
  };
  cluster.after_call = [&](uint32_t node, ControlOperation operation, const Json&) {
    const std::lock_guard guard(mutex);
    if (node == 1 && operation == ControlOperation::replay_wait) has_answered = true;
  };
  cluster.start();
  const std::string number = call(cluster, "test.get_number", "");
  cluster.before_call = {};
  cluster.after_call = {};
  if (problem.empty() && exchanges != 2) problem = "a node was not asked to exchange";
  if (problem.empty() && number != "7") problem = "the record has the value " + number;
  return problem;
}

std::string different_divisions_of_the_files_are_refused() {
  TwoNodes nodes;
  const auto recovered = nodes.recover("some");
  if (recovered) return "the recovery has succeeded";
  if (!nodes.taken.empty()) return "records were exchanged";
  const std::string& message = recovered.error().message;
  return message.find("\"all\", \"some\"") != std::string::npos ? "" : message;
}

std::string a_storage_that_is_created_during_a_checkpoint_loses_nothing() {
#ifdef ATOLL_MUTANTS
  StagedCluster* target = nullptr;
  std::string problem;
  std::atomic<bool> has_created{false};
  at_sync_point = [&](SyncPoint point) {
    if (point != SyncPoint::listing_storages ||
        has_created.exchange(true, std::memory_order_relaxed))
      return;
    const auto created = create_records(*target);
    const std::string put = created ? call(*target, kPutNumber, "7") : created.error().message;
    if (!put.empty()) problem = "put: " + put;
  };
  {
    StagedCluster cluster(checkpoint_config(1));
    target = &cluster;
    cluster.start();
    const auto taken = cluster.coordinator(ControlOperation::checkpoint_take);
    if (!taken) problem = taken.error().message;
    cluster.restart();
    cluster.start();
    const std::string number = call(cluster, "test.get_number", "");
    if (problem.empty() && number != "7") problem = "the record has the value " + number;
  }
  at_sync_point = {};
  return problem;
#else
  return "the build has no sync points";
#endif
}

std::string checkpoints_wait_for_drops_that_are_not_logged() {
  StagedCluster cluster(checkpoint_config(1));
  if (std::string failed = start_with_a_number(cluster); !failed.empty()) return failed;
  may_end.store(false, std::memory_order_release);
  is_held.store(false, std::memory_order_release);
  std::string problem;
  {
    const std::jthread holder([&] { call(cluster, "test.hold", ""); });
    while (!is_held.load(std::memory_order_acquire)) std::this_thread::yield();
    const std::jthread dropper([&] {
      static_cast<void>(cluster.coordinator(ControlOperation::storage_drop, {{"name", kRecords}}));
    });
    const StorageControl& storage = cluster.control().storages[1];
    const auto state = [&] {
      return static_cast<StorageState>(storage.state.load(std::memory_order_acquire));
    };
    while (state() == StorageState::ready) std::this_thread::yield();
    std::future<bool> taken = std::async(std::launch::async, [&] {
      return cluster.coordinator(ControlOperation::checkpoint_take).has_value();
    });
    if (taken.wait_for(std::chrono::milliseconds(300)) == std::future_status::ready) {
      problem = "the checkpoint does not wait for the drop";
    }
    may_end.store(true, std::memory_order_release);
    if (!taken.get() && problem.empty()) problem = "no checkpoint is taken after the drop";
  }
  return problem;
}

}  // namespace atolldb::test
