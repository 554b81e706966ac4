// The control requests that a node serves.
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "engine/install/install.h"
#include "shared/base/base64.h"
#include "shared/base/try.h"
#include "soc/node/node.h"
#include "soc/node/placement.h"
#include "soc/procedure/execute.h"

namespace atolldb {
namespace {

Result<std::vector<std::byte>> input_of(const ControlRequest& request) {
  std::vector<std::byte> input;
  if (request.body.contains("input_base64")) {
    ATOLL_ASSIGN(const std::string text, get_text(request, "input_base64"));
    auto bytes = from_base64(text);
    if (!bytes) {
      return make_error(ExitCode::usage, request.op + ": member \"input_base64\" is no base64");
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

/// Reads the members `isolation` and `snapshot`. Without them the procedure's entry decides.
Result<TransactionMode> mode_of(const ControlRequest& request, Isolation usual) {
  TransactionMode mode{usual};
  if (request.body.contains("isolation")) {
    ATOLL_ASSIGN(const std::string name, get_text(request, "isolation"));
    const auto isolation = isolation_of(name);
    if (!isolation) {
      return make_error(ExitCode::usage, request.op + ": isolation \"" + name +
                                             "\": must be serializable, snapshot or "
                                             "snapshot_read_only");
    }
    mode.isolation = *isolation;
  }
  ATOLL_ASSIGN(const uint64_t snapshot, get_number_or(request, "snapshot", 0));
  mode.snapshot = static_cast<uint32_t>(std::min<uint64_t>(snapshot, UINT32_MAX));
  if (const std::string fault = fault_of(mode); !fault.empty()) {
    return make_error(ExitCode::usage, request.op + ": " + fault);
  }
  return mode;
}

std::unexpected<Error> refused(const ControlRequest& request, const Refusal& refusal) {
  const ExitCode code =
      refusal.status == Status::recovering ? ExitCode::recovering : ExitCode::not_running;
  return make_error(code, request.op + ": " + refusal.why);
}

Json answer_of(const ProcedureOutcome& outcome) {
  Json answer = {{"status", to_string(outcome.status)}};
  if (!outcome.message.empty()) answer["message"] = outcome.message;
  if (outcome.status != Status::ok) return answer;
  const std::string_view text(reinterpret_cast<const char*>(outcome.output.data()),
                              outcome.output.size());
  if (is_utf8(text)) {
    answer["output"] = text;
  } else {
    answer["output_base64"] = to_base64(outcome.output);
  }
  return answer;
}

}  // namespace

void Node::handle(const ControlRequest& request, ControlReply reply) {
  if (request.op == "describe") return describe(reply);
  if (request.op == "procedure.list") return list_procedures(reply);
  if (request.op == "job.wait") return wait_for_job(request, std::move(reply));
  if (request.op == "job.stop") return stop_job(request, reply);
  // The coordinator sends these requests also before the cluster runs: for the recovery (R32).
  const bool gleans = GleanService::serves(request);
  if (gleans || request.op.starts_with("snapshot.")) {
    // Acquire pairs with the release of `start`: the objects that serve these requests exist.
    const bool is_ready = attached_.load(std::memory_order_acquire) &&
                          state() == NodeState::running && gleaner_ != nullptr;
    if (!is_ready) {
      return reply(make_error(ExitCode::not_running, request.op + ": node " +
                                                         std::to_string(node_) +
                                                         ": does not run, or has no log to glean"));
    }
    if (gleans) return gleaner_->handle(request, std::move(reply));
    if (Installer::serves(request)) return installer_->handle(request, reply);
    if (request.op == "snapshot.open") return open_snapshots(request, reply);
    if (request.op == "snapshot.publish") return publish_snapshot(request, reply);
    if (request.op == "snapshot.damage") return reply(scrubber_->describe());
    if (request.op == "snapshot.withdraw") return withdraw_snapshots(request, reply);
    return reply(unknown_op(request));
  }
  if (request.op == "log.begin") return begin_logs(request, reply);
  if (request.op == "procedure.call") return call_procedure(request, std::move(reply));
  if (const auto refusal = refuse(Isolation::serializable)) {
    return reply(refused(request, *refusal));
  }
  if (request.op == "job.start") return start_job(request, reply);
  if (request.op == "pages.release") return release_pages(request, std::move(reply));
  reply(unknown_op(request));
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
    // A negative ordinal converts to a large one.
    if (!worker.is_number_integer() || worker.get<uint64_t>() >= workers_.size()) return wrong();
    const auto ordinal = worker.get<uint32_t>();
    if (std::find(chosen.begin(), chosen.end(), ordinal) != chosen.end()) return wrong();
    chosen.push_back(ordinal);
  }
  return chosen;
}

void Node::start_job(const ControlRequest& request, const ControlReply& reply) {
  const Result<std::string> name = get_text(request, "name");
  if (!name) return reply(std::unexpected(name.error()));
  const Result<JobFunction> function = registry_.job(*name);
  if (!function) return reply(std::unexpected(function.error()));
  const Result<std::vector<std::byte>> input = input_of(request);
  if (!input) return reply(std::unexpected(input.error()));
  const Result<std::vector<uint32_t>> workers = chosen_workers(request);
  if (!workers) return reply(std::unexpected(workers.error()));
  const std::string text(reinterpret_cast<const char*>(input->data()), input->size());
  const Result<std::shared_ptr<Job>> added = jobs_.add(*name, text, *workers);
  if (!added) return reply(std::unexpected(added.error()));
  const auto count = static_cast<uint32_t>(workers_.size());
  for (const uint32_t ordinal : *workers) {
    const auto submitted = workers_[ordinal]->submit([this, job = *added, function = *function,
                                                      count](WorkerEnvironment& environment) {
      auto output = execute_job(environment, function, job->input, count, job->stop);
      // This bound covers all commits of the job and costs its transactions nothing (R59).
      jobs_.finish_worker(job->id, environment.ordinal, std::move(output), latest_commit_epoch());
    });
    // The other workers run. The job's outputs say which worker did not.
    if (!submitted) {
      jobs_.finish_worker((*added)->id, ordinal, std::unexpected(submitted.error()), 0);
    }
  }
  reply(Json{{"job", (*added)->id}});
}

void Node::wait_for_job(const ControlRequest& request, ControlReply reply) {
  constexpr uint64_t kMaxWaitMs = 24u * 3600 * 1000;
  const Result<uint64_t> job = get_number(request, "job");
  if (!job) return reply(std::unexpected(job.error()));
  const Result<uint64_t> timeout_ms = get_number_or(request, "timeout_ms", 0);
  if (!timeout_ms) return reply(std::unexpected(timeout_ms.error()));
  const auto timeout = std::chrono::milliseconds(std::min(*timeout_ms, kMaxWaitMs));
  jobs_.wait(*job, JobTable::Clock::now() + timeout, std::move(reply));
  {
    const std::lock_guard guard(mutex_);
    deadlines_changed_ = true;
  }
  housekeeper_wake_.notify_one();
}

void Node::stop_job(const ControlRequest& request, const ControlReply& reply) {
  const Result<uint64_t> job = get_number(request, "job");
  if (!job) return reply(std::unexpected(job.error()));
  const Result<void> stopped = jobs_.stop(*job);
  if (!stopped) return reply(std::unexpected(stopped.error()));
  reply(Json::object());
}

void Node::call_procedure(const ControlRequest& request, ControlReply reply) {
  const Result<std::string> name = get_text(request, "name");
  if (!name) return reply(std::unexpected(name.error()));
  const Result<ProcedureFunction> function = registry_.procedure(*name);
  if (!function) return reply(std::unexpected(function.error()));
  Result<std::vector<std::byte>> input = input_of(request);
  if (!input) return reply(std::unexpected(input.error()));
  const Result<TransactionMode> mode = mode_of(request, registry_.isolation(*name));
  if (!mode) return reply(std::unexpected(mode.error()));
  if (const auto refusal = refuse(mode->isolation)) return reply(refused(request, *refusal));
  // Relaxed: any worker can run the call; the turn only spreads the load.
  const uint32_t turn = next_worker_.fetch_add(1, std::memory_order_relaxed);
  const auto count = static_cast<uint32_t>(workers_.size());
  const Result<uint64_t> worker = get_number_or(request, "worker", turn % count);
  if (!worker) return reply(std::unexpected(worker.error()));
  if (*worker >= count) {
    return reply(make_error(ExitCode::usage, request.op + ": worker " + std::to_string(*worker) +
                                                 ": node " + std::to_string(node_) +
                                                 " has workers 0 to " + std::to_string(count - 1) +
                                                 ": choose one of them, or none"));
  }
  auto task = [input = *std::move(input), function = *function, deadline = procedure_deadline(),
               mode = *mode, reply, this](WorkerEnvironment& environment) {
    const ProcedureOutcome outcome =
        execute_procedure(environment, function, input, deadline, kMaxProcedureOutputBytes, mode);
    // The client learns the outcome when it is durable, as for a session's request (R19, R20).
    answers_->add(outcome.commit_epoch, [reply, answer = answer_of(outcome)](bool is_durable) {
      reply(is_durable ? answer : Json{{"status", to_string(Status::outcome_unknown)}});
    });
  };
  const auto submitted = workers_[*worker]->submit(std::move(task));
  if (!submitted) reply(std::unexpected(submitted.error()));
}

void Node::list_procedures(const ControlReply& reply) const {
  Json list = Json::array();
  for (const auto& [name, entry] : registry_.entries()) {
    list.push_back({{"name", name},
                    {"kind", entry.entry.job != nullptr ? "job" : "procedure"},
                    {"origin", entry.origin}});
  }
  reply(Json{{"procedures", std::move(list)}});
}

void Node::release_pages(const ControlRequest& request, ControlReply reply) {
  const Result<uint64_t> id = get_number(request, "storage_id");
  if (!id) return reply(std::unexpected(id.error()));
  StorageControl& storage = view_.control->storages[*id % kMaxStorages];
  // Acquire pairs with the coordinator's release when it hid the storage.
  const auto state = static_cast<StorageState>(storage.state.load(std::memory_order_acquire));
  if (storage.id != *id || state != StorageState::dropping) {
    return reply(make_error(ExitCode::failed, "storage " + std::to_string(*id) +
                                                  ": is not being dropped: only the coordinator "
                                                  "releases pages"));
  }
  give_to_housekeeper([&storage, reply = std::move(reply)](WorkerContext& context) {
    reply(Json{{"pages", release_storage(context, storage)}});
  });
}

void Node::describe(const ControlReply& reply) const {
  Json answer = {{"node", node_},
                 {"pid", getpid()},
                 {"workers", workers_.size()},
                 {"numa_node", numa_node_of(config_, node_, machine_)},
                 {"cpus", config_.nodes[node_].cpus}};
  reply(std::move(answer));
}

}  // namespace atolldb
