#include "soc/snapshot_job/snapshot_job_service.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "engine/gleaner/exchange.h"
#include "engine/gleaner/snapshot_plan.h"
#include "shared/base/limits.h"
#include "shared/base/pointer.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Returns whether the members of the plan are consistent. The job relies on this.
bool is_consistent(const SnapshotPlan& plan) {
  if (plan.snapshot == 0 || plan.snapshot > SnapshotPointer::kMaxSnapshot) return false;
  if (plan.base >= plan.snapshot || plan.base_epoch > plan.epoch) return false;
  if (plan.epoch > kMaxEpoch || plan.mappers.size() > ReducerInbox::kMaxMappers) return false;
  const auto ascend = [](const auto& list, const auto& key_of) {
    return std::ranges::adjacent_find(list, std::ranges::greater_equal(), key_of) == list.end();
  };
  const auto place_of = [](const ReducerPlace& place) {
    return std::pair(place.node, place.reducer);
  };
  // A salvage has all snapshots of the base as victims, because it must not depend on any page of
  // the base.
  if (!ascend(plan.victims, std::identity()) || (plan.salvages && !are_all_victims(plan))) {
    return false;
  }
  if (!ascend(plan.reducers, place_of) || !ascend(plan.storages, &PlannedStorage::id)) return false;
  const bool has_victims = plan.salvages || !plan.victims.empty();
  for (const PlannedStorage& storage : plan.storages) {
    if ((storage.has_victims && !has_victims) ||
        (storage.has_victims_below && !storage.has_victims)) {
      return false;
    }
    if (!ascend(storage.partitions, &PlannedPartition::low)) return false;
  }
  for (const PlannedMapper& mapper : plan.mappers) {
    std::set<std::tuple<std::string, uint64_t, uint16_t, uint16_t>> streams;
    for (const auto& [stream, last_epoch] : mapper.streams) {
      streams.emplace(stream.directory, stream.incarnation, stream.node, stream.logger);
    }
    if (streams.size() != mapper.streams.size()) return false;
  }
  return true;
}

Result<SnapshotPlan> plan_of(const ControlRequest& request) {
  ATOLL_ASSIGN(const auto bytes, get_binary(request, "plan"));
  ATOLL_ASSIGN(SnapshotPlan plan, decode_plan(bytes));
  if (is_consistent(plan)) return plan;
  return make_error(ExitCode::failed, request.op + ": the plan of snapshot " +
                                          std::to_string(plan.snapshot) +
                                          " contradicts itself: internal error");
}

}  // namespace

void SnapshotJobService::handle(const ControlRequest& request, const ControlReply& reply) {
  const Result<void> served = serve(request, reply);
  if (!served) reply(std::unexpected(served.error()));
}

Result<void> SnapshotJobService::serve(const ControlRequest& request, const ControlReply& reply) {
  switch (request.operation) {
    case ControlOperation::glean_prepare:
      return prepare(request, reply);
    case ControlOperation::glean_capture:
      return capture(request, reply);
    case ControlOperation::glean_map:
      return map(request, reply);
    case ControlOperation::glean_wait:
      return wait(request, reply);
    case ControlOperation::glean_end:
      return end(request, reply);
    default:
      return unknown_op(request);
  }
}

Result<void> SnapshotJobService::prepare(const ControlRequest& request, const ControlReply& reply) {
  ATOLL_ASSIGN(SnapshotPlan plan, plan_of(request));
  ATOLL_ASSIGN(const uint64_t disk_reserve, get_number_or(request, "disk_reserve", 0));
  std::shared_ptr<NodeSnapshotJob> before;  // the last job; destroyed after the unlock
  const std::lock_guard guard(mutex_);
  if (is_stopped_) {
    return make_error(ExitCode::not_running, request.op + ": the node stops");
  }
  if (job_ != nullptr && !job_->has_ended()) {
    return make_error(ExitCode::failed, request.op + ": the job of snapshot " +
                                            std::to_string(job_->number()) +
                                            " is under way: end it with glean.end");
  }
  if (plan.snapshot <= largest_) {
    return make_error(ExitCode::failed, request.op + ": snapshot " + std::to_string(plan.snapshot) +
                                            " has had a job, or a later one has: take a new id");
  }
  largest_ = plan.snapshot;
  before = take_job();
  job_ =
      std::make_shared<NodeSnapshotJob>(std::move(plan), resources_, disk_reserve, reply, logger_);
  return {};
}

