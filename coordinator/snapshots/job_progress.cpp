#include "coordinator/snapshots/job_progress.h"

#include <algorithm>

#include "engine/gleaner/snapshot_plan.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Part of a job's time that passes before its mappers read: 0.18 to 0.27 in traces of TPC-C.
constexpr double kPartBeforeProgress = 0.25;

}  // namespace

JobProgress::Counts JobProgress::counts_of(const GleanerMetrics& metrics) {
  // Relaxed: the counters only serve estimates.
  const auto load = [](const std::atomic<uint64_t>& word) {
    return word.load(std::memory_order_relaxed);
  };
  return {.read = load(metrics.bytes_read),
          .received = load(metrics.records_received),
          .applied = load(metrics.records_composed) + load(metrics.records_elided),
          .paused_us = load(metrics.paused_us)};
}

void JobProgress::begin(uint64_t log_bytes) {
  log_bytes_ = log_bytes;
  for (size_t node = 0; node < begin_.size(); ++node) {
    begin_[node] = counts_of(metrics_[node]->gleaner);
  }
}

double JobProgress::done() {
  Counts sum;
  for (size_t node = 0; node < begin_.size(); ++node) {
    const Counts now = counts_of(metrics_[node]->gleaner);
    Counts& begin = begin_[node];
    if (now.read == begin.read) begin = now;
    sum.read += now.read - begin.read;
    sum.received += now.received - begin.received;
    sum.applied += now.applied - begin.applied;
    sum.paused_us += now.paused_us - begin.paused_us;
  }
  if (sum.paused_us != 0) return 0;
  // Reducers compose when all mappers have ended.
  if (sum.applied == 0) return work_of_mappers(sum.read, static_cast<double>(log_bytes_));
  return work_of_composers(sum.applied, static_cast<double>(sum.received));
}

JobProfile::JobProfile() {
  parts_[0] = 0;
  for (size_t i = 1; i <= kMarks; ++i) {
    parts_[i] = kPartBeforeProgress +
                (1 - kPartBeforeProgress) * static_cast<double>(i) / static_cast<double>(kMarks);
  }
}

void JobProfile::begin(double progress) {
  begin_part_ = part_at(progress);
  reached_ = 0;
  record(progress, 0);
  first_ = reached_;
}

void JobProfile::record(double progress, double worked_s) {
  CHECK(worked_s >= 0);
  while (reached_ <= kMarks && progress >= static_cast<double>(reached_) / kMarks) {
    reached_s_[reached_++] = worked_s;
  }
}

void JobProfile::learn(double worked_s) {
  if (worked_s <= 0 || reached_ < kLeastMarks) return;
  for (size_t i = first_; i <= kMarks; ++i) {
    // The progress is published late, so the last marks may be missing.
    const double passed = i < reached_ ? std::min(1.0, reached_s_[i] / worked_s) : 1.0;
    parts_[i] = begin_part_ + (1 - begin_part_) * passed;
  }
}

double JobProfile::passed(double progress) const {
  if (begin_part_ >= 1) return 0;  // no part of the profile is left, so it tells nothing
  return std::max(0.0, part_at(progress) - begin_part_) / (1 - begin_part_);
}

double JobProfile::part_at(double progress) const {
  const double at = std::clamp(progress, 0.0, 1.0) * kMarks;
  const size_t mark = std::min(static_cast<size_t>(at), kMarks - 1);
  return parts_[mark] + (parts_[mark + 1] - parts_[mark]) * (at - static_cast<double>(mark));
}

}  // namespace atolldb
