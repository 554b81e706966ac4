#include "coordinator/snapshots/page_regulator.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "shared/base/check.h"
#include "shared/memory/page_pool.h"
#include "shared/process/start_up.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

using Clock = std::chrono::steady_clock;

/// Pause between two grants, and between two looks at pools without a limit. While a job runs there
/// is always a limit.
constexpr std::chrono::milliseconds kGrantPause{5};
constexpr std::chrono::milliseconds kIdlePause{20};
/// Pages for this time may be granted and not taken yet. More would be a burst later.
constexpr double kBurstS = 0.05;
/// Pause between two counts of cold pages. A count reads a line of each worker of all nodes, and
/// the number changes little in this time.
constexpr std::chrono::milliseconds kColdPause{200};

}  // namespace

uint64_t cold_pages(const std::vector<const MetricsSegment*>& metrics, uint64_t live_pages) {
  CHECK(!metrics.empty());
  uint64_t added = 0;
  uint64_t drained = 0;
  for (const MetricsSegment* node : metrics) {
    added += sum_counter(*node, &WorkerMetrics::delta_added);
    drained += sum_counter(*node, &WorkerMetrics::delta_drained);
  }
  // The counters are read at different times, so the difference may seem negative.
  const uint64_t records = added - std::min(added, drained);
  return std::min(records, live_pages) / metrics.size();
}

void grant_pages(NodeShared& node, std::optional<double> limit, double elapsed_s, double& credit) {
  CHECK(elapsed_s >= 0 && (!limit || *limit >= 0));
  // Relaxed, here and below: workers use the words only to decide whether to wait.
  node.page_limit.store(
      limit ? std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(*limit))) : 0,
      std::memory_order_relaxed);
  int64_t budget = kUnlimitedPages;
  if (limit) {
    credit += *limit * elapsed_s;
    const double whole = std::floor(credit);
    credit -= whole;
    const auto most = static_cast<int64_t>(*limit * kBurstS);
    // A larger debt than the pages for the longest delay, and a batch, is forgiven: transactions do
    // not wait any longer for it.
    const double debt_s = std::chrono::duration<double>(max_page_delay(node)).count();
    const auto most_debt = -static_cast<int64_t>(*limit * debt_s) - int64_t{PagePool::kBatchPages};
    const int64_t before = node.page_budget.load(std::memory_order_relaxed);
    if (before > most || before < most_debt) {
      // A worker that subtracts meanwhile loses its debt, once.
      budget = std::clamp(before, most_debt, most);
      node.page_budget.store(budget, std::memory_order_relaxed);
    } else {
      const int64_t more = std::min(static_cast<int64_t>(whole), most - before);
      budget = node.page_budget.fetch_add(more, std::memory_order_relaxed) + more;
    }
  } else {
    credit = 0;
    node.page_budget.store(kUnlimitedPages, std::memory_order_relaxed);
  }
  if (budget < 0) return;
  node.page_signal.fetch_add(1, std::memory_order_relaxed);
  wake(node.page_signal, kWakeAll);
}

/// REQUIRES: mutex_ is held.
PoolReadings PageRegulator::readings_of(const NodeShared& node) const {
  // Relaxed: the words are gauges.
  return {Clock::now(),
          node.pages_total.load(std::memory_order_relaxed),
          node.pages_free.load(std::memory_order_relaxed),
          node.pages_taken.load(std::memory_order_relaxed),
          cold_,
          done_};
}

void PageRegulator::start() {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this] { run(); });
}

void PageRegulator::stop() {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PageRegulator::begin_job(uint64_t log_bytes) {
  {
    const std::lock_guard guard(mutex_);
    if (!std::exchange(has_next_, false)) progress_.begin(log_bytes);
  }
  tell_all([](PageFlow& flow, const PoolReadings& now) { flow.begin_job(now); });
}

void PageRegulator::begin_next(uint64_t log_bytes) {
  {
    const std::lock_guard guard(mutex_);
    progress_.begin(log_bytes);
    has_next_ = true;
  }
  tell_all([](PageFlow& flow, const PoolReadings& now) { flow.begin_next(now); });
}

void PageRegulator::begin_install(bool has_paused) {
  tell_all([&](PageFlow& flow, const PoolReadings& now) { flow.begin_install(now, has_paused); });
}

void PageRegulator::end_job() {
  tell_all([](PageFlow& flow, const PoolReadings& now) { flow.end_job(now); });
}

void PageRegulator::tell_all(const std::function<void(PageFlow&, const PoolReadings&)>& event) {
  const std::lock_guard guard(mutex_);
  done_ = progress_.done();
  for (size_t node = 0; node < pools_.size(); ++node) {
    event(pools_[node].flow, readings_of(*nodes_[node]));
  }
}

bool PageRegulator::is_short() const {
  const std::lock_guard guard(mutex_);
  return std::ranges::any_of(pools_, [](const Pool& pool) { return pool.flow.is_short(); });
}

bool PageRegulator::will_be_short() const {
  const std::lock_guard guard(mutex_);
  return std::ranges::any_of(pools_, [](const Pool& pool) { return pool.flow.will_be_short(); });
}

void PageRegulator::run() {
  name_thread("page-flow");
  std::unique_lock lock(mutex_);
  auto last = Clock::now();
  auto next_count = last;
  while (!ends_) {
    const auto now = Clock::now();
    const double elapsed_s = std::chrono::duration<double>(now - last).count();
    last = now;
    if (now >= next_count) {
      cold_ = cold_pages_();
      next_count = now + kColdPause;
    }
    done_ = progress_.done();
    bool is_active = false;
    for (size_t i = 0; i < pools_.size(); ++i) {
      NodeShared& node = *nodes_[i];
      const std::optional<double> limit = pools_[i].flow.limit(readings_of(node));
      const bool was_limited = node.page_limit.load(std::memory_order_relaxed) != 0;
      if (limit || was_limited) grant_pages(node, limit, elapsed_s, pools_[i].credit);
      is_active = is_active || limit;
    }
    ended_.wait_for(lock, is_active ? kGrantPause : kIdlePause, [this] { return ends_; });
  }
  for (size_t node = 0; node < pools_.size(); ++node) {
    grant_pages(*nodes_[node], std::nullopt, 0, pools_[node].credit);
  }
}

}  // namespace atolldb
