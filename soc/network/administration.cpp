#include "soc/network/administration.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/message/control_client.h"
#include "shared/network/wire.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

/// A node and the coordinator answer these requests within milliseconds, unless all processors are
/// busy. Requests that change the catalog have kDdlTimeout, and their own queue.
constexpr std::chrono::milliseconds kShortTimeout{10'000};
/// Most bytes of a job's name that an error repeats.
constexpr size_t kMaxJobNameText = 60;
/// Most bytes of the entries of a list in one answer.
constexpr size_t kListBytes = 32u << 10;
/// Most bytes of one entry. An answer has at least one, and other members of less than 1 KiB.
constexpr size_t kMaxEntryBytes = kSessionPartBytes - 1024;
static_assert(kMaxEntryBytes > kListBytes);

/// Jobs that network clients may start: those of `atoll bench ... --connect`. A job gets a worker
/// for itself, with an input that it parses. So the jobs of a run, and those of libraries, are for
/// processes of this machine only.
constexpr std::array<std::string_view, 6> kJobsOfClients = {
    "tpcc.load", "tpcc.verify", "tpcc.survey", "ycsb.load", "ycsb.verify", "ycsb.survey"};

struct Served {
  ControlOperation operation;
  uint32_t any_of;  // one of these rights is needed
  uint32_t all_of;  // and all of these
  bool is_of_node;  // this node serves it, not the coordinator
  std::chrono::milliseconds timeout;
};

constexpr std::array kServed = {
    Served{ControlOperation::status, kMayRead, 0, false, kShortTimeout},
    Served{ControlOperation::storage_list, kMayRead, 0, false, kShortTimeout},
    Served{ControlOperation::storage_describe, kMayRead | kMayWrite, 0, false, kShortTimeout},
    Served{ControlOperation::storage_create, kMayAdminister, 0, false, kDdlTimeout},
    Served{ControlOperation::storage_drop, kMayAdminister, 0, false, kDdlTimeout},
    Served{ControlOperation::session_list, kMayAdminister, 0, true, kShortTimeout},
    Served{ControlOperation::session_kill, kMayAdminister, 0, true, kShortTimeout},
    // A job reads and writes records, as a procedure does.
    Served{ControlOperation::job_start, kMayAdminister, kMayCallProcedures, true, kShortTimeout},
    Served{ControlOperation::job_wait, kMayAdminister, 0, true, kShortTimeout},
    Served{ControlOperation::job_stop, kMayAdminister, 0, true, kShortTimeout}};

const Served* find_served(std::string_view procedure) {
  if (!procedure.starts_with(kAdministrationPrefix)) return nullptr;
  const std::string_view name = procedure.substr(kAdministrationPrefix.size());
  const auto found = std::ranges::find_if(
      kServed, [&](const Served& each) { return to_string(each.operation) == name; });
  return found == kServed.end() ? nullptr : &*found;
}

Status status_of(ExitCode code) {
  switch (code) {
    case ExitCode::usage:
      return Status::invalid_argument;
    case ExitCode::recovering:
      return Status::recovering;
    case ExitCode::not_running:
      return Status::unavailable;
    case ExitCode::coordinator_unreachable:
      return Status::outcome_unknown;
    default:
      return Status::procedure_failed;
  }
}

/// Copies members, but no arrays and objects: clients could nest them without limit.
Json copy_members(const Json& from, std::initializer_list<const char*> members) {
  Json copy = Json::object();
  for (const char* member : members) {
    if (from.contains(member) && from[member].is_primitive()) copy[member] = from[member];
  }
  return copy;
}

/// Returns the members of a client's request that a process may get. Others could have a meaning in
/// control messages, as "binary" has. "timeout_ms" is not among them, so `job.wait` is answered at
/// once and delays no other request.
Json members_of_request(const Json& request) {
  return copy_members(
      request, {"name", "type", "payload_bytes", "record_count", "session", "all", "input", "job"});
}

/// Returns as many entries of a sorted list as an answer holds, but at least one. "more": there are
/// further ones.
Json page_of(const char* list, std::vector<Json> entries) {
  Json page = {{list, Json::array()}, {"more", false}};
  size_t bytes = 0;
  for (Json& each : entries) {
    bytes += each.dump(-1, ' ', false, Json::error_handler_t::replace).size();
    if (bytes > kListBytes && !page[list].empty()) {
      page["more"] = true;
      break;
    }
    page[list].push_back(std::move(each));
  }
  return page;
}

/// Returns the storages after the name "after".
Json page_of_storages(const Json& request, const Json& answer) {
  const std::string after = request.value("after", "");
  std::vector<Json> storages;
  for (const Json& each : answer.value("storages", Json::array())) {
    if (each.value("name", "") <= after) continue;
    Json storage = copy_members(each, {"id", "name", "type", "state", "payload_bytes",
                                       "record_count", "operations", "cold_writes", "drop"});
    for (const char* member : {"snapshot", "checkpoint", "snapshot_cache"}) {
      if (each.contains(member)) storage[member] = each[member];
    }
    storages.push_back(std::move(storage));
  }
  std::ranges::sort(storages, {}, [](const Json& each) { return each.value("name", ""); });
  return page_of("storages", std::move(storages));
}

/// Returns the entries of a list after the one with the number "after". Without "after", the list
/// begins with its smallest number. `key`: member with the number of an entry.
Json page_by_number(const Json& request, const Json& answer, const char* list, const char* key) {
  const auto number = [&](const Json& each) { return each.value(key, uint64_t{0}); };
  const auto after = request.find("after");
  std::vector<Json> entries;
  for (const Json& each : answer.value(list, Json::array())) {
    if (after != request.end() && number(each) <= after->get<uint64_t>()) continue;
    entries.push_back(each);
  }
  std::ranges::sort(entries, {}, number);
  return page_of(list, std::move(entries));
}

/// Replaces an output that does not fit into an answer by an error. Without that, the client could
/// not learn that the job is done.
void bound_output(Json& output) {
  const size_t bytes = output.dump(-1, ' ', false, Json::error_handler_t::replace).size();
  if (bytes <= kMaxEntryBytes) return;
  output = {{"worker", output.value("worker", uint64_t{0})},
            {"ok", false},
            {"code", static_cast<int>(ExitCode::failed)},
            {"message", "its output has " + std::to_string(bytes) +
                            " bytes as JSON, and an answer over the network at most " +
                            std::to_string(kMaxEntryBytes) +
                            ": run the job on a machine of the cluster"}};
}

/// Returns whether a job is done, and the outputs of its workers.
Json state_of_job(const Json& request, Json answer) {
  for (Json& output : answer["outputs"]) bound_output(output);
  Json state = page_by_number(request, answer, "outputs", "worker");
  state.update(copy_members(answer, {"done", "status"}));
  return state;
}

/// Returns what clients may see of the status: enough to follow the progress of a benchmark.
Json status_for_client(const Json& answer) {
  Json status = copy_members(answer, {"name", "uuid", "state", "durability"});
  const Json snapshots = answer.value("snapshots", Json::object());
  status["snapshots"] = {{"newest", snapshots.value("newest", uint32_t{0})}};
  status["epochs"] = copy_members(answer.value("epochs", Json::object()), {"current"});
  status["nodes"] = Json::array();
  for (const Json& each : answer.value("nodes", Json::array())) {
    Json node = copy_members(each, {"node", "state", "workers", "commits", "read_only_commits"});
    node["pool"] = copy_members(each.value("pool", Json::object()), {"unallocated_bytes"});
    status["nodes"].push_back(std::move(node));
  }
  return status;
}

/// Returns why the member "after" of a request is wrong, or an empty text.
std::string fault_of_after(ControlOperation operation, const Json& request) {
  const auto after = request.find("after");
  if (after == request.end()) return "";
  if (operation == ControlOperation::session_list || operation == ControlOperation::job_wait) {
    const std::string what = operation == ControlOperation::job_wait ? "worker" : "session";
    return after->is_number_unsigned() ? "" : "its member \"after\" is no number of a " + what;
  }
  return after->is_string() ? "" : "its member \"after\" is no text";
}

/// Returns the name of the job that a request starts. Its text is empty if it has none.
std::string job_name(const Json& request) {
  const auto name = request.find("name");
  return name != request.end() && name->is_string() ? name->get<std::string>() : "";
}

/// Returns why no client may send the request, or an empty text.
std::string refused_job(ControlOperation operation, const Json& request) {
  if (operation != ControlOperation::job_start) return "";
  const std::string name = job_name(request);
  if (std::ranges::find(kJobsOfClients, name) != kJobsOfClients.end()) return "";
  std::string allowed;
  for (const std::string_view each : kJobsOfClients) allowed += " " + std::string(each);
  return "job \"" + name.substr(0, kMaxJobNameText) +
         "\": network clients may start only these jobs:" + allowed +
         ": start it on a machine of the cluster";
}

/// Returns the part of the answer that clients may see and that fits into one answer.
Json answer_for_client(ControlOperation operation, const Json& request, const Json& answer) {
  switch (operation) {
    case ControlOperation::storage_list:
      return page_of_storages(request, answer);
    case ControlOperation::session_list:
      return page_by_number(request, answer, "sessions", "session");
    case ControlOperation::job_wait:
      return state_of_job(request, answer);
    case ControlOperation::status:
      return status_for_client(answer);
    default:
      return answer;
  }
}

/// Returns the input of a request, or a usage error.
Result<Json> request_of(const NetworkCall& call, ControlOperation operation) {
  Json request = call.input.empty() ? Json::object() : parse_json(call.input);
  if (!request.is_object()) {
    return make_error(ExitCode::usage, call.procedure + ": its input is no JSON object");
  }
  if (const std::string fault = fault_of_after(operation, request); !fault.empty()) {
    return make_error(ExitCode::usage, call.procedure + ": " + fault);
  }
  return request;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

NetworkAdministration::NetworkAdministration(Endpoints endpoints, OnDone on_done)
    : endpoints_(std::move(endpoints)), on_done_(std::move(on_done)) {
  CHECK(on_done_ != nullptr);
  short_.thread = std::thread([this] { run(short_, "net-admin"); });
  catalog_.thread = std::thread([this] { run(catalog_, "net-catalog"); });
}

bool NetworkAdministration::serves(std::string_view procedure) {
  return find_served(procedure) != nullptr;
}

uint32_t NetworkAdministration::missing_rights(std::string_view procedure, uint32_t rights) {
  const Served* const served = find_served(procedure);
  if (served == nullptr) return kMayAdminister & ~rights;
  const bool has_any = (served->any_of & rights) != 0;
  const uint32_t missing = has_any ? 0 : uint32_t{1} << std::countr_zero(served->any_of);
  return missing | (served->all_of & ~rights);
}

NetworkAdministration::Lane& NetworkAdministration::lane_of(const NetworkCall& call) {
  const Served* const served = find_served(call.procedure);
  CHECK(served != nullptr);
  return served->timeout == kDdlTimeout ? catalog_ : short_;
}

size_t NetworkAdministration::waiting_of(const NetworkSession& session) const {
  size_t count = 0;
  for (const Lane* const lane : lanes_) {
    count +=
        static_cast<size_t>(std::ranges::count(lane->waiting, &session, &NetworkCall::session));
  }
  return count;
}

std::optional<Refusal> NetworkAdministration::submit(NetworkCall& call) {
  DCHECK(call.session != nullptr);
  Lane& lane = lane_of(call);
  {
    const std::lock_guard guard(mutex_);
    if (is_stopped_) return Refusal{Status::unavailable, "the node stops"};
    if (lane.waiting.size() >= kMaxWaiting) {
      return Refusal{Status::unavailable,
                     std::to_string(kMaxWaiting) + " requests of this kind wait: try again later"};
    }
    if (waiting_of(*call.session) >= kMaxWaitingOfSession) {
      return Refusal{Status::unavailable, std::to_string(kMaxWaitingOfSession) +
                                              " control requests of the session wait: wait for "
                                              "their answers"};
    }
    lane.waiting.push_back(&call);
  }
  lane.changed.notify_one();
  return std::nullopt;
}

void NetworkAdministration::cancel(const NetworkSession& session) {
  std::vector<NetworkCall*> cancelled;
  {
    const std::lock_guard guard(mutex_);
    for (Lane* const lane : lanes_) {
      std::erase_if(lane->waiting, [&](NetworkCall* call) {
        if (call->session != &session) return false;
        cancelled.push_back(call);
        return true;
      });
      if (lane->running != nullptr && lane->running->session == &session) {
        lane->is_cancelled = true;
      }
    }
    if (const auto jobs = jobs_.extract(&session)) {
      left_jobs_.insert(left_jobs_.end(), jobs.mapped().begin(), jobs.mapped().end());
    }
  }
  short_.changed.notify_one();
  for (NetworkCall* const call : cancelled) {
    call->outcome.status = Status::unavailable;
    call->outcome.message = "the session has ended";
    on_done_(*call);
  }
}

void NetworkAdministration::stop() {
  if (!short_.thread.joinable()) return;
  {
    const std::lock_guard guard(mutex_);
    is_stopped_ = true;
  }
  // Relaxed: the flag only shortens a wait.
  ends_.store(true, std::memory_order_relaxed);
  for (Lane* const lane : lanes_) lane->changed.notify_one();
  for (Lane* const lane : lanes_) lane->thread.join();
}

void NetworkAdministration::run(Lane& lane, const char* name) {
  name_thread(name);
  for (;;) {
    NetworkCall* call = nullptr;
    bool ends = false;
    {
      std::unique_lock lock(mutex_);
      const auto has_left_job = [&] { return &lane == &short_ && !left_jobs_.empty(); };
      lane.changed.wait(lock,
                        [&] { return is_stopped_ || !lane.waiting.empty() || has_left_job(); });
      ends = is_stopped_;  // the node then stops all jobs
      if (!ends && has_left_job()) {
        const uint64_t job = left_jobs_.front();
        left_jobs_.pop_front();
        lock.unlock();
        stop_job(job);
        continue;
      }
      if (lane.waiting.empty()) return;
      call = lane.waiting.front();
      lane.waiting.pop_front();
      lane.running = call;
      lane.is_cancelled = false;
    }
    if (ends) {
      call->outcome.status = Status::unavailable;
      call->outcome.message = "the node stops";
    } else if (!refuse_if_late(*call)) {
      answer(*call);
    }
    {
      const std::lock_guard guard(mutex_);
      lane.running = nullptr;
    }
    on_done_(*call);
  }
}

void NetworkAdministration::keep_job(const NetworkCall& call, uint64_t job) {
  const std::lock_guard guard(mutex_);
  DCHECK(short_.running == &call);
  if (short_.is_cancelled) return left_jobs_.push_back(job);
  std::deque<uint64_t>& jobs = jobs_[call.session];
  jobs.push_back(job);
  if (jobs.size() > kMaxJobsOfSession) jobs.pop_front();
}

void NetworkAdministration::stop_job(uint64_t job) const {
  const ControlClient client(endpoints_.node);
  // The error is ignored: the node has stopped, or has forgotten the job.
  [[maybe_unused]] const auto stopped =
      client.call(ControlOperation::job_stop, {{"job", job}}, kShortTimeout,
                  [this] { return ends_.load(std::memory_order_relaxed); });
}

void NetworkAdministration::answer(NetworkCall& call) {
  const Served* const served = find_served(call.procedure);
  CHECK(served != nullptr);
  const Result<Json> request = request_of(call, served->operation);
  const std::string refused = request ? refused_job(served->operation, *request) : "";
  const Result<Json> asked = !request           ? std::unexpected(request.error())
                             : !refused.empty() ? Result<Json>(make_error(ExitCode::usage, refused))
                                                : ask(served->operation, *request);
  if (asked && served->operation == ControlOperation::job_start && asked->contains("job")) {
    keep_job(call, asked->value("job", uint64_t{0}));
  }
  ProcedureOutcome& outcome = call.outcome;
  // The answer of an error has its whole text, because `message` has a limit.
  const Json body = asked ? *asked
                          : Json{{"code", static_cast<int>(asked.error().code)},
                                 {"message", asked.error().message}};
  outcome.status = asked              ? Status::ok
                   : !refused.empty() ? Status::permission_denied
                                      : status_of(asked.error().code);
  if (!asked) outcome.message = asked.error().message;
  outcome.output = bytes_of(body.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (outcome.output.size() <= kSessionPartBytes) return;
  outcome.output.clear();
  outcome.status = Status::procedure_failed;
  outcome.message = call.procedure + ": its answer is longer than " +
                    std::to_string(kSessionPartBytes) + " bytes";
}

Result<Json> NetworkAdministration::ask(ControlOperation operation, const Json& request) const {
  const Served& served = *std::ranges::find(kServed, operation, &Served::operation);
  const ControlClient client(served.is_of_node ? endpoints_.node : endpoints_.coordinator);
  ATOLL_ASSIGN(const Json answer,
               client.call(operation, members_of_request(request), served.timeout,
                           [this] { return ends_.load(std::memory_order_relaxed); }));
  return answer_for_client(operation, request, answer);
}

}  // namespace atolldb
