#include "coordinator/snapshots/recovery_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Returns part / whole, but at most 1. The counters grow while they are read one after the other,
/// so the part may exceed the whole.
double ratio(uint64_t part, uint64_t whole) {
  if (whole == 0) return 0;
  return std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

double recovered_share(const RecoveryCounts& counts) {
  const double read = ratio(counts.bytes_read, counts.log_bytes);
  const double composed = ratio(counts.records_composed, counts.records_received);
  // The composed part counts only for the bytes that are read. A recovery in parts (RecoverySteps)
  // composes the records of one part before it reads the next part.
  const double share = (read + read * composed) / 2;
  CHECK(share >= 0 && share <= 1);
  return share;
}

std::optional<uint64_t> recovery_eta_seconds(const RecoveryCounts& counts,
                                             std::chrono::nanoseconds elapsed) {
  const double share = recovered_share(counts);
  if (elapsed < kLeastEstimateTime || share <= 0) return std::nullopt;
  const double seconds = std::chrono::duration<double>(elapsed).count();
  return static_cast<uint64_t>(seconds * (1 - share) / share + 0.5);
}

std::string recovery_text(const RecoveryCounts& counts, std::chrono::nanoseconds elapsed) {
  constexpr double kMiB = 1 << 20;
  const auto percent = static_cast<uint32_t>(100 * recovered_share(counts));
  std::string text =
      fmt::format("{} % done: {:.1f} of {:.1f} MiB of log read, {} of {} records composed", percent,
                  static_cast<double>(std::min(counts.bytes_read, counts.log_bytes)) / kMiB,
                  static_cast<double>(counts.log_bytes) / kMiB, counts.records_composed,
                  counts.records_received);
  if (const auto eta = recovery_eta_seconds(counts, elapsed)) {
    text += fmt::format("; about {} s left", *eta);
  }
  return text;
}

}  // namespace atolldb
