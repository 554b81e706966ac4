// The requests that an installer serves.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "shared/base/try.h"
#include "soc/installer/installer.h"

namespace atolldb {
namespace {

std::unexpected<Error> stops(const ControlRequest& request) {
  return make_error(ExitCode::not_running, request.op + ": the node stops");
}

Result<DropLimits> limits_of(const ControlRequest& request) {
  DropLimits limits;
  ATOLL_ASSIGN(const uint64_t percent, get_number_or(request, "free_percent", limits.free_percent));
  if (percent > 100) {
    return make_error(ExitCode::usage,
                      fmt::format("{}: member \"free_percent\" must be at most 100, not {}",
                                  request.op, percent));
  }
  limits.free_percent = static_cast<uint32_t>(percent);
  const Json spares_hot = request.body.value("spares_hot", Json(false));
  if (!spares_hot.is_boolean()) {
    return make_error(ExitCode::usage, request.op + ": member \"spares_hot\" must be a boolean");
  }
  limits.spares_hot = spares_hot.get<bool>();
  return limits;
}

/// Returns the member "next_bounds" of a storage. `member`: the storage's entry.
Result<std::vector<uint64_t>> next_bounds_of(const ControlRequest& member) {
  const Json list = member.body.value("next_bounds", Json::array());
  const bool is_good = list.is_array() && std::ranges::all_of(list, [](const Json& slice) {
                         return slice.is_number_unsigned();
                       });
  std::vector<uint64_t> bounds;
  if (is_good) bounds = list.get<std::vector<uint64_t>>();
  if (is_good && std::ranges::is_sorted(bounds)) return bounds;
  return make_error(ExitCode::usage,
                    member.op + ": member \"next_bounds\" must be ascending unsigned numbers");
}

}  // namespace

void Installer::handle(const ControlRequest& request, const ControlReply& reply) {
  Result<void> queued;
  switch (request.operation) {
    case ControlOperation::snapshot_install:
      queued = queue_install(request, reply);
      break;
    case ControlOperation::snapshot_align:
      queued = queue_align(request, reply);
      break;
    default:
      queued = unknown_op(request);
  }
  if (!queued) reply(std::unexpected(queued.error()));
}

Result<Installer::Pass> Installer::pass_of(const ControlRequest& request) {
  Pass pass;
  ATOLL_ASSIGN(const uint64_t snapshot, get_number(request, "snapshot"));
  ATOLL_ASSIGN(pass.epoch, get_number(request, "epoch"));
  ATOLL_ASSIGN(pass.base_epoch, get_number_or(request, "base_epoch", 0));
  ATOLL_ASSIGN(pass.limits, limits_of(request));
  const Json drains = request.body.value("drains", Json(false));
  if (!drains.is_boolean()) {
    return make_error(ExitCode::usage, request.op + ": member \"drains\" must be a boolean");
  }
  pass.drains = drains.get<bool>();
  pass.snapshot = static_cast<uint32_t>(snapshot);
  const Json list = request.body.value("storages", Json());
  if (!list.is_array()) {
    return make_error(ExitCode::usage,
                      request.op + ": member \"storages\" must be a list of roots");
  }
  for (const Json& entry : list) {
    const ControlRequest member{request.operation, entry};
    ATOLL_ASSIGN(const uint64_t id, get_number(member, "id"));
    ATOLL_ASSIGN(const uint64_t root, get_number(member, "root"));
    ATOLL_ASSIGN(auto next_bounds, next_bounds_of(member));
    const SnapshotPointer page(root);
    if (!page.is_null() && page.snapshot() > pass.snapshot) {
      return make_error(ExitCode::usage,
                        fmt::format("{}: the root of storage {} is a page of snapshot {}, which is "
                                    "later than {}",
                                    request.op, id, page.snapshot(), pass.snapshot));
    }
    Root& added = pass.roots.emplace_back();
    added.storage = static_cast<uint32_t>(id);
    added.page = page;
    added.next_bounds = std::move(next_bounds);
  }
  return pass;
}

Result<void> Installer::queue_install(const ControlRequest& request, const ControlReply& reply) {
  constexpr uint64_t kMaxWaitMs = 60'000;
  ATOLL_ASSIGN(Pass pass, pass_of(request));
  ATOLL_ASSIGN(const uint64_t timeout_ms, get_number_or(request, "timeout_ms", 0));
  ATOLL_ASSIGN(const uint64_t threads, get_number_or(request, "threads", 1));
  const std::chrono::milliseconds timeout(std::min(timeout_ms, kMaxWaitMs));
  const std::lock_guard guard(mutex_);
  if (ends_) return stops(request);
  const bool is_new = !pass_ || pass_->snapshot != pass.snapshot || pass_->limits != pass.limits ||
                      pass_->drains != pass.drains;
  if (is_new && pass_ && !pass_->has_ended) {
    return make_error(ExitCode::failed,
                      fmt::format("{}: snapshot {} is being installed: wait for its end",
                                  request.op, pass_->snapshot));
  }
  if (is_new) {
    pass_ = std::move(pass);
    has_begun_pass_ = false;
  }
  threads_wanted_ = static_cast<uint32_t>(std::clamp<uint64_t>(threads, 1, visitors_.size()));
  waiting_.add(reply, Clock::now() + timeout);
  changed_.notify_one();
  return {};
}

Result<void> Installer::queue_align(const ControlRequest& request, const ControlReply& reply) {
  ATOLL_ASSIGN(const uint64_t id, get_number(request, "storage"));
  const Json list = request.body.value("keys", Json());
  const bool is_good = list.is_array() && std::ranges::all_of(list, [](const Json& key) {
                         return key.is_number_unsigned();
                       });
  if (!is_good) {
    return make_error(ExitCode::usage,
                      request.op + ": member \"keys\" must be a list of unsigned numbers");
  }
  const std::lock_guard guard(mutex_);
  if (ends_) return stops(request);
  aligns_.push_back({static_cast<uint32_t>(id), list.get<std::vector<uint64_t>>(), reply});
  changed_.notify_one();
  return {};
}

}  // namespace atolldb
