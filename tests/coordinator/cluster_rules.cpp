#include "tests/coordinator/cluster_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <sstream>
#include <thread>

#include "engine/log/savepoint.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "engine/snapshot/stored_snapshots.h"
#include "shared/file/posix_file_system.h"
#include "soc/procedure/procedure.h"
#include "tests/coordinator/one_record_cluster.h"
#include "tests/coordinator/staged_cluster.h"
#include "tests/support/procedure_call.h"

namespace atolldb::test {
namespace {

Status get_number_of(ProcedureContext& context) {
  StorageControl* storage = context.storage(kRecords, StorageType::array);
  if (storage == nullptr) return Status::storage_not_found;
  uint64_t value = 0;
  const Status status = Array(*storage).get(context.transaction(), 0, &value);
  context.set_output(std::to_string(value));
  return status;
}
ATOLL_REGISTER_PROCEDURE(kGetNumber, "test.get_number", get_number_of);

std::atomic<bool> is_blocked{false};
std::atomic<bool> may_go_on{false};

/// Reads the record, then stays in its transaction until the test releases it.
Status hold_record(ProcedureContext& context) {
  const Status status = get_number_of(context);
  is_blocked.store(true, std::memory_order_release);
  while (!may_go_on.load(std::memory_order_acquire)) std::this_thread::yield();
  return status;
}
ATOLL_REGISTER_PROCEDURE(kHoldRecord, "test.hold_record", hold_record);

/// Makes one commit. Returns its epoch.
Result<std::string> commit_once(JobContext& context) {
  StorageControl* storage = context.storage(kRecords, StorageType::array);
  const uint64_t value = 1;
  const Status status =
      run(context.transaction(), context.backoff(), kMaxEpoch, [&](Transaction& transaction) {
        return Array(*storage).update(transaction, 0, 0, sizeof value, &value);
      });
  if (status != Status::ok) return make_error(ExitCode::failed, std::string(to_string(status)));
  return std::to_string(context.transaction().commit_epoch());
}
ATOLL_REGISTER_JOB(kCommitOnce, "test.commit_once", commit_once);

/// Calls a procedure on the first worker; HeldTransaction uses the other worker. Returns the
/// output, or the status if it is not ok.
std::string call(StagedCluster& cluster, uint32_t node, const char* name, const char* input,
                 Isolation isolation = Isolation::serializable) {
  return output_of(
      call_procedure(cluster, node, name, input, {.worker = 0, .isolation = isolation}));
}
std::string put(StagedCluster& cluster, const char* number) {
  return call(cluster, 0, kPutNumber, number);
}
std::string read_snapshot(StagedCluster& cluster, uint32_t node) {
  return call(cluster, node, "test.get_number", "", Isolation::snapshot_read_only);
}

/// A transaction that stays open during the lifetime of this object.
class HeldTransaction {
 public:
  explicit HeldTransaction(StagedCluster& cluster) {
    is_blocked.store(false, std::memory_order_relaxed);
    may_go_on.store(false, std::memory_order_relaxed);
    auto session = cluster.connect_session(0);
    CHECK(session.has_value());
    session_ = *std::move(session);
    const auto ticket = session_->submit("test.hold_record", {}, {.worker = 1});
    CHECK(ticket.has_value());
    ticket_ = *ticket;
    while (!is_blocked.load(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~HeldTransaction() { end(); }
  HeldTransaction(const HeldTransaction&) = delete;
  HeldTransaction& operator=(const HeldTransaction&) = delete;
  void end() {
    may_go_on.store(true, std::memory_order_release);
    if (session_ != nullptr) session_->wait(ticket_);
    session_.reset();
  }

 private:
  std::unique_ptr<SessionClient> session_;
  SessionTicket ticket_ = 0;
};

/// Returns the ids of all snapshots that have a page file in the data directory.
std::set<uint32_t> stored_snapshots(const StagedCluster& cluster) {
  PosixFileSystem files;
  const std::string& data_dir = cluster.config().cluster.data_dir;
  std::set<uint32_t> ids;
  const auto stored = snapshot_files_in(files, data_dir, {data_dir});
  if (!stored) return ids;
  for (const StoredSnapshotFile& file : *stored) {
    if (file.kind == StoredSnapshotKind::pages) ids.insert(file.snapshot);
  }
  return ids;
}

}  // namespace

std::string requests_are_refused_until_the_loggers_are_listed() {
  StagedCluster cluster(1);
  std::string problem;
  const auto try_to_commit = [&](const char* when) {
    const std::string called = call(cluster, 0, kPutNumber, "1");
    if (called != to_string(Status::unavailable)) {
      problem = fmt::format("a call ends as {} {}", called, when);
    }
    // No job has this name. A node that accepts the request answers with another code.
    const auto job = cluster.call(0, ControlOperation::job_start, {{"name", kPutNumber}});
    const bool is_refused = !job && job.error().code == ExitCode::not_running;
    if (!is_refused) problem = fmt::format("a job is not refused {}", when);
  };
  cluster.start_nodes();
  try_to_commit("before the cluster is open");
  if (!problem.empty()) return problem;
  // The coordinator calls the opening node before the savepoint lists the node's loggers.
  bool has_asked = false;
  cluster.before_call = [&](uint32_t, ControlOperation, const Json&) {
    has_asked = true;
    try_to_commit("while the cluster opens");
  };
  cluster.open();
  cluster.before_call = {};
  if (!problem.empty()) return problem;
  if (!has_asked) return "the coordinator asked nothing: this has not shown much";
  PosixFileSystem files;
  const auto savepoint = read_savepoint(files, cluster.config().cluster.data_dir);
  if (!savepoint || !*savepoint) return "there is no savepoint";
  const Incarnation* running = (*savepoint)->savepoint.uncut();
  if (running == nullptr || running->loggers.empty()) return "the savepoint lists no logger";
  if (!create_records(cluster)) return "the storage cannot be created";
  const std::string committed = put(cluster, "1");
  return committed.empty() ? "" : "the open cluster answers " + committed;
}

std::string snapshots_are_of_durable_epochs() {
  StagedCluster cluster(1, std::chrono::milliseconds(60));
  cluster.start();
  if (!create_records(cluster)) return "the storage cannot be created";
  if (const auto committed = put(cluster, "1"); !committed.empty()) return committed;
  uint64_t durable_at_begin = 0;
  cluster.before_call = [&](uint32_t, ControlOperation operation, const Json&) {
    if (operation == ControlOperation::glean_prepare) durable_at_begin = cluster.durable_epoch();
  };
  const auto taken = cluster.coordinator(ControlOperation::snapshot_take);
  if (!taken) return taken.error().message;
  const uint64_t epoch = taken->at("epoch");
  if (epoch > durable_at_begin) {
    return fmt::format("the epoch {} of a snapshot was not durable when its run began: {} was",
                       epoch, durable_at_begin);
  }
  return durable_at_begin == 0 ? "no run has begun: this has not shown much" : "";
}

std::string files_are_kept_while_transactions_may_hold_their_pointers() {
  StagedCluster cluster(1);
  cluster.start();
  if (!create_records(cluster)) return "the storage cannot be created";
  const auto next_snapshot = [&](const char* number) {
    const std::string committed = put(cluster, number);
    if (!committed.empty()) return committed;
    const auto taken = cluster.coordinator(ControlOperation::snapshot_take);
    return taken ? "" : taken.error().message;
  };
  // Each snapshot replaces the only page of the storage, so it needs no file of an earlier one.
  constexpr uint32_t kSnapshots = 32;
  for (uint32_t i = 0; i < kSnapshots; ++i) {
    if (const auto problem = next_snapshot("1"); !problem.empty()) return problem;
  }
  {
    // The transaction may hold a pointer to a page of any of these snapshots.
    HeldTransaction held(cluster);
    if (const auto problem = next_snapshot("2"); !problem.empty()) return problem;
    if (!stored_snapshots(cluster).contains(kSnapshots)) {
      return "files go although a transaction runs that may hold a pointer to them";
    }
  }
  if (const auto problem = next_snapshot("3"); !problem.empty()) return problem;
  if (!stored_snapshots(cluster).contains(kSnapshots)) return "";
  return fmt::format("files of the snapshots {} stay although no one needs them",
                     fmt::join(stored_snapshots(cluster), ", "));
}

std::string every_open_names_the_files_of_kept_snapshots() {
  Config config = staged_config(1, std::chrono::milliseconds(2));
  config.snapshot.keep = 3;
  StagedCluster cluster(config);
  cluster.start();
  if (!create_records(cluster)) return "the storage cannot be created";
  std::string problem;
  size_t checks = 0;
  cluster.before_call = [&](uint32_t, ControlOperation operation, const Json& body) {
    if (operation != ControlOperation::snapshot_open) return;
    PosixFileSystem files;
    const auto read = read_savepoint(files, cluster.config().cluster.data_dir);
    if (!read || !*read) {
      problem = "the savepoint cannot be read";
      return;
    }
    for (const KeptSnapshot& kept : (*read)->savepoint.kept) {
      ++checks;
      const bool is_named = std::ranges::any_of(
          body.at("kept"), [&](const Json& place) { return place.at("snapshot") == kept.id; });
      if (!is_named) problem = fmt::format("an open names no file of kept snapshot {}", kept.id);
    }
  };
  for (const char* number : {"1", "2", "3"}) {
    if (const auto committed = put(cluster, number); !committed.empty()) return committed;
    const auto taken = cluster.coordinator(ControlOperation::snapshot_take);
    if (!taken) return taken.error().message;
  }
  cluster.before_call = {};
  if (!problem.empty()) return problem;
  return checks == 0 ? "no snapshot was kept: this has not shown much" : "";
}

std::string a_failed_publication_is_logged() {
  std::ostringstream log;
  const auto logger = std::make_shared<spdlog::logger>(
      "coordinator", std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
  {
    StagedCluster cluster(staged_config(1, std::chrono::milliseconds(2)), logger);
    cluster.start();
    if (!create_records(cluster)) return "the storage cannot be created";
    struct Step {
      const char* number;
      ControlOperation fails;
      const char* is_read;
    };
    // The second member names the request that fails. `status` is no request to a node, so it
    // stands for no failure.
    for (const Step& step : {Step{"1", ControlOperation::status, "1"},
                             Step{"2", ControlOperation::snapshot_publish, "1"},
                             Step{"3", ControlOperation::snapshot_withdraw, "3"},
                             Step{"4", ControlOperation::status, "4"}}) {
      if (const auto committed = put(cluster, step.number); !committed.empty()) return committed;
      cluster.fails_call = [&step](ControlOperation operation) { return operation == step.fails; };
      const auto taken = cluster.coordinator(ControlOperation::snapshot_take);
      cluster.fails_call = {};
      if (!taken) return taken.error().message;
      const std::string number = read_snapshot(cluster, 0);
      if (number != step.is_read) return fmt::format("{} is read, not {}", number, step.is_read);
    }
  }
  const std::string text = log.str();
  for (const char* line :
       {"snapshot 2 is not published: until the next snapshot or start, transactions read the "
        "older snapshot 1, and obsolete files remain: ",
        "obsolete files remain until the next snapshot or start: "}) {
    const size_t at = text.find(line);
    if (at == std::string::npos) return fmt::format("the log lacks \"{}\": {}", line, text);
    if (text.find(line, at + 1) != std::string::npos) return fmt::format("twice: {}", line);
  }
  return "";
}

std::string newest_snapshots_only_advance() {
  StagedCluster cluster(2);
  cluster.start();
  if (!create_records(cluster)) return "the storage cannot be created";
  std::string problem;
  std::atomic<bool> is_published_on_first{false};
  bool has_looked = false;
  std::string newest = "1";
  // The client reads on the node that has the new snapshot, then on the node that may lack it.
  const auto look = [&] {
    has_looked = true;
    for (const uint32_t node : {0u, 1u}) {
      const std::string number = read_snapshot(cluster, node);
      if (number != "1" && number != "2") {
        problem = fmt::format("node {} reads no snapshot: {}", node, number);
      } else if (number < newest) {
        problem = fmt::format("node {} reads {} after {}", node, number, newest);
      } else {
        newest = number;
      }
    }
  };
  if (const auto committed = put(cluster, "1"); !committed.empty()) return committed;
  if (const auto taken = cluster.coordinator(ControlOperation::snapshot_take); !taken)
    return taken.error().message;
  const auto is_second = [](ControlOperation operation, const Json& body) {
    return operation == ControlOperation::snapshot_publish && body.at("id") == 2;
  };
  cluster.after_call = [&](uint32_t node, ControlOperation operation, const Json& body) {
    if (node == 0 && is_second(operation, body))
      is_published_on_first.store(true, std::memory_order_release);
  };
  cluster.before_call = [&](uint32_t node, ControlOperation operation, const Json& body) {
    if (node != 1 || !is_second(operation, body) || has_looked) return;
    while (!is_published_on_first.load(std::memory_order_acquire)) std::this_thread::yield();
    look();
  };
  if (const auto committed = put(cluster, "2"); !committed.empty()) return committed;
  if (const auto taken = cluster.coordinator(ControlOperation::snapshot_take); !taken)
    return taken.error().message;
  cluster.before_call = {};
  cluster.after_call = {};
  if (!has_looked) return "no snapshot was published: this has not shown much";
  if (!problem.empty()) return problem;
  look();
  if (!problem.empty()) return problem;
  return newest == "2" ? "" : "the new snapshot is not read after all";
}

std::string the_first_snapshot_is_taken_when_it_is_asked_for() {
  StagedCluster cluster(2);
  cluster.start();
  if (!create_records(cluster)) return "the storage cannot be created";
  for (const Isolation isolation : {Isolation::snapshot, Isolation::snapshot_read_only}) {
    const std::string empty = call(cluster, 1, "test.get_number", "", isolation);
    if (empty != "0") {
      return fmt::format("{} on an empty database: {}", to_string(isolation), empty);
    }
  }
  const auto refused = cluster.coordinator(ControlOperation::snapshot_take);
  if (refused) return "a snapshot of nothing is taken, or said to be";
  if (!refused.error().message.contains("nothing has been committed yet")) {
    return "the error is: " + refused.error().message;
  }
  if (const auto committed = put(cluster, "7"); !committed.empty()) return committed;
  for (const uint32_t node : {1u, 0u}) {
    const std::string number = read_snapshot(cluster, node);
    if (number != "7") return "a commit is not in the first snapshot: " + number;
  }
  const auto status = cluster.coordinator(ControlOperation::status);
  return status && status->at("snapshots").at("newest") == 1 ? "" : "more than one was taken";
}

std::string jobs_are_done_when_their_commits_are_durable() {
  StagedCluster cluster(1, std::chrono::milliseconds(100));
  cluster.start();
  if (!create_records(cluster)) return "the storage cannot be created";
  const auto started = cluster.call(0, ControlOperation::job_start,
                                    {{"name", "test.commit_once"}, {"workers", Json::array({0})}});
  if (!started) return started.error().message;
  const auto done = cluster.call(0, ControlOperation::job_wait,
                                 {{"job", started->at("job")}, {"timeout_ms", 60'000}});
  const uint64_t durable = cluster.durable_epoch();
  if (!done) return done.error().message;
  const Json& output = done->at("outputs").at(0);
  if (output.at("ok") != true) return output.dump();
  const uint64_t epoch = std::stoull(output.at("output").get<std::string>());
  if (epoch == 0) return "it has committed nothing: this has not shown much";
  if (durable >= epoch) return "";
  return fmt::format("the job is done, its commit of epoch {} is not durable: {} is", epoch,
                     durable);
}

std::string drops_wait_for_transactions_and_hold_nothing_up() {
  StagedCluster cluster(1);
  cluster.start();
  if (!create_records(cluster)) return "the storage cannot be created";
  if (const auto committed = put(cluster, "1"); !committed.empty()) return committed;
  std::future<Result<Json>> dropped;
  std::atomic<bool> is_released{false};
  cluster.before_call = [&](uint32_t, ControlOperation operation, const Json&) {
    if (operation == ControlOperation::pages_release)
      is_released.store(true, std::memory_order_release);
  };
  {
    HeldTransaction held(cluster);
    dropped = cluster.begin_coordinator(ControlOperation::storage_drop, {{"name", kRecords}});
    // The DDL thread is free: it answers this request after it has hidden the name.
    const auto again = create_records(cluster);
    if (again) return "the name is given again although the drop is not logged";
    if (!again.error().message.contains("is being dropped")) return again.error().message;
    if (const auto taken = cluster.coordinator(ControlOperation::snapshot_take); !taken) {
      return "no snapshot while a drop waits: " + taken.error().message;
    }
    const auto list = cluster.coordinator(ControlOperation::storage_list);
    const Json storage = list->at("storages").at(0);
    if (storage.value("drop", "") != "waits for transactions that began before it") {
      return "the status does not say what the drop waits for: " + storage.dump();
    }
    if (is_released.load(std::memory_order_acquire)) return "pages go under a transaction";
  }
  const auto answer = dropped.get();
  if (!answer) return answer.error().message;
  return create_records(cluster) ? "" : "the name is not free after the drop";
}

std::string a_slow_list_of_damage_delays_no_ddl() {
  StagedCluster cluster(1);
  std::promise<void> is_asked;
  std::promise<void> may_answer;
  cluster.before_call = [&](uint32_t, ControlOperation operation, const Json&) {
    if (operation != ControlOperation::snapshot_damage) return;
    is_asked.set_value();
    may_answer.get_future().wait();
  };
  cluster.start();
  auto damage = cluster.begin_coordinator(ControlOperation::snapshot_damage, Json::object());
  is_asked.get_future().wait();
  auto created =
      cluster.begin_coordinator(ControlOperation::storage_create,
                                {{"name", kRecords}, {"type", "mastertree"}, {"payload_bytes", 8}});
  const auto waited = created.wait_for(StagedCluster::kPatience);
  may_answer.set_value();
  const auto answer = damage.get();
  if (!answer) return answer.error().message;
  if (answer->at("nodes").size() != 1) return "the answer lacks a node: " + answer->dump();
  if (waited != std::future_status::ready) return "a creation waits for a node's answer";
  const auto storage = created.get();
  return storage ? "" : storage.error().message;
}

}  // namespace atolldb::test
