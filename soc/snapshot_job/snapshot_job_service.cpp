#include "soc/snapshot_job/snapshot_job_service.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/gleaner/glean_plan.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

Result<GleanPlan> plan_of(const ControlRequest& request) {
  ATOLL_ASSIGN(const std::string text, get_text(request, "plan"));
  return decode_plan(text);
}

}  // namespace

void GleanService::handle(const ControlRequest& request, ControlReply reply) {
  if (request.op == "glean.prepare") return prepare(request, std::move(reply));
  if (request.op == "glean.wait") return wait(request, std::move(reply));
  if (request.op == "glean.end") return end(request, std::move(reply));
  if (request.op != "glean.map") return reply(unknown_op(request));
  const auto run = run_of(request);
  if (!run) return reply(std::unexpected(run.error()));
  (*run)->map();
  reply(Json::object());
}

void GleanService::prepare(const ControlRequest& request, ControlReply reply) {
  Result<GleanPlan> plan = plan_of(request);
  if (!plan) return reply(std::unexpected(plan.error()));
  const Result<uint64_t> disk_reserve = get_number_or(request, "disk_reserve", 0);
  if (!disk_reserve) return reply(std::unexpected(disk_reserve.error()));
  std::shared_ptr<NodeSnapshotJob> before;  // destroyed after the lock is released
  std::unique_lock lock(mutex_);
  if (is_stopped_) {
    lock.unlock();
    return reply(make_error(ExitCode::not_running, request.op + ": the node stops"));
  }
  if (run_ != nullptr && !run_->has_ended()) {
    const uint32_t other = run_->number();
    lock.unlock();
    return reply(make_error(ExitCode::failed, request.op + ": the run of snapshot " +
                                                  std::to_string(other) +
                                                  " is under way: end it with glean.end"));
  }
  before = take_run();
  run_ = std::make_shared<NodeSnapshotJob>(*std::move(plan), places_, *disk_reserve,
                                           std::move(reply), logger_);
}

void GleanService::wait(const ControlRequest& request, ControlReply reply) {
  constexpr uint64_t kMaxWaitMs = 60'000;
  const auto run = run_of(request);
  if (!run) return reply(std::unexpected(run.error()));
  const Result<uint64_t> timeout_ms = get_number_or(request, "timeout_ms", 0);
  if (!timeout_ms) return reply(std::unexpected(timeout_ms.error()));
  const std::chrono::milliseconds timeout(std::min(*timeout_ms, kMaxWaitMs));
  (*run)->wait(NodeSnapshotJob::Clock::now() + timeout, std::move(reply));
}

void GleanService::end(const ControlRequest& request, ControlReply reply) {
  auto run = run_of(request);
  // The request was repeated, or the run never began on this node: there is nothing to end.
  if (!run) return reply(Json::object());
  if (request.body.value("keep", Json(false)) != true) return (*run)->discard(reply);
  if (!(*run)->has_ended()) {
    return reply(make_error(ExitCode::failed, request.op + ": the run of snapshot " +
                                                  std::to_string((*run)->number()) +
                                                  " has not ended: its file cannot be kept"));
  }
  {
    const std::lock_guard guard(mutex_);
    if (run_ == *run) take_run();
  }
  run->reset();
  reply(Json::object());
}

Result<std::shared_ptr<NodeSnapshotJob>> GleanService::run_of(const ControlRequest& request) const {
  ATOLL_ASSIGN(const uint64_t number, get_number(request, "run"));
  const std::lock_guard guard(mutex_);
  if (run_ != nullptr && run_->number() == number) return run_;
  return make_error(ExitCode::failed, request.op + ": node " + std::to_string(places_.node) +
                                          ": has no run of snapshot " + std::to_string(number));
}

void GleanService::stop() {
  std::shared_ptr<NodeSnapshotJob> run;
  {
    const std::lock_guard guard(mutex_);
    is_stopped_ = true;
    run = take_run();
  }
  if (run != nullptr) run->give_up();
}

std::shared_ptr<NodeSnapshotJob> GleanService::take_run() {
  if (run_ != nullptr) before_ += run_->progress();
  return std::exchange(run_, nullptr);
}

SnapshotJobProgress GleanService::total() const {
  const std::lock_guard guard(mutex_);
  SnapshotJobProgress total = before_;
  if (run_ != nullptr) total += run_->progress();
  return total;
}

GleanPhase GleanService::phase() const {
  const std::lock_guard guard(mutex_);
  return run_ != nullptr ? run_->phase() : GleanPhase::idle;
}

}  // namespace atolldb
