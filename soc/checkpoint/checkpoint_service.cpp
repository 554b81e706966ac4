#include "soc/checkpoint/checkpoint_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/checkpoint_plan.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Maximum number of ranges of one storage.
constexpr uint64_t kMaxParts = uint64_t{kMaxNodes} * kMaxInstallers;
/// Longest pause of a thread of a checkpoint: an hour. The config has a lower limit.
constexpr uint64_t kMaxPauseUs = 3'600'000'000;

/// Returns a member that must be from 1 to `limit`.
Result<uint32_t> get_count(const ControlRequest& request, const char* member, uint64_t limit) {
  ATOLL_ASSIGN(const uint64_t count, get_number(request, member));
  CHECK(limit <= UINT32_MAX);
  if (count >= 1 && count <= limit) return static_cast<uint32_t>(count);
  return make_error(ExitCode::usage, request.op + ": member \"" + member + "\" must be from 1 to " +
                                         std::to_string(limit) + ", not " + std::to_string(count));
}

/// Returns the member `storages`, a list of ids, ascending and each once.
Result<std::vector<uint32_t>> get_storages(const ControlRequest& request) {
  const Json list = request.body.value("storages", Json());
  const auto is_id = [](const Json& id) {
    return id.is_number_unsigned() && id.get<uint64_t>() >= 1 && id.get<uint64_t>() <= UINT32_MAX;
  };
  if (!list.is_array() || !std::ranges::all_of(list, is_id)) {
    return make_error(ExitCode::usage,
                      request.op + ": member \"storages\" must be a list of ids of storages");
  }
  const auto ids = list.get<std::set<uint32_t>>();
  return std::vector<uint32_t>(ids.begin(), ids.end());
}

Result<AwaitedTask::Clock::time_point> get_deadline(const ControlRequest& request) {
  constexpr uint64_t kMaxWaitMs = 60'000;
  ATOLL_ASSIGN(const uint64_t timeout_ms, get_number_or(request, "timeout_ms", 0));
  return AwaitedTask::Clock::now() + std::chrono::milliseconds(std::min(timeout_ms, kMaxWaitMs));
}

}  // namespace

CheckpointService::CheckpointService(CheckpointResources resources, Logger logger)
    : resources_(std::move(resources)), logger_(std::move(logger)) {
  CHECK(resources_.view != nullptr && resources_.pool != nullptr && resources_.metrics != nullptr);
  CHECK(resources_.file_system != nullptr && resources_.directory != nullptr);
  CHECK(resources_.slots >= 1 && resources_.slots <= kMaxInstallers);
}

void CheckpointService::handle(const ControlRequest& request, const ControlReply& reply) {
  const Result<void> served = serve(request, reply);
  if (!served) reply(std::unexpected(served.error()));
}

Result<void> CheckpointService::serve(const ControlRequest& request, const ControlReply& reply) {
  switch (request.operation) {
    case ControlOperation::checkpoint_divide:
      return divide(request, reply);
    case ControlOperation::checkpoint_begin:
      return begin(request, reply);
    case ControlOperation::checkpoint_wait: {
      ATOLL_ASSIGN(const auto checkpoint, checkpoint_of(request));
      ATOLL_ASSIGN(const auto deadline, get_deadline(request));
      checkpoint->wait(deadline, reply);
      return {};
    }
    case ControlOperation::checkpoint_end:
      return end(request, reply);
    case ControlOperation::replay_begin:
      return begin_replay(request, reply);
    case ControlOperation::replay_wait: {
      ATOLL_ASSIGN(const auto replay, replay_of(request));
      ATOLL_ASSIGN(const auto deadline, get_deadline(request));
      ATOLL_ASSIGN(const uint64_t limit, get_number_or(request, "limit_bytes", UINT64_MAX));
      replay->set_limit(limit);
      replay->wait(deadline, reply);
      return {};
    }
    case ControlOperation::replay_exchange:
      return exchange(request, reply);
    case ControlOperation::replay_clean:
      return clean(request, reply);
    case ControlOperation::replay_end: {
      ATOLL_ASSIGN(const auto replay, replay_of(request));
      return replay->end(reply);
    }
    default:
      return unknown_op(request);
  }
}

std::string CheckpointService::name_of(const ControlRequest& request) const {
  return request.op + ": node " + std::to_string(resources_.node) + ": ";
}

Result<void> CheckpointService::check_idle(const ControlRequest& request) const {
  if (is_stopped_) {
    return make_error(ExitCode::not_running, name_of(request) + "stops");
  }
  if (checkpoint_ == nullptr || checkpoint_->has_ended()) return {};
  return make_error(ExitCode::failed, name_of(request) + "checkpoint " +
                                          std::to_string(checkpoint_->id()) +
                                          " is under way: end it with checkpoint.end");
}

