// Measures transactions on hot records, in one process. bench/contention runs it.
//
//   atoll-contention CASE [--workers N] [--places N] [--seconds S] [--plain] [--seed N]
//
// Prints one JSON object.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/common/clock.h"
#include "bench/common/latency_histogram.h"
#include "bench/contending/cases.h"
#include "bench/micro/loaded.h"
#include "shared/base/check.h"

namespace atolldb::bench {
namespace {

struct Options {
  std::string case_name;
  uint32_t workers = 2;
  uint32_t places = 0;  // of the RunGate; 0: no gate
  double seconds = 5;
  HotRecords::Policy policy;
  uint64_t seed = 1;
};

/// What one worker has measured.
struct Result {
  uint64_t commits = 0;
  LatencyHistogram latency;
  uint64_t commit_ns = 0;  // only with one worker: time in `commit`
};

uint64_t aborts_of(const WorkerMetrics& metrics) {
  uint64_t aborts = 0;
  for (const Counter& reason : metrics.aborts) aborts += reason.get();
  return aborts;
}

/// Runs transactions until `stops`, and counts those that begin after `counts`.
void work(LocalCluster::Worker& self, Visitor visitor, const std::atomic<bool>& counts,
          const std::atomic<bool>& stops, uint64_t& all_commits, Result& result) {
  const TickClock clock;
  while (!stops.load(std::memory_order_relaxed)) {
    const bool is_counted = counts.load(std::memory_order_relaxed);
    visitor.draw();
    const uint64_t begin = clock.ticks();
    uint64_t body_end = begin;
    expect_ok(self.run([&](Transaction& txn) {
      const Status status = visitor.visit(txn);
      body_end = clock.ticks();
      return status;
    }));
    const uint64_t end = clock.ticks();
    ++all_commits;
    if (!is_counted) continue;
    ++result.commits;
    result.latency.add(clock.to_ns(end - begin));
    result.commit_ns += clock.to_ns(end - body_end);
  }
  self.context.leave();
}

/// Returns the time in which a cache line gets from one core to another, in ns. In each turn the
/// line is fetched twice: by the load that sees the turn of the other thread, and by the store,
/// which takes the copy from the other thread.
double line_transfer_ns() {
  constexpr double kFetchesPerTurn = 2;
  constexpr uint64_t kRounds = 200'000;
  alignas(64) std::atomic<uint64_t> turn{0};
  std::jthread other([&] {
    for (uint64_t i = 1; i < 2 * kRounds; i += 2) {
      while (turn.load(std::memory_order_acquire) != i) {
      }
      turn.store(i + 1, std::memory_order_release);
    }
  });
  const uint64_t begin = monotonic_ns();
  for (uint64_t i = 0; i < 2 * kRounds; i += 2) {
    while (turn.load(std::memory_order_acquire) != i) {
    }
    turn.store(i + 1, std::memory_order_release);
  }
  return static_cast<double>(monotonic_ns() - begin) / (2.0 * kRounds * kFetchesPerTurn);
}

double pause_ns() {
  constexpr int kRounds = 100'000;
  const uint64_t begin = monotonic_ns();
  for (int i = 0; i < kRounds; ++i) spin_pause();
  return static_cast<double>(monotonic_ns() - begin) / kRounds;
}

void wait(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// The threads of one run.
class Crowd {
 public:
  Crowd(const Case& its_case, const Options& options)
      : options_(options),
        rows_(its_case, options.workers),
        results_(options.workers),
        commits_(options.workers) {
    if (options.places != 0) gate_ = std::make_unique<RunGate>(options.places);
    for (uint32_t i = 0; i < options.workers; ++i) {
      WorkerContext& context = rows_.cluster().worker(i).context;
      context.use_gate(gate_.get());
      context.hot_records().use(options.policy);
    }
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    for (uint32_t i = 0; i < options_.workers; ++i) {
      rows_.cluster().worker(i).context.use_gate(nullptr);
    }
  }

  void run() {
    std::vector<std::jthread> threads;
    for (uint32_t i = 0; i < options_.workers; ++i) {
      threads.emplace_back([this, i] {
        work(rows_.cluster().worker(i), Visitor(rows_, options_.seed * 1000 + i), counts_, stops_,
             commits_[i], results_[i]);
      });
    }
    wait(options_.seconds / 10);
    const uint64_t aborts_before = aborts();
    const uint64_t begin = monotonic_ns();
    counts_.store(true, std::memory_order_relaxed);
    wait(options_.seconds);
    counts_.store(false, std::memory_order_relaxed);
    seconds_ = static_cast<double>(monotonic_ns() - begin) * 1e-9;
    aborts_ = aborts() - aborts_before;
    stops_.store(true, std::memory_order_relaxed);
  }

  nlohmann::json report() {
    Result all;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < options_.workers; ++i) {
      all.commits += results_[i].commits;
      all.latency.merge(results_[i].latency);
      all.commit_ns += results_[i].commit_ns;
      sum += commits_[i] * rows_.its_case().writes;
    }
    CHECK(rows_.sum() == sum);  // no update was lost
    const double count = std::max(static_cast<double>(all.commits), 1.0);
    return {{"case", rows_.its_case().name},
            {"workers", options_.workers},
            {"places", options_.places},
            {"commits_per_second", static_cast<double>(all.commits) / seconds_},
            {"aborts_per_commit", static_cast<double>(aborts_) / count},
            {"p99_us", static_cast<double>(all.latency.quantile_ns(0.99)) * 1e-3},
            {"mean_ns", static_cast<double>(all.latency.sum_ns()) / count},
            {"commit_ns", static_cast<double>(all.commit_ns) / count}};
  }

 private:
  uint64_t aborts() {
    uint64_t aborts = 0;
    for (uint32_t i = 0; i < options_.workers; ++i) {
      aborts += aborts_of(rows_.cluster().worker(i).metrics);
    }
    return aborts;
  }

  Options options_;
  std::unique_ptr<RunGate> gate_;
  Rows rows_;
  std::vector<Result> results_;
  std::vector<uint64_t> commits_;  // of each worker, including those before and after the run
  std::atomic<bool> counts_{false};
  std::atomic<bool> stops_{false};
  double seconds_ = 0;
  uint64_t aborts_ = 0;
};

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Measures transactions on hot records.", "atoll-contention");
  app.add_option("case", options.case_name, "hardware, or one of: " + case_names())->required();
  app.add_option("--workers", options.workers, "threads with a worker each")
      ->check(CLI::Range(1u, kMaxWorkersPerNode));
  app.add_option("--places", options.places, "workers that run at the same time; 0: all");
  app.add_option("--seconds", options.seconds, "duration")->check(CLI::PositiveNumber);
  bool is_plain = false;
  app.add_flag("--plain", is_plain, "plain optimistic transactions, without HotRecords");
  app.add_option("--seed", options.seed, "seed of the choice of records");
  CLI11_PARSE(app, argc, argv);
  options.policy.is_on = !is_plain;
  nlohmann::json report;
  if (options.case_name == "hardware") {
    report = {{"line_ns", line_transfer_ns()}, {"pause_ns", pause_ns()}};
  } else {
    const Case* its_case = find_case(options.case_name);
    if (its_case == nullptr) {
      std::fprintf(stderr, "atoll-contention: %s: no such case, use one of: %s\n",
                   options.case_name.c_str(), case_names().c_str());
      return 2;
    }
    Crowd crowd(*its_case, options);
    crowd.run();
    report = crowd.report();
  }
  std::printf("%s\n", report.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace atolldb::bench

int main(int argc, char** argv) { return atolldb::bench::run(argc, argv); }
