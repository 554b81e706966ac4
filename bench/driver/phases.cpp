#include "bench/driver/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "bench/common/clock.h"

namespace atolldb::bench {

namespace {

/// Delay between the driver's request and the common start of all workers. The request reaches
/// every worker in this time.
constexpr uint64_t kStartDelayNs = 300'000'000;

/// Waits until the nodes have allocated the memory of their pools, so that the measurement does not
/// share the processors with that. Stops waiting if there is no progress, because then other
/// clients use the cluster.
void await_pool_memory(ClusterPort& cluster, const Console& console) {
  constexpr std::chrono::milliseconds kPause{1'000};
  constexpr int kMostPausesWithoutProgress = 5;
  uint64_t left = cluster.unallocated_pool_bytes();
  for (int without = 0; left != 0 && without < kMostPausesWithoutProgress; ++without) {
    std::this_thread::sleep_for(kPause);
    const uint64_t before = std::exchange(left, cluster.unallocated_pool_bytes());
    if (left != before) without = 0;
    console.progress(fmt::format("  {:>4} MiB of the pools have no memory yet", left >> 20));
  }
}

/// Prints the commit rate once a second until it is destroyed. Adds the rates of the measured
/// seconds to `per_second`, which the caller reads afterwards.
class Progress {
 public:
  Progress(ClusterPort& cluster, const Console& console, std::string note, const RunTimes& times,
           std::vector<double>& per_second)
      : cluster_(cluster),
        console_(console),
        note_(std::move(note)),
        times_(times),
        per_second_(per_second),
        thread_([this] { run(); }) {}
  ~Progress() {
    {
      const std::lock_guard guard(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  static constexpr uint64_t kSecondNs = 1'000'000'000;

  void run() {
    // Waits for the common start, so that the first second is a whole one.
    if (stopped_before(times_.start_ns)) return;
    uint64_t last = cluster_.commits();
    uint64_t last_ns = monotonic_ns();
    for (uint64_t second = 1;; ++second) {
      if (stopped_before(times_.start_ns + second * kSecondNs)) return;
      const uint64_t now = cluster_.commits();
      const uint64_t now_ns = monotonic_ns();
      const uint64_t commits = now - std::min(last, now);  // 0 commits: the cluster did not answer
      console_.progress(fmt::format("  {:>4} s: {:>9} transactions/s ({})", second,
                                    format_count(commits), note_));
      const uint64_t first_ms = times_.warmup_ms;
      const bool is_measured =
          (second - 1) * 1'000 >= first_ms && second * 1'000 <= first_ms + times_.run_ms;
      if (is_measured && now != 0 && now_ns > last_ns) {
        per_second_.push_back(static_cast<double>(commits) * 1e9 /
                              static_cast<double>(now_ns - last_ns));
      }
      if (now == 0) continue;  // the next rate covers two seconds
      last = now;
      last_ns = now_ns;
    }
  }
  bool stopped_before(uint64_t at_ns) {
    std::unique_lock lock(mutex_);
    const uint64_t now = monotonic_ns();
    const auto left = std::chrono::nanoseconds(at_ns > now ? at_ns - now : 0);
    return changed_.wait_for(lock, left, [this] { return stop_; });
  }

  ClusterPort& cluster_;
  const Console& console_;
  const std::string note_;
  const RunTimes times_;
  std::vector<double>& per_second_;  // of the thread, until it has ended
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace

ReportHead describe(ClusterPort& cluster) {
  ReportHead head;
  head.nodes = cluster.node_count();
  head.workers = cluster.worker_count();
  head.mode = cluster.mode();
  head.durability = cluster.durability();
  head.machine = MachineInfo::detect();
  return head;
}

Result<void> load(ClusterPort& cluster, const Console& console, std::span<const StorageSpec> specs,
                  const std::string& job, const std::string& input, const std::string& what,
                  ReportHead& report) {
  await_pool_memory(cluster, console);
  for (const StorageSpec& spec : specs) {
    ATOLL_TRY(cluster.create_storage(spec));
  }
  const uint64_t start_ns = monotonic_ns();
  ATOLL_TRY(cluster.run_job(job, input));
  report.load_seconds = static_cast<double>(monotonic_ns() - start_ns) * 1e-9;
  console.line(fmt::format("loaded {} in {:.1f} s", what, report.load_seconds));
  return {};
}

RunTimes announce_run(const Console& console, const CommonOptions& options, uint32_t number,
                      uint64_t runs_before) {
  RunTimes times;
  times.run_number = runs_before + number;
  times.warmup_ms = number == 1 ? uint64_t{options.warmup_seconds} * 1'000 : 0;
  times.run_ms = uint64_t{options.seconds} * 1'000;
  times.start_ns = monotonic_ns() + kStartDelayNs;
  console.line(fmt::format(
      "run {} of {}: {} s{}", number, options.repeat, options.seconds,
      times.warmup_ms == 0 ? "" : fmt::format(" after {} s warm-up", options.warmup_seconds)));
  return times;
}

Result<std::vector<std::string>> run_with_progress(ClusterPort& cluster, const Console& console,
                                                   const std::string& job, const std::string& input,
                                                   const RunTimes& times,
                                                   std::vector<double>& per_second) {
  const Progress progress(cluster, console, "durability " + cluster.durability(), times,
                          per_second);
  return cluster.run_job(job, input);
}

Result<void> survey(ClusterPort& cluster, std::string_view command, const std::string& job,
                    const std::string& input, ReportHead& report) {
  if (!cluster.may_run_jobs()) return {};
  ATOLL_ASSIGN(const auto outputs, cluster.run_job(job, input));
  try {
    const auto json = nlohmann::json::parse(outputs.at(0));
    for (const auto& [name, bytes] : json.at("storage_bytes").items()) {
      report.storage_bytes.emplace_back(name, bytes.get<uint64_t>());
    }
    for (const auto& pool : json.at("pools")) {
      report.pools.push_back({pool.at("node"), pool.at("bytes"), pool.at("used_bytes")});
      report.pool_page_bytes = pool.at("mapped_page_bytes");
    }
  } catch (const std::exception& error) {
    return make_error(ExitCode::failed,
                      fmt::format("{}: the survey cannot be read: {}", command, error.what()));
  }
  return {};
}

}  // namespace atolldb::bench
