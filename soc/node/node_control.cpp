// The control requests that a node serves, and its admission of client requests.
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "engine/install/install.h"
#include "shared/base/base64.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/memory/state_names.h"
#include "shared/process/config_reload.h"
#include "soc/node/node.h"
#include "soc/node/node_segments.h"
#include "soc/procedure/execute.h"

namespace atolldb {
namespace {

/// Reads the input, which is given as bytes, as base64 text, or as plain text.
Result<std::vector<std::byte>> input_of(const ControlRequest& request) {
  std::vector<std::byte> input;
  if (const auto binary = find_binary(request.body, "input")) {
    input.assign(binary->begin(), binary->end());
  } else if (request.body.contains("input_base64")) {
    ATOLL_ASSIGN(const std::string text, get_text(request, "input_base64"));
    auto bytes = from_base64(text);
    if (!bytes) {
      return make_error(ExitCode::usage, request.op + ": member \"input_base64\" is not base64");
    }
    input = *std::move(bytes);
  } else if (request.body.contains("input")) {
    ATOLL_ASSIGN(const std::string text, get_text(request, "input"));
    const auto bytes = std::as_bytes(std::span(text));
    input.assign(bytes.begin(), bytes.end());
  }
  if (input.size() > kMaxProcedureInputBytes) {
    return make_error(ExitCode::usage, request.op + ": the input has " +
                                           std::to_string(input.size()) +
                                           " bytes, more than the limit of " +
                                           std::to_string(kMaxProcedureInputBytes));
  }
  return input;
}

/// Reads the time for which a request may wait.
Result<std::chrono::milliseconds> timeout_of(const ControlRequest& request) {
  constexpr uint64_t kMaxWaitMs = 24u * 3600 * 1000;
  ATOLL_ASSIGN(const uint64_t timeout_ms, get_number_or(request, "timeout_ms", 0));
  return std::chrono::milliseconds(std::min(timeout_ms, kMaxWaitMs));
}

/// Replies with the answer. If it is an error, returns the error and does not reply.
Result<void> give(const ControlReply& reply, const Result<Json>& answer) {
  if (!answer) return std::unexpected(answer.error());
  reply(answer);
  return {};
}

/// Joins the answers of the local and of the network sessions. A session that is to be killed is in
/// one of both.
Result<Json> join_sessions(const ControlRequest& request, const Result<Json>& local,
                           const Result<Json>& remote) {
  const bool names_one =
      request.operation == ControlOperation::session_kill && request.body.contains("session");
  if (!local && !(names_one && remote)) return local;
  if (!remote && !names_one) return remote;
  Json sessions = Json::array();
  for (const Result<Json>* each : {&local, &remote}) {
    if (!*each) continue;
    for (const Json& session : (*each)->value("sessions", Json::array())) {
      sessions.push_back(session);
    }
  }
  return Json{{"sessions", std::move(sessions)}};
}

}  // namespace

void Node::handle(const ControlRequest& request, const ControlReply& reply) {
  const Result<void> served = serve(request, reply);
  if (!served) reply(std::unexpected(served.error()));
}

Result<void> Node::serve(const ControlRequest& request, const ControlReply& reply) {
  if (!is_served_by(ControlServers::nodes, request.operation)) return unknown_op(request);
  switch (request.operation) {
    case ControlOperation::describe:
      return give(reply, describe());
    case ControlOperation::procedure_list:
      return give(reply, list_procedures(request));
    case ControlOperation::job_start:
      ATOLL_TRY(admit(request, Isolation::serializable));
      return give(reply, start_job(request));
    case ControlOperation::job_wait:
      return wait_for_job(request, reply);
    case ControlOperation::job_stop:
      return give(reply, stop_job(request));
    case ControlOperation::session_list:
    case ControlOperation::session_kill:
    case ControlOperation::library_prepare:
    case ControlOperation::library_publish:
    case ControlOperation::library_discard:
      return serve_running(request, reply);
    case ControlOperation::config_reload:
      return give(reply, reload_config(request));
    case ControlOperation::log_begin:
      return give(reply, begin_logs(request));
    case ControlOperation::checkpoint_divide:
    case ControlOperation::checkpoint_begin:
    case ControlOperation::checkpoint_wait:
    case ControlOperation::checkpoint_end:
    case ControlOperation::replay_begin:
    case ControlOperation::replay_wait:
    case ControlOperation::replay_exchange:
    case ControlOperation::replay_clean:
    case ControlOperation::replay_end:
      return serve_checkpoints(request, reply);
    case ControlOperation::pages_release:
      ATOLL_TRY(admit(request, Isolation::serializable));
      return release_pages(request, reply);
    default:
      // These requests need no running cluster, because the coordinator also sends them for a
      // recovery (R32).
      return serve_snapshots(request, reply);
  }
}

/// Applies new values to this node.
Result<Json> Node::reload_config(const ControlRequest& request) {
  // Acquire, in both loads, pairs with the releases that changed the states: the scrubber exists in
  // the state `running`, unless the cluster keeps no log.
  if (!attached_.load(std::memory_order_acquire) || state() != NodeState::running) {
    return make_error(ExitCode::not_running, request.op + ": node " + std::to_string(node_) +
                                                 " is not running: try again when it does");
  }
  const std::lock_guard guard(reload_mutex_);
  ATOLL_ASSIGN(const Config wanted,
               reload_values(config_, request.body.value("values", Json()), logger_));
  if (scrubber_ != nullptr) {
    scrubber_->set_pace(wanted.snapshot.scrub_rate, wanted.snapshot.scrub_interval);
  }
  return Json::object();
}

Result<void> Node::serve_snapshots(const ControlRequest& request, const ControlReply& reply) {
  // Acquire pairs with the release of `start`: the objects that serve these requests exist.
  const bool is_ready = attached_.load(std::memory_order_acquire) &&
                        state() == NodeState::running && scrubber_ != nullptr;
  if (!is_ready) {
    return make_error(ExitCode::not_running,
                      request.op + ": node " + std::to_string(node_) +
                          ": is not running, or keeps no log: durability.mode is \"off\"");
  }
  if (request.operation == ControlOperation::snapshot_damage) {
    return give(reply, scrubber_->describe());
  }
  if (snapshot_jobs_ == nullptr) {
    return make_error(ExitCode::failed,
                      request.op + ": node " + std::to_string(node_) +
                          ": there are no snapshots, because durability.scheme is \"silor\"");
  }
  switch (request.operation) {
    case ControlOperation::glean_prepare:
    case ControlOperation::glean_capture:
    case ControlOperation::glean_map:
    case ControlOperation::glean_wait:
    case ControlOperation::glean_end:
      snapshot_jobs_->handle(request, reply);
      return {};
    case ControlOperation::snapshot_align:
    case ControlOperation::snapshot_install:
      installer_->handle(request, reply);
      return {};
    case ControlOperation::snapshot_open:
      return give(reply, open_snapshots(request));
    case ControlOperation::snapshot_publish:
      return give(reply, publish_snapshot(request));
    case ControlOperation::snapshot_withdraw:
      return give(reply, withdraw_snapshots(request));
    case ControlOperation::snapshot_reads:
      return give(reply, take_recent_reads());
    default:
      return unknown_op(request);
  }
}

Result<void> Node::serve_running(const ControlRequest& request, const ControlReply& reply) {
  // Acquire, in both loads, pairs with the releases that changed the states: sessions_ and
  // reloader_ exist in the state `running` and in later states, which include a recovery of the
  // cluster.
  if (!attached_.load(std::memory_order_acquire) || state() < NodeState::running) {
    return make_error(ExitCode::not_running,
                      request.op + ": node " + std::to_string(node_) + ": starts: try again later");
  }
  const bool is_of_session = request.operation == ControlOperation::session_list ||
                             request.operation == ControlOperation::session_kill;
  if (!is_of_session) {
    reloader_->handle(request, reply);
    return {};
  }
  if (network_ == nullptr) {
    sessions_->handle(request, reply);
    return {};
  }
  // Both kinds of sessions answer, one after the other.
  sessions_->handle(request, [request, reply, this](const Result<Json>& local) {
    network_->handle(request, [request, reply, local](const Result<Json>& remote) {
      reply(join_sessions(request, local, remote));
    });
  });
  return {};
}

std::optional<Refusal> Node::refuse(Isolation isolation) const {
  // Acquire, in both loads, pairs with the releases that changed the states.
  const bool runs = attached_.load(std::memory_order_acquire) && state() == NodeState::running;
  const auto cluster =
      runs ? static_cast<ClusterState>(view_.control->state.load(std::memory_order_acquire))
           : ClusterState::starting;
  // The state becomes `running` only after the savepoint lists this node's loggers (R28).
  if (cluster == ClusterState::running) return std::nullopt;
  if (runs && fault::requests_before_listed) return std::nullopt;
  const std::string name = "node " + std::to_string(node_) + ": ";
  if (cluster != ClusterState::recovering) {
    return Refusal{Status::unavailable, name + "the cluster starts or stops: try again later"};
  }
  // A transaction that only reads a snapshot depends on nothing that recovery makes, and changes
  // nothing that recovery could miss (R19).
  const bool may_read = isolation == Isolation::snapshot_read_only && snapshots_ != nullptr &&
                        snapshots_->published().newest() != 0;
  if (may_read) return std::nullopt;
  const bool has_snapshots = config_.durability.scheme == DurabilityScheme::gleaned;
  return Refusal{Status::recovering, name + recovery_text(*view_.control, has_snapshots)};
}

Result<void> Node::admit(const ControlRequest& request, Isolation isolation) const {
  const auto refusal = refuse(isolation);
  if (!refusal) return {};
  const ExitCode code =
      refusal->status == Status::recovering ? ExitCode::recovering : ExitCode::not_running;
  return make_error(code, request.op + ": " + refusal->why);
}

Result<std::vector<uint32_t>> Node::chosen_workers(const ControlRequest& request) const {
  std::vector<uint32_t> chosen;
  const Json workers = request.body.value("workers", Json("all"));
  if (workers == "all") {
    for (uint32_t ordinal = 0; ordinal < workers_.size(); ++ordinal) chosen.push_back(ordinal);
    return chosen;
  }
  const auto wrong = [&] {
    return make_error(ExitCode::usage, request.op +
                                           ": member \"workers\" must be \"all\" or a list of "
                                           "different ordinals below " +
                                           std::to_string(workers_.size()));
  };
  if (!workers.is_array() || workers.empty()) return wrong();
  for (const Json& worker : workers) {
    // A negative ordinal is rejected, too, because it converts to a large number.
    if (!worker.is_number_integer() || worker.get<uint64_t>() >= workers_.size()) return wrong();
    const auto ordinal = worker.get<uint32_t>();
    if (std::find(chosen.begin(), chosen.end(), ordinal) != chosen.end()) return wrong();
    chosen.push_back(ordinal);
  }
  return chosen;
}

Result<Json> Node::start_job(const ControlRequest& request) {
  ATOLL_ASSIGN(const std::string name, get_text(request, "name"));
  ATOLL_ASSIGN(const JobFunction function, registry_.job(name));
  ATOLL_ASSIGN(const std::vector<std::byte> input, input_of(request));
  ATOLL_ASSIGN(const std::vector<uint32_t> workers, chosen_workers(request));
  const std::string text(reinterpret_cast<const char*>(input.data()), input.size());
  ATOLL_ASSIGN(const std::shared_ptr<Job> job, jobs_.add(name, text, workers));
  const auto count = static_cast<uint32_t>(workers_.size());
  for (const uint32_t ordinal : workers) {
    const auto submitted = workers_[ordinal]->submit([this, job, function,
                                                      count](WorkerEnvironment& environment) {
      // A client may have stopped many jobs that wait for a worker.
      Result<std::string> output =
          job->stop.load(std::memory_order_relaxed)
              ? make_error(ExitCode::failed, "the job was stopped before it began")
              : execute_job(environment, function, job->input, count, job->stop);
      // latest_commit_epoch() is an upper bound for the epochs of the job's commits. So the
      // transactions of the job need not record their epochs (R59).
      jobs_.finish_worker(job->id, environment.ordinal, std::move(output), latest_commit_epoch());
    });
    // One worker did not take the task, but the others run the job. The output for this worker is
    // the error.
    if (!submitted) {
      jobs_.finish_worker(job->id, ordinal, std::unexpected(submitted.error()), 0);
    }
  }
  return Json{{"job", job->id}};
}

Result<void> Node::wait_for_job(const ControlRequest& request, const ControlReply& reply) {
  ATOLL_ASSIGN(const uint64_t job, get_number(request, "job"));
  ATOLL_ASSIGN(const auto timeout, timeout_of(request));
  jobs_.wait(job, JobTable::Clock::now() + timeout, reply);
  {
    const std::lock_guard guard(mutex_);
    deadlines_changed_ = true;
  }
  housekeeper_wake_.notify_one();
  return {};
}

Result<Json> Node::stop_job(const ControlRequest& request) {
  ATOLL_ASSIGN(const uint64_t job, get_number(request, "job"));
  ATOLL_TRY(jobs_.stop(job));
  return Json::object();
}

Result<Json> Node::list_procedures(const ControlRequest& request) const {
  const Json counts = request.body.value("counts", Json(false));
  if (!counts.is_boolean()) {
    return make_error(ExitCode::usage, request.op + ": member \"counts\" must be a boolean");
  }
  Json list = Json::array();
  for (const auto& [name, entry] : registry_.entries()) {
    list.push_back({{"name", name},
                    {"kind", entry.job != nullptr ? "job" : "procedure"},
                    {"origin", entry.origin}});
  }
  Json answer = {{"procedures", std::move(list)}};
  if (!counts.get<bool>()) return answer;
  // Acquire, in both loads, pairs with the releases that changed the states: the metrics exist in
  // the state `running` and in later states.
  if (!attached_.load(std::memory_order_acquire) || state() < NodeState::running) {
    return make_error(ExitCode::not_running,
                      request.op + ": node " + std::to_string(node_) + ": starts: try again later");
  }
  answer["calls"] = procedure_counts_json(*procedure_metrics_);
  return answer;
}

Result<void> Node::release_pages(const ControlRequest& request, const ControlReply& reply) {
  ATOLL_ASSIGN(const uint64_t id, get_number(request, "storage_id"));
  StorageControl& storage = view_.control->storages[id % kMaxStorages];
  // Acquire pairs with the coordinator's release when it hid the storage.
  const auto state = static_cast<StorageState>(storage.state.load(std::memory_order_acquire));
  if (storage.id != id || state != StorageState::dropping) {
    return make_error(ExitCode::failed,
                      "storage " + std::to_string(id) +
                          ": is not being dropped: only the coordinator releases pages");
  }
  give_to_housekeeper([&storage, reply](WorkerContext& context) {
    reply(Json{{"pages", release_storage(context, storage)}});
  });
  return {};
}

Json Node::network_endpoint() const {
  if (network_ == nullptr) return {};
  return {{"endpoint", network_->endpoint()}, {"key", network_->public_key()}};
}

Json Node::describe() const {
  return {{"node", node_},
          {"pid", getpid()},
          {"workers", workers_.size()},
          {"numa_node", numa_node_of(config_, node_, machine_)},
          {"cpus", config_.nodes[node_].cpus}};
}

}  // namespace atolldb
