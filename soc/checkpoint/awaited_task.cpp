#include "soc/checkpoint/awaited_task.h"

#include <utility>

#include "shared/base/check.h"
#include "shared/process/start_up.h"

namespace atolldb {

AwaitedTask::AwaitedTask(std::string name, Work work, Progress progress)
    : progress_(std::move(progress)) {
  CHECK(work != nullptr && progress_ != nullptr);
  answers_ = std::thread([this] { answer_waits(); });
  worker_ =
      std::thread([this, name = std::move(name), work = std::move(work)] { run(name, work); });
}

AwaitedTask::~AwaitedTask() {
  worker_.join();
  answers_.join();
  CHECK(result_ && waiting_.is_empty());
}

void AwaitedTask::run(const std::string& name, const Work& work) {
  name_thread(name);
  Result<Json> result = work();
  CHECK(!result || result->is_object());
  const std::lock_guard guard(mutex_);
  result_ = std::move(result);
  changed_.notify_all();
}

void AwaitedTask::wait(Clock::time_point deadline, ControlReply reply) {
  std::unique_lock lock(mutex_);
  if (!result_) {
    waiting_.add(std::move(reply), deadline);
    changed_.notify_all();
    return;
  }
  const Result<Json> answer = outcome();
  lock.unlock();
  reply(answer);
}

bool AwaitedTask::has_ended() const {
  const std::lock_guard guard(mutex_);
  return result_.has_value();
}

bool AwaitedTask::has_succeeded() const {
  const std::lock_guard guard(mutex_);
  return result_ && *result_;
}

/// Answers requests at their deadlines, and all of them at the end of the work.
void AwaitedTask::answer_waits() {
  name_thread("answers");
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool is_last = result_.has_value();
    const auto due = is_last ? waiting_.take_all() : waiting_.take_due(Clock::now());
    if (!due.empty()) {
      const Result<Json> answer = outcome();
      lock.unlock();
      PendingReplies<>::answer(due, answer);
      lock.lock();
    } else if (is_last) {
      return;  // `wait` answers later requests itself
    } else if (const auto next = waiting_.next_deadline()) {
      changed_.wait_until(lock, *next);
    } else {
      changed_.wait(lock);
    }
  }
}

Result<Json> AwaitedTask::outcome() const {
  if (result_ && !*result_) return std::unexpected(result_->error());
  Json answer = progress_();
  CHECK(answer.is_object());
  answer["done"] = result_.has_value();
  if (result_) answer.update(**result_);
  return answer;
}

}  // namespace atolldb
