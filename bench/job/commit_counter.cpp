#include "bench/job/commit_counter.h"

#include <algorithm>

#include "shared/sync/wait_word.h"

namespace atolldb::bench {

CommitCounter::CommitCounter(WorkerContext& worker, const TickClock& clock)
    : worker_(worker),
      epochs_(worker.view().control->epochs),
      clock_(clock),
      is_logged_(worker.view().shared[worker.node()]->logger_count != 0) {
  if (is_logged_) waiting_ = std::make_unique<Group[]>(kCapacity);
}

/// Groups of two epochs would let the earlier one wait for the later one. So a commit of an epoch
/// that is later than all known ones begins a group.
void CommitCounter::begin_group(WorkerResult& result, uint64_t begin, uint64_t end) {
  end_group(result);
  release(result, end);
  waiting_[(first_ + count_) % kCapacity] = {begin, end, 0, {}};
  group_until_ = begin + clock_.from_ns(kGroupNs);
}

void CommitCounter::end_group(WorkerResult& result) {
  if (group_until_ == 0) return;
  group_until_ = 0;
  if (count_ + 1 == kCapacity) {
    await(waiting_[first_].epoch);
    release(result, clock_.ticks());
    // If the ring is still full, the cluster has failed, and the group is not counted.
    if (count_ + 1 == kCapacity) return;
  }
  ++count_;
}

void CommitCounter::release(WorkerResult& result, uint64_t now) {
  note_epochs(now);
  // Acquire pairs with the coordinator's release. `durable` changes only once per epoch, so the
  // load seldom misses the cache.
  const uint64_t durable = epochs_.durable.load(std::memory_order_acquire);
  if (durable == durable_ && (count_ == 0 || waiting_[first_].epoch > durable)) return;
  durable_ = durable;
  bool has_credited = false;
  for (; count_ != 0 && waiting_[first_].epoch <= durable; --count_) {
    if (now < end_) credit(result, waiting_[first_], now);
    first_ = (first_ + 1) % kCapacity;
    has_credited = now < end_;
  }
  if (has_credited) pauses_.commit(now);
}

void CommitCounter::credit(WorkerResult& result, const Group& group, uint64_t now) {
  const uint64_t latency_ns = clock_.to_ns(now - group.begin);
  uint64_t total = 0;
  for (uint32_t type = 0; type < result.commits.size(); ++type) {
    const uint64_t commits = group.commits[type];
    if (commits == 0) continue;
    total += commits;
    result.commits[type] += commits;
    result.durable_latency[type].add(latency_ns, commits);
  }
  const EpochEnd& epoch_end = ends_[group.epoch % kEpochs];
  // If the ring has no entry for the epoch, the whole time counts as a wait for the log. The entry
  // is missing if the transactions read only old data, or if the log is more than kEpochs epochs
  // late.
  const uint64_t ended =
      epoch_end.epoch == group.epoch ? std::max(group.end, epoch_end.at) : group.end;
  result.epoch_wait.add(clock_.to_ns(ended - group.end), total);
  result.log_wait.add(clock_.to_ns(now - std::min(now, ended)), total);
}

void CommitCounter::note_epochs(uint64_t now) {
  const uint64_t current = worker_.current_epoch();
  if (current == current_) return;
  for (uint64_t epoch = std::max(current_, current - std::min(current, uint64_t{kEpochs}));
       epoch < current; ++epoch) {
    ends_[epoch % kEpochs] = {epoch, now};
  }
  current_ = current;
}

void CommitCounter::await(uint64_t epoch) {
  worker_.leave();
  while (!worker_.cluster_failed()) {
    // Acquire: the signal is loaded before `durable`. If `durable` advances after its load, the
    // signal changes, too, so the wait below ends.
    const uint32_t signal = epochs_.durable_signal.load(std::memory_order_acquire);
    if (epochs_.durable.load(std::memory_order_acquire) >= epoch) return;
    wait_on(epochs_.durable_signal, signal, kMaxSleep);
  }
}

void CommitCounter::await_all() {
  uint64_t latest = 0;
  const uint32_t groups = count_ + (group_until_ != 0 ? 1 : 0);
  for (uint32_t i = 0; i < groups; ++i) {
    latest = std::max(latest, waiting_[(first_ + i) % kCapacity].epoch);
  }
  count_ = 0;
  group_until_ = 0;
  if (latest != 0) await(latest);
}

}  // namespace atolldb::bench
