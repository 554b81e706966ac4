#include "soc/session/durable_answers.h"

#include <utility>

#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/memory/epoch_end.h"
#include "shared/process/start_up.h"
#include "shared/sync/wait_word.h"

namespace atolldb {

void DurableAnswers::start() {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this] { run(); });
  own_id_ = thread_.get_id();
}

bool DurableAnswers::has_failed() const {
  // Acquire pairs with the coordinator's release of the state. In a failed state `durable` does not
  // rise any more.
  return control_.state.load(std::memory_order_acquire) >= kClusterFailedFrom;
}

void DurableAnswers::add(uint64_t epoch, Deliver deliver) {
  DCHECK(deliver != nullptr);
  // Acquire pairs with the coordinator's release: all commits of that epoch are durable.
  const bool is_early = fault::answer_before_durable;
  if (is_early || epoch <= control_.epochs.durable.load(std::memory_order_acquire)) {
    return deliver(true);
  }
  await_epoch(control_.epochs, epoch);
  bool is_first = false;
  bool is_durable = false;
  {
    const std::lock_guard guard(mutex_);
    // Checks again under the lock. If the queue's thread has ended a pass in which it saw that this
    // epoch is durable, the lock makes its value of `durable` visible here. If not, its next pass
    // finds this entry.
    is_durable = epoch <= control_.epochs.durable.load(std::memory_order_acquire);
    if (!is_durable && !has_ended_) {
      is_first = waiting_.empty();
      waiting_[epoch].push_back(std::move(deliver));
      deliver = nullptr;
    }
  }
  if (deliver) return deliver(is_durable);
  // The thread needs this wake-up only for the first entry. While an answer waits, it wakes up at
  // every rise of `durable`.
  if (is_first) changed_.notify_one();
}

size_t DurableAnswers::waiting() const {
  const std::lock_guard guard(mutex_);
  size_t count = 0;
  for (const auto& [epoch, answers] : waiting_) count += answers.size();
  return count;
}

void DurableAnswers::release(std::unique_lock<std::mutex>& lock, bool at_end) {
  DCHECK(lock.owns_lock());
  // Acquire pairs with the coordinator's release: all commits of that epoch are durable.
  const uint64_t durable = control_.epochs.durable.load(std::memory_order_acquire);
  while (!waiting_.empty() && (at_end || waiting_.begin()->first <= durable)) {
    const auto oldest = waiting_.extract(waiting_.begin());
    DCHECK(!oldest.mapped().empty());
    lock.unlock();
    for (const Deliver& deliver : oldest.mapped()) deliver(oldest.key() <= durable);
    lock.lock();
  }
}

void DurableAnswers::run() {
  name_thread("answers");
  become_prompt_thread();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty() || ends_; });
    // Acquire, so that `durable` is loaded later. Pairs with the release in raise_durable, which
    // changes the signal after it has stored `durable`.
    const uint32_t seen = control_.epochs.durable_signal.load(std::memory_order_acquire);
    const bool gives_up = ends_ && std::chrono::steady_clock::now() >= give_up_;
    release(lock, has_failed() || gives_up);
    if (waiting_.empty()) {
      if (!ends_) continue;
      has_ended_ = true;
      return;
    }
    lock.unlock();
    wait_on(control_.epochs.durable_signal, seen, kMaxSleep);
    lock.lock();
  }
}

void DurableAnswers::stop(std::chrono::milliseconds patience) {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
    give_up_ = std::chrono::steady_clock::now() + patience;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

}  // namespace atolldb
