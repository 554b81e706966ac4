// Results and latencies of the procedures of a node, by procedure. They are local to the process of
// the node, because only its own scrapes read them.
//
// Each worker, and the thread that sends the answers, counts in an array of its own. A scrape adds
// the arrays up. Jobs and the drivers of benchmarks are no procedures, and are not counted.
//
// Cost of a call: the worker stores to three or four cache lines that only it writes. It reads the
// clock twice, and once more if it sends the answer itself. The session thread and the thread of
// the answers read the clock once per request. A read takes about 25 ns. It is no system call,
// because the vDSO has the clock. The exception is a machine whose clock source is not the counter
// of its processor.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/status.h"
#include "shared/memory/histogram.h"
#include "shared/memory/zeroed_array.h"

namespace atolldb {

class MetricFamilies;

/// Counts of latencies in a few buckets. One thread adds, any thread reads; zeroed memory has no
/// latencies. `Histogram` is not used here, because it has 8 KiB for each procedure and thread, and
/// its buckets end at no round number of seconds.
class LatencyCounts {
 public:
  /// Upper limits of the buckets, which include them. One more bucket counts longer latencies.
  static constexpr std::array<uint64_t, 20> kBoundsNs = {
      5'000,       10'000,        20'000,        50'000,        100'000,
      200'000,     500'000,       1'000'000,     2'000'000,     5'000'000,
      10'000'000,  20'000'000,    50'000'000,    100'000'000,   200'000'000,
      500'000'000, 1'000'000'000, 2'000'000'000, 5'000'000'000, 10'000'000'000};
  static constexpr uint32_t kBuckets = kBoundsNs.size() + 1;

  static constexpr uint32_t bucket_of(uint64_t ns) {
    return static_cast<uint32_t>(std::ranges::lower_bound(kBoundsNs, ns) - kBoundsNs.begin());
  }

  void add(uint64_t ns) {
    counts_[bucket_of(ns)].add();
    sum_ns_.add(ns);
  }
  uint64_t count(uint32_t bucket) const {
    DCHECK(bucket < kBuckets);
    return counts_[bucket].get();
  }
  uint64_t sum_ns() const { return sum_ns_.get(); }

 private:
  std::array<Counter, kBuckets> counts_;
  Counter sum_ns_;
};
static_assert(std::ranges::is_sorted(LatencyCounts::kBoundsNs));

/// Statistics of one procedure that one thread counts. Zeroed memory has no calls.
struct alignas(64) ProcedureCounts {
  std::array<Counter, kStatusCount> results;  // calls by final status; `ok`: commits
  Counter retries;                            // attempts after the first one of a call
  LatencyCounts execution;  // on a worker: begin of the first attempt until commit or final abort
  LatencyCounts durable;    // from the arrival of a request until its durable answer is sent
};
static_assert(sizeof(ProcedureCounts) == 640);

/// Sums over all threads.
struct LatencyTotals {
  std::array<uint64_t, LatencyCounts::kBuckets> counts{};
  uint64_t sum_ns = 0;

  void add(const LatencyCounts& other);
};
struct ProcedureTotals {
  std::array<uint64_t, kStatusCount> results{};
  uint64_t retries = 0;
  LatencyTotals execution;
  LatencyTotals durable;

  uint64_t calls() const;
};

/// The statistics of all procedures of a node. Its memory is bounded: about 160 KiB for each
/// thread.
class ProcedureMetrics {
 public:
  /// Number of procedures with statistics of their own, the first ones of the registry. All others
  /// share one row.
  static constexpr uint32_t kMaxProcedures = 256;
  /// Index of the shared row, whatever the number of rows is.
  static constexpr uint32_t kSharedRow = kMaxProcedures;
  /// Row of all procedures without a row of their own.
  static constexpr std::string_view kOther = "other";

  /// `names`: those of the procedures by their ordinals. A procedure with the name kOther uses the
  /// shared row, because two rows of one name would make the scrape invalid. A procedure whose name
  /// is not UTF-8 does so, too, because Prometheus rejects such labels.
  ProcedureMetrics(std::span<const std::string> names, uint32_t workers);

  /// Gives rows to procedures that a reload adds. `names`: those of all procedures by their
  /// ordinals; the first ones are those of before. Calls of a procedure that was not named yet
  /// count in the shared row. REQUIRES: one thread at a time. Thread: any; the others may count
  /// meanwhile.
  void add_names(std::span<const std::string> names);

  /// Records the end of a call, after its last attempt. Thread: that worker.
  void add_result(uint32_t worker, uint32_t procedure, Status result, uint32_t retries,
                  uint64_t execution_ns) {
    DCHECK(worker < workers_ && result < Status::count_);
    ProcedureCounts& counts = counts_of(worker, procedure);
    counts.results[static_cast<uint32_t>(result)].add();
    if (retries != 0) counts.retries.add(retries);
    counts.execution.add(execution_ns);
  }
  /// Records a durable answer, just before it is sent. `thread`: the calling thread, which is a
  /// worker or answers_thread().
  void add_durable(uint32_t thread, uint32_t procedure, uint64_t ns) {
    counts_of(thread, procedure).durable.add(ns);
  }
  /// Index of the thread of DurableAnswers. The workers have the indexes below it.
  uint32_t answers_thread() const { return workers_; }

  /// Number of rows of procedures with statistics of their own. Acquire pairs with the release of
  /// add_names: their names are complete. Thread: any, as for the next two.
  uint32_t named_rows() const { return named_rows_.load(std::memory_order_acquire); }
  /// `row`: less than named_rows(), or kSharedRow.
  std::string_view row_name(uint32_t row) const;
  ProcedureTotals totals(uint32_t row) const;

 private:
  ProcedureCounts& counts_of(uint32_t thread, uint32_t procedure) {
    DCHECK(thread <= workers_);
    // Relaxed: a call that sees the shared row is counted there.
    const uint32_t row = procedure < row_of_.size()
                             ? row_of_[procedure].load(std::memory_order_relaxed)
                             : kSharedRow;
    return counts_[uint64_t{thread} * kRowsPerThread + row];
  }

  static constexpr uint32_t kRowsPerThread = kMaxProcedures + 1;
  /// Limit of the ordinals with a row. Names without one of their own have ordinals, too.
  static constexpr uint32_t kMaxOrdinals = 2 * kMaxProcedures;

  const uint32_t workers_;
  std::array<std::atomic<uint32_t>, kMaxOrdinals> row_of_;  // by ordinal of the procedure
  std::array<std::string, kMaxProcedures> row_names_;       // the first named_rows_ are constant
  std::atomic<uint32_t> named_rows_{0};
  size_t known_names_ = 0;               // used by add_names only
  ZeroedArray<ProcedureCounts> counts_;  // the rows of worker 0, of worker 1, ..., of the answers
};

/// Adds the metric families about procedures to a scrape. Adds samples of the procedures that have
/// been called, and no family if there are none.
void add_procedures(MetricFamilies& families, const ProcedureMetrics& procedures);

/// Returns the same counts as JSON, for `procedure.list` (soc/README.md). Has the procedures that
/// have been called.
nlohmann::json procedure_counts_json(const ProcedureMetrics& procedures);

}  // namespace atolldb
