#include "coordinator/durability/taker_queue.h"

#include "shared/base/check.h"

namespace atolldb {

Error TakerQueue::stopped() const { return {ExitCode::not_running, what_ + ": the cluster stops"}; }

void TakerQueue::request(Reply reply) {
  CHECK(reply);
  {
    const std::lock_guard guard(mutex_);
    if (!ends_) {
      waiting_.replies.push_back(std::move(reply));
      reply = {};
    }
  }
  if (reply) return reply(std::unexpected(stopped()));
  changed_.notify_one();
}

void TakerQueue::between_runs(Task task) {
  CHECK(task);
  {
    const std::lock_guard guard(mutex_);
    if (!ends_) {
      waiting_.tasks.push_back(std::move(task));
      task = {};
    }
  }
  if (task) return task(false);
  changed_.notify_one();
}

bool TakerQueue::is_awaited() const {
  const std::lock_guard guard(mutex_);
  return ends_ || is_requested_ || !waiting_.replies.empty() || !waiting_.tasks.empty();
}

bool TakerQueue::has_ended() const {
  const std::lock_guard guard(mutex_);
  return ends_;
}

std::optional<TakerQueue::Batch> TakerQueue::wait(std::chrono::steady_clock::duration pause) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, pause, [this] {
    return ends_ || !waiting_.replies.empty() || !waiting_.tasks.empty();
  });
  if (ends_) return std::nullopt;
  is_requested_ = !waiting_.replies.empty();
  return std::exchange(waiting_, {});
}

void TakerQueue::begin_unrequested() {
  const std::lock_guard guard(mutex_);
  is_requested_ = false;
}

void TakerQueue::end() {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
}

void TakerQueue::reject() {
  Batch rest;
  {
    const std::lock_guard guard(mutex_);
    CHECK(ends_);
    rest = std::exchange(waiting_, {});
  }
  for (const Reply& reply : rest.replies) reply(std::unexpected(stopped()));
  for (const Task& task : rest.tasks) task(false);
}

}  // namespace atolldb
