#include "coordinator/snapshots/recovery_steps.h"

#include <algorithm>
#include <utility>

#include "shared/base/check.h"

namespace atolldb {

std::vector<PlannedStream> streams_up_to(std::vector<PlannedStream> streams, uint64_t epoch) {
  for (PlannedStream& stream : streams) stream.last_epoch = std::min(stream.last_epoch, epoch);
  std::erase_if(streams, [](const PlannedStream& stream) {
    return stream.stream.start_epoch && stream.last_epoch < *stream.stream.start_epoch;
  });
  return streams;
}

bool RecoverySteps::shrink(uint64_t recovered) {
  if (epoch_ <= recovered + 1 || ++failures_ > kMaxFailures) return false;
  epoch_ = recovered + (epoch_ - recovered) / 2;
  CHECK(epoch_ > recovered && !is_last());
  return true;
}

void RecoverySteps::advance(uint64_t recovered_before, uint64_t recovered) {
  CHECK(!is_last() && recovered_before < epoch_);
  CHECK(epoch_ <= recovered && recovered <= last_epoch_);
  const uint64_t width = epoch_ - recovered_before;
  epoch_ = last_epoch_ - recovered <= 2 * width ? last_epoch_ : recovered + 2 * width;
  CHECK(is_last() || epoch_ > recovered);
}

uint64_t recovered_epoch(const std::vector<PlannedStream>& streams,
                         std::optional<uint64_t> snapshot_epoch, uint64_t last_epoch) {
  uint64_t first = last_epoch;
  for (const PlannedStream& stream : streams) {
    first = std::min(first, stream.stream.start_epoch.value_or(1) - 1);
  }
  return std::max(first, snapshot_epoch.value_or(0));
}

}  // namespace atolldb
