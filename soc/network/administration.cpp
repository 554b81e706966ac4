#include "soc/network/administration.h"

#include <algorithm>
#include <array>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/message/control_client.h"
#include "shared/network/wire.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

/// A node and the coordinator answer these requests within milliseconds, unless all processors are
/// busy. Requests that change the catalog have kDdlTimeout.
constexpr std::chrono::milliseconds kShortTimeout{10'000};
/// Most bytes of the storages of one answer.
constexpr size_t kListBytes = 32u << 10;

struct Served {
  ControlOperation operation;
  uint32_t right;
  bool is_of_node;  // this node serves it, not the coordinator
  std::chrono::milliseconds timeout;
};

constexpr std::array kServed = {
    Served{ControlOperation::status, kMayRead, false, kShortTimeout},
    Served{ControlOperation::storage_list, kMayRead, false, kShortTimeout},
    Served{ControlOperation::storage_describe, kMayRead, false, kShortTimeout},
    Served{ControlOperation::storage_create, kMayAdminister, false, kDdlTimeout},
    Served{ControlOperation::storage_drop, kMayAdminister, false, kDdlTimeout},
    Served{ControlOperation::session_list, kMayAdminister, true, kShortTimeout},
    Served{ControlOperation::session_kill, kMayAdminister, true, kShortTimeout}};

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
/// control messages, as "binary" has.
Json members_of_request(const Json& request) {
  return copy_members(request, {"name", "type", "payload_bytes", "record_count", "session", "all"});
}

/// Returns the storages after the name "after", as many as an answer holds. "more": there are
/// further ones.
Json page_of_storages(const Json& answer, const std::string& after) {
  std::vector<Json> storages;
  for (const Json& each : answer.value("storages", Json::array())) {
    if (each.value("name", "") <= after) continue;
    storages.push_back(
        copy_members(each, {"id", "name", "type", "state", "payload_bytes", "record_count"}));
  }
  std::ranges::sort(storages, {}, [](const Json& each) { return each.value("name", ""); });
  Json page = {{"storages", Json::array()}, {"more", false}};
  size_t bytes = 0;
  for (Json& each : storages) {
    bytes += each.dump().size();
    if (bytes > kListBytes) {
      page["more"] = true;
      break;
    }
    page["storages"].push_back(std::move(each));
  }
  return page;
}

/// Removes what is not for clients, and what no answer has room for.
Json shortened(ControlOperation operation, const Json& request, const Json& answer) {
  switch (operation) {
    case ControlOperation::storage_list:
      return page_of_storages(answer, request.value("after", ""));
    case ControlOperation::status: {
      Json status = copy_members(answer, {"name", "state"});
      const Json snapshots = answer.value("snapshots", Json::object());
      status["snapshots"] = {{"newest", snapshots.value("newest", uint32_t{0})}};
      return status;
    }
    default:
      return answer;
  }
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

NetworkAdministration::NetworkAdministration(Endpoints endpoints, OnDone on_done)
    : endpoints_(std::move(endpoints)), on_done_(std::move(on_done)) {
  CHECK(on_done_ != nullptr);
  thread_ = std::thread([this] { run(); });
}

std::optional<uint32_t> NetworkAdministration::needed_right(std::string_view procedure) {
  const Served* const served = find_served(procedure);
  if (served == nullptr) return std::nullopt;
  DCHECK(served->right != 0);
  return served->right;
}

std::optional<Refusal> NetworkAdministration::submit(NetworkCall& call) {
  DCHECK(find_served(call.procedure) != nullptr);
  {
    const std::lock_guard guard(mutex_);
    if (is_stopped_) return Refusal{Status::unavailable, "the node stops"};
    if (waiting_.size() >= kMaxWaiting) {
      return Refusal{Status::unavailable,
                     std::to_string(kMaxWaiting) + " requests of this kind wait: try again later"};
    }
    waiting_.push_back(&call);
  }
  changed_.notify_one();
  return std::nullopt;
}

void NetworkAdministration::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard guard(mutex_);
    is_stopped_ = true;
  }
  // Relaxed: the flag only shortens a wait.
  ends_.store(true, std::memory_order_relaxed);
  changed_.notify_one();
  thread_.join();
}

void NetworkAdministration::run() {
  name_thread("net-admin");
  for (;;) {
    NetworkCall* call = nullptr;
    bool ends = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_stopped_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      call = waiting_.front();
      waiting_.pop_front();
      ends = is_stopped_;
    }
    if (ends) {
      call->outcome.status = Status::unavailable;
      call->outcome.message = "the node stops";
    } else {
      answer(*call);
    }
    on_done_(*call);
  }
}

void NetworkAdministration::answer(NetworkCall& call) const {
  const Result<Json> asked = ask(call);
  ProcedureOutcome& outcome = call.outcome;
  // The answer of an error has its whole text, because `message` has a limit.
  const Json body = asked ? *asked
                          : Json{{"code", static_cast<int>(asked.error().code)},
                                 {"message", asked.error().message}};
  outcome.status = asked ? Status::ok : status_of(asked.error().code);
  if (!asked) outcome.message = asked.error().message;
  outcome.output = bytes_of(body.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (outcome.output.size() <= kMaxSessionOutputBytes) return;
  outcome.output.clear();
  outcome.status = Status::procedure_failed;
  outcome.message = call.procedure + ": its answer is longer than " +
                    std::to_string(kMaxSessionOutputBytes) + " bytes";
}

Result<Json> NetworkAdministration::ask(const NetworkCall& call) const {
  const Served* const served = find_served(call.procedure);
  CHECK(served != nullptr);
  const auto* const begin = reinterpret_cast<const char*>(call.input.data());
  const Json body = call.input.empty()
                        ? Json::object()
                        : Json::parse(begin, begin + call.input.size(), nullptr, false);
  const Json after = body.is_object() ? body.value("after", Json("")) : Json();
  if (!body.is_object() || !after.is_string()) {
    return make_error(ExitCode::usage, call.procedure + ": its input is no JSON object, or its " +
                                           "member \"after\" is no text");
  }
  const ControlClient client(served->is_of_node ? endpoints_.node : endpoints_.coordinator);
  ATOLL_ASSIGN(const Json answer,
               client.call(served->operation, members_of_request(body), served->timeout,
                           [this] { return ends_.load(std::memory_order_relaxed); }));
  return shortened(served->operation, body, answer);
}

}  // namespace atolldb
