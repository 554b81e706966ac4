// Replies that wait for the same event, each with a deadline of its own.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "shared/base/check.h"
#include "shared/message/control_message.h"

namespace atolldb {

/// The owner's mutex guards the event and this object. The owner takes replies out under the lock.
/// It answers them after it has released the lock, because a reply may block, or call the owner.
///
///   std::unique_lock lock(mutex_);
///   const auto due = has_happened_ ? pending_.take_all() : pending_.take_due(Clock::now());
///   lock.unlock();
///   pending_.answer(due, answer);
///
/// The destructor answers no reply. REQUIRES: the owner takes all replies out before.
template <typename Answer = Json>
class PendingReplies {
 public:
  using Clock = std::chrono::steady_clock;
  using Reply = std::function<void(Result<Answer>)>;
  using Replies = std::vector<Reply>;  // in the order in which they were added

  /// Without a deadline the reply waits for the event only.
  void add(Reply reply, Clock::time_point deadline = kNever) {
    CHECK(reply != nullptr);
    waiting_.push_back({deadline, std::move(reply)});
  }

  bool is_empty() const { return waiting_.empty(); }

  /// Returns the earliest deadline, or nothing if no reply has a deadline.
  std::optional<Clock::time_point> next_deadline() const {
    auto next = kNever;
    for (const Waiting& each : waiting_) next = std::min(next, each.deadline);
    return next == kNever ? std::nullopt : std::optional(next);
  }

  [[nodiscard]] Replies take_all() { return take_due(kNever); }

  /// Takes out the replies whose deadline is not after `now`.
  [[nodiscard]] Replies take_due(Clock::time_point now) {
    Replies replies;
    const auto is_due = [now](const Waiting& each) { return each.deadline <= now; };
    for (Waiting& each : waiting_) {
      if (is_due(each)) replies.push_back(std::move(each.reply));
    }
    std::erase_if(waiting_, is_due);
    return replies;
  }

  /// Gives the same answer to all `replies`. REQUIRES: this thread does not hold the owner's mutex.
  static void answer(const Replies& replies, const Result<Answer>& answer) {
    for (const Reply& reply : replies) reply(answer);
  }

 private:
  static constexpr auto kNever = Clock::time_point::max();

  struct Waiting {
    Clock::time_point deadline;
    Reply reply;
  };

  std::vector<Waiting> waiting_;
};

}  // namespace atolldb
