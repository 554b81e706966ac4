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

void GleanService::handle(const ControlRequest& request, const ControlReply& reply) {
  const Result<void> served = serve(request, reply);
  if (!served) reply(std::unexpected(served.error()));
}

Result<void> GleanService::serve(const ControlRequest& request, const ControlReply& reply) {
  if (request.op == "glean.prepare") return prepare(request, reply);
  if (request.op == "glean.wait") return wait(request, reply);
  if (request.op == "glean.end") return end(request, reply);
  if (request.op != "glean.map") return unknown_op(request);
  ATOLL_ASSIGN(const auto job, job_of(request));
  job->map();
  reply(Json::object());
  return {};
}

Result<void> GleanService::prepare(const ControlRequest& request, const ControlReply& reply) {
  ATOLL_ASSIGN(GleanPlan plan, plan_of(request));
  ATOLL_ASSIGN(const uint64_t disk_reserve, get_number_or(request, "disk_reserve", 0));
  std::shared_ptr<NodeSnapshotJob> before;  // destroyed after the lock is released
  const std::lock_guard guard(mutex_);
  if (is_stopped_) {
    return make_error(ExitCode::not_running, request.op + ": the node stops");
  }
  if (job_ != nullptr && !job_->has_ended()) {
    return make_error(ExitCode::failed, request.op + ": the job of snapshot " +
                                            std::to_string(job_->number()) +
                                            " is under way: end it with glean.end");
  }
  before = take_job();
  job_ = std::make_shared<NodeSnapshotJob>(std::move(plan), places_, disk_reserve, reply, logger_);
  return {};
}

Result<void> GleanService::wait(const ControlRequest& request, const ControlReply& reply) {
  constexpr uint64_t kMaxWaitMs = 60'000;
  ATOLL_ASSIGN(const auto job, job_of(request));
  ATOLL_ASSIGN(const uint64_t timeout_ms, get_number_or(request, "timeout_ms", 0));
  const std::chrono::milliseconds timeout(std::min(timeout_ms, kMaxWaitMs));
  job->wait(NodeSnapshotJob::Clock::now() + timeout, reply);
  return {};
}

Result<void> GleanService::end(const ControlRequest& request, const ControlReply& reply) {
  auto job = job_of(request);
  if (!job) {
    // The request was repeated, or the job never began on this node: there is nothing to end.
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

Result<std::shared_ptr<NodeSnapshotJob>> GleanService::job_of(const ControlRequest& request) const {
  ATOLL_ASSIGN(const uint64_t number, get_number(request, "run"));
  const std::lock_guard guard(mutex_);
  if (job_ != nullptr && job_->number() == number) return job_;
  return make_error(ExitCode::failed, request.op + ": node " + std::to_string(places_.node) +
                                          ": has no job of snapshot " + std::to_string(number));
}

void GleanService::stop() {
  std::shared_ptr<NodeSnapshotJob> job;
  {
    const std::lock_guard guard(mutex_);
    is_stopped_ = true;
    job = take_job();
  }
  if (job != nullptr) job->give_up();
}

std::shared_ptr<NodeSnapshotJob> GleanService::take_job() {
  if (job_ != nullptr) before_ += job_->progress();
  return std::exchange(job_, nullptr);
}

SnapshotJobProgress GleanService::total() const {
  const std::lock_guard guard(mutex_);
  SnapshotJobProgress total = before_;
  if (job_ != nullptr) total += job_->progress();
  return total;
}

GleanPhase GleanService::phase() const {
  const std::lock_guard guard(mutex_);
  return job_ != nullptr ? job_->phase() : GleanPhase::idle;
}

}  // namespace atolldb