Result<void> CheckpointService::divide(const ControlRequest& request, const ControlReply& reply) {
  ATOLL_ASSIGN(const uint32_t parts, get_count(request, "parts", kMaxParts));
  ATOLL_ASSIGN(const auto storages, get_storages(request));
  std::vector<DividedStorage> divided;
  {
    // No checkpoint begins meanwhile, so its first slot is free.
    const std::lock_guard guard(mutex_);
    ATOLL_TRY(check_idle(request));
    WorkerContext worker(*resources_.view, *resources_.pool, resources_.node, resources_.first_slot,
                         resources_.metrics(resources_.first_slot), resources_.write_set);
    for (const uint32_t id : storages) {
      auto ranges = divide_storage(worker, id, parts);
      if (!ranges.empty()) divided.push_back({id, std::move(ranges)});
    }
  }
  reply(Json{{"ranges", to_binary(encode_divided(divided))}});
  return {};
}

Result<CheckpointTask> CheckpointService::task_of(const ControlRequest& request) const {
  CheckpointTask task;
  ATOLL_ASSIGN(task.checkpoint, get_number(request, "checkpoint"));
  ATOLL_ASSIGN(task.replay_epoch, get_number(request, "replay_epoch"));
  ATOLL_ASSIGN(task.threads, get_count(request, "threads", resources_.slots));
  ATOLL_ASSIGN(task.files, get_count(request, "files", kMaxCheckpointFiles));
  ATOLL_ASSIGN(const uint64_t first_part, get_number(request, "first_part"));
  ATOLL_ASSIGN(task.disk_reserve, get_number_or(request, "disk_reserve", 0));
  ATOLL_ASSIGN(task.sync_bytes, get_number_or(request, "sync_bytes", kCheckpointSyncBytes));
  ATOLL_ASSIGN(const uint64_t pause_us, get_number_or(request, "pause_us", 0));
  task.pause = std::chrono::microseconds(std::min(pause_us, kMaxPauseUs));
  ATOLL_ASSIGN(task.pause_bytes, get_number_or(request, "pause_bytes", kCheckpointPauseBytes));
  ATOLL_ASSIGN(const auto ranges, get_binary(request, "ranges"));
  ATOLL_ASSIGN(task.storages, decode_divided(ranges));
  const bool has_parts =
      task.storages.empty() || first_part + task.threads <= task.storages.front().ranges.size();
  if (task.checkpoint == 0 || task.pause_bytes == 0 || task.replay_epoch == 0 ||
      task.replay_epoch > kMaxEpoch || first_part > kMaxParts || !has_parts) {
    return make_error(ExitCode::usage, name_of(request) + "checkpoint " +
                                           std::to_string(task.checkpoint) +
                                           ": its epoch, or its parts, are out of range");
  }
  task.first_part = static_cast<uint32_t>(first_part);
  return task;
}

Result<void> CheckpointService::begin(const ControlRequest& request, const ControlReply& reply) {
  ATOLL_ASSIGN(CheckpointTask task, task_of(request));
  std::shared_ptr<NodeCheckpoint> before;  // destroyed after the unlock
  {
    const std::lock_guard guard(mutex_);
    ATOLL_TRY(check_idle(request));
    if (task.checkpoint <= largest_) {
      return make_error(ExitCode::failed, name_of(request) + "checkpoint " +
                                              std::to_string(task.checkpoint) +
                                              " has begun, or a later one has: take a new id");
    }
    largest_ = task.checkpoint;
    before = take_checkpoint();
    checkpoint_ = std::make_shared<NodeCheckpoint>(std::move(task), resources_, logger_);
  }
  reply(Json::object());
  return {};
}

Result<void> CheckpointService::end(const ControlRequest& request, const ControlReply& reply) {
  const auto checkpoint = checkpoint_of(request);
  if (!checkpoint) {
    // The request was repeated, or the checkpoint never began on this node.
    reply(Json::object());
    return {};
  }
  if (request.body.value("keep", Json(false)) != true) {
    // The object stays until the next checkpoint begins, because its threads call the reply.
    (*checkpoint)->discard(reply);
    return {};
  }
  if (!(*checkpoint)->has_ended()) {
    return make_error(ExitCode::failed, name_of(request) + "checkpoint " +
                                            std::to_string((*checkpoint)->id()) +
                                            " has not ended: its files cannot be kept");
  }
  std::shared_ptr<NodeCheckpoint> taken;  // destroyed after the unlock
  {
    const std::lock_guard guard(mutex_);
    if (checkpoint_ == *checkpoint) taken = take_checkpoint();
  }
  reply(Json::object());
  return {};
}