Result<void> SnapshotJobService::capture(const ControlRequest& request, const ControlReply& reply) {
  ATOLL_ASSIGN(const auto job, job_of(request));
  job->capture(reply);
  return {};
}

Result<void> SnapshotJobService::map(const ControlRequest& request, const ControlReply& reply) {
  ATOLL_ASSIGN(const auto job, job_of(request));
  ATOLL_ASSIGN(const uint64_t log_bytes, get_number_or(request, "log_bytes", 0));
  std::vector<CapturedRange> captured;
  if (find_binary(request.body, "captured")) {
    ATOLL_ASSIGN(const auto bytes, get_binary(request, "captured"));
    ATOLL_ASSIGN(captured, decode_captured(bytes));
  }
  const Json holds = request.body.value("holds", Json(false));
  if (!holds.is_boolean()) {
    return make_error(ExitCode::usage, request.op + ": member \"holds\" must be a boolean");
  }
  job->map(log_bytes, std::move(captured), holds.get<bool>());
  reply(Json::object());
  return {};
}

Result<void> SnapshotJobService::wait(const ControlRequest& request, const ControlReply& reply) {
  constexpr uint64_t kMaxWaitMs = 60'000;
  constexpr uint64_t kAllPpm = 1'000'000;
  ATOLL_ASSIGN(const auto job, job_of(request));
  ATOLL_ASSIGN(const uint64_t timeout_ms, get_number_or(request, "timeout_ms", 0));
  const std::chrono::milliseconds timeout(std::min(timeout_ms, kMaxWaitMs));
  ATOLL_ASSIGN(const uint64_t goal, get_number_or(request, "goal_ppm", kAllPpm));
  job->set_goal(static_cast<double>(std::min(goal, kAllPpm)) / static_cast<double>(kAllPpm));
  job->wait(NodeSnapshotJob::Clock::now() + timeout, reply);
  return {};
}

Result<void> SnapshotJobService::end(const ControlRequest& request, const ControlReply& reply) {
  auto job = job_of(request);
  if (!job) {
    // The request was repeated, or the job never began on this node. There is nothing to end.
    reply(Json::object());
    return {};
  }
  if (request.body.value("keep", Json(false)) != true) {
    (*job)->discard(reply);
    return {};
  }
  if (!(*job)->has_ended()) {
    return make_error(ExitCode::failed, request.op + ": the job of snapshot " +
                                            std::to_string((*job)->number()) +
                                            " has not ended: its file cannot be kept");
  }
  {
    const std::lock_guard guard(mutex_);
    if (job_ == *job) take_job();
  }
  job->reset();
  reply(Json::object());
  return {};
}

Result<std::shared_ptr<NodeSnapshotJob>> SnapshotJobService::job_of(
    const ControlRequest& request) const {
  ATOLL_ASSIGN(const uint64_t number, get_number(request, "run"));
  const std::lock_guard guard(mutex_);
  if (job_ != nullptr && job_->number() == number) return job_;
  return make_error(ExitCode::failed, request.op + ": node " + std::to_string(resources_.node) +
                                          ": has no job of snapshot " + std::to_string(number));
}

void SnapshotJobService::stop() {
  std::shared_ptr<NodeSnapshotJob> job;
  {
    const std::lock_guard guard(mutex_);
    is_stopped_ = true;
    job = take_job();
  }
  if (job != nullptr) job->give_up();
}

std::shared_ptr<NodeSnapshotJob> SnapshotJobService::take_job() {
  if (job_ != nullptr) before_ += job_->progress();
  return std::exchange(job_, nullptr);
}

SnapshotJobProgress SnapshotJobService::total() const {
  const std::lock_guard guard(mutex_);
  SnapshotJobProgress total = before_;
  if (job_ != nullptr) total += job_->progress();
  return total;
}

SnapshotJobPhase SnapshotJobService::phase() const {
  const std::lock_guard guard(mutex_);
  return job_ != nullptr ? job_->phase() : SnapshotJobPhase::idle;
}

}  // namespace atolldb
