// The requests that an installer serves.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "shared/base/try.h"
#include "soc/installer/installer.h"

namespace atolldb {
namespace {

Error stops(const std::string& op) { return {ExitCode::not_running, op + ": the node stops"}; }

}  // namespace

void Installer::handle(const ControlRequest& request, const ControlReply& reply) {
  if (request.op == "snapshot.install") return install_request(request, reply);
  if (request.op == "snapshot.align") return align_request(request, reply);
  reply(unknown_op(request));
}

Result<Installer::Run> Installer::run_of(const ControlRequest& request) {
  const auto snapshot = get_number(request, "snapshot");
  const auto epoch = get_number(request, "epoch");
  if (!snapshot) return std::unexpected(snapshot.error());
  if (!epoch) return std::unexpected(epoch.error());
  Run run;
  run.snapshot = static_cast<uint32_t>(*snapshot);
  run.epoch = *epoch;
  ATOLL_ASSIGN(const auto percent, get_number_or(request, "free_percent", run.limits.free_percent));
  if (percent > 100) {
    return make_error(ExitCode::usage,
                      fmt::format("{}: member \"free_percent\" must be at most 100, not {}",
                                  request.op, percent));
  }
  run.limits.free_percent = static_cast<uint32_t>(percent);
  const Json spares_hot = request.body.value("spares_hot", Json(false));
  if (!spares_hot.is_boolean()) {
    return make_error(ExitCode::usage, request.op + ": member \"spares_hot\" must be a boolean");
  }
  run.limits.spares_hot = spares_hot.get<bool>();
  const Json list = request.body.value("storages", Json());
  if (!list.is_array()) {
    return make_error(ExitCode::usage,
                      request.op + ": member \"storages\" must be a list of roots");
  }
  for (const Json& entry : list) {
    const ControlRequest member{request.op, entry};
    const auto id = get_number(member, "id");
    const auto root = get_number(member, "root");
    if (!id) return std::unexpected(id.error());
    if (!root) return std::unexpected(root.error());
    run.roots.push_back({static_cast<uint32_t>(*id), SnapshotPointer(*root)});
  }
  return run;
}

void Installer::install_request(const ControlRequest& request, const ControlReply& reply) {
  constexpr uint64_t kMaxWaitMs = 60'000;
  Result<Run> run = run_of(request);
  if (!run) return reply(std::unexpected(run.error()));
  const Result<uint64_t> timeout_ms = get_number_or(request, "timeout_ms", 0);
  if (!timeout_ms) return reply(std::unexpected(timeout_ms.error()));
  std::unique_lock lock(mutex_);
  if (ends_) {
    lock.unlock();
    return reply(std::unexpected(stops(request.op)));
  }
  const bool is_new = !run_ || run_->snapshot != run->snapshot || run_->limits != run->limits;
  if (is_new && run_ && !run_->has_ended) {
    const uint32_t other = run_->snapshot;
    lock.unlock();
    return reply(make_error(
        ExitCode::failed,
        fmt::format("{}: snapshot {} is being installed: wait for its end", request.op, other)));
  }
  if (is_new) {
    run_ = *std::move(run);
    has_begun_run_ = false;
  }
  const std::chrono::milliseconds timeout(std::min(*timeout_ms, kMaxWaitMs));
  waiting_.add(reply, Clock::now() + timeout);
  lock.unlock();
  changed_.notify_one();
}

void Installer::align_request(const ControlRequest& request, const ControlReply& reply) {
  const auto id = get_number(request, "storage");
  if (!id) return reply(std::unexpected(id.error()));
  const Json list = request.body.value("keys", Json());
  const bool is_good = list.is_array() && std::ranges::all_of(list, [](const Json& key) {
                         return key.is_number_unsigned();
                       });
  if (!is_good) {
    return reply(make_error(ExitCode::usage,
                            request.op + ": member \"keys\" must be a list of unsigned numbers"));
  }
  Align task{static_cast<uint32_t>(*id), list.get<std::vector<uint64_t>>(), reply};
  {
    std::unique_lock lock(mutex_);
    if (ends_) {
      lock.unlock();
      return reply(std::unexpected(stops(request.op)));
    }
    aligns_.push_back(std::move(task));
  }
  changed_.notify_one();
}

}  // namespace atolldb