Result<void> CheckpointService::begin_replay(const ControlRequest& request,
                                             const ControlReply& reply) {
  ATOLL_ASSIGN(const auto bytes, get_binary(request, "plan"));
  ATOLL_ASSIGN(ReplayPlan plan, decode_replay_plan(bytes));
  {
    const std::lock_guard guard(mutex_);
    ATOLL_TRY(check_idle(request));
    if (replay_ != nullptr) {
      return make_error(ExitCode::failed,
                        name_of(request) + "has begun its replay: restart the cluster");
    }
    replay_ = std::make_shared<NodeReplay>(std::move(plan), resources_, logger_);
  }
  reply(Json::object());
  return {};
}

Result<void> CheckpointService::exchange(const ControlRequest& request, const ControlReply& reply) {
  ATOLL_ASSIGN(const auto replay, replay_of(request));
  ATOLL_ASSIGN(const auto bytes, get_binary(request, "given"));
  ATOLL_ASSIGN(auto files, decode_given_files(bytes));
  for (const GivenFile& file : files) {
    if (file.to == resources_.node) continue;
    return make_error(ExitCode::failed, fmt::format("{}{} was given to node {}: internal error",
                                                    name_of(request), file.run.path, file.to));
  }
  ATOLL_TRY(replay->take(std::move(files)));
  reply(Json::object());
  return {};
}

Result<void> CheckpointService::clean(const ControlRequest& request, const ControlReply& reply) {
  ATOLL_ASSIGN(const auto replay, replay_of(request));
  ATOLL_ASSIGN(auto storages, get_storages(request));
  ATOLL_TRY(replay->clean(std::move(storages)));
  reply(Json::object());
  return {};
}

Result<std::shared_ptr<NodeCheckpoint>> CheckpointService::checkpoint_of(
    const ControlRequest& request) const {
  ATOLL_ASSIGN(const uint64_t id, get_number(request, "checkpoint"));
  const std::lock_guard guard(mutex_);
  if (checkpoint_ != nullptr && checkpoint_->id() == id) return checkpoint_;
  return make_error(ExitCode::failed, name_of(request) + "has no checkpoint " + std::to_string(id));
}

Result<std::shared_ptr<NodeReplay>> CheckpointService::replay_of(
    const ControlRequest& request) const {
  const std::lock_guard guard(mutex_);
  if (replay_ != nullptr) return replay_;
  return make_error(ExitCode::failed, name_of(request) + "has no replay");
}

std::shared_ptr<NodeCheckpoint> CheckpointService::take_checkpoint() {
  if (checkpoint_ != nullptr) before_ += checkpoint_->progress();
  return std::exchange(checkpoint_, nullptr);
}

void CheckpointService::stop() {
  // Destroyed after the unlock, which waits for their threads.
  std::shared_ptr<NodeCheckpoint> checkpoint;
  std::shared_ptr<NodeReplay> replay;
  const std::lock_guard guard(mutex_);
  is_stopped_ = true;
  if (checkpoint_ != nullptr) checkpoint_->cancel();
  if (replay_ != nullptr) replay_->cancel();
  checkpoint = take_checkpoint();
  replay = std::exchange(replay_, nullptr);
}

void CheckpointService::publish(NodeCheckpointMetrics& metrics) const {
  // Relaxed: for display; each figure is valid on its own.
  const auto put = [](std::atomic<uint64_t>& word, uint64_t value) {
    word.store(value, std::memory_order_relaxed);
  };
  const std::lock_guard guard(mutex_);
  CheckpointProgress total = before_;
  auto phase = CheckpointPhase::idle;
  if (checkpoint_ != nullptr) {
    total += checkpoint_->progress();
    if (!checkpoint_->has_ended()) phase = CheckpointPhase::copying;
  }
  for (const CheckpointCounter& each : kCheckpointCounters) {
    put(metrics.*each.total, total.*each.progress);
  }
  if (replay_ != nullptr) {
    const ReplayCounters replayed = replay_->counters();
    for (const ReplayCounter& each : kReplayCounters) {
      put(metrics.*each.total, replayed.*each.counter);
    }
    put(metrics.replay_bytes_total, replay_->bytes_total());
    if (phase == CheckpointPhase::idle) phase = replay_->phase();
  }
  put(metrics.phase, static_cast<uint64_t>(phase));
}

}  // namespace atolldb
