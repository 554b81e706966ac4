#include "coordinator/epoch/epoch_time_recorder.h"

#include <utility>

#include "coordinator/epoch/epoch_clock.h"
#include "shared/base/check.h"

namespace atolldb {

EpochTimeRecorder::EpochTimeRecorder(FileSystem& file_system, std::string data_dir,
                                     const ClusterUuid& cluster_uuid, Logger logger)
    : file_system_(file_system),
      data_dir_(std::move(data_dir)),
      cluster_uuid_(cluster_uuid),
      logger_(std::move(logger)) {
  CHECK(!data_dir_.empty());
}

void EpochTimeRecorder::beat(const EpochBlock& epochs, const std::vector<NodeShared*>& nodes) {
  const auto now = std::chrono::steady_clock::now();
  if (recorded_epoch_ != 0 && now - recorded_at_ < kEpochTimePeriod) return;
  if (dirty_epoch(nodes) <= recorded_epoch_) return;
  // Acquire: this load precedes the read of the wall clock. So commits of earlier epochs have taken
  // their epochs before that time.
  const uint64_t current = epochs.current.load(std::memory_order_acquire);
  const auto wall = std::chrono::duration_cast<std::chrono::milliseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  if (current <= recorded_epoch_ + 1 || wall <= 0) return;
  // Acquire pairs with the release after `write` below.
  if (is_writing_.exchange(true, std::memory_order_acq_rel)) return;
  recorded_at_ = now;
  recorded_epoch_ = current - 1;
  // After `stop` the task is not taken. is_writing_ then stays true, so nothing is recorded any
  // more.
  [[maybe_unused]] const bool is_given =
      thread_.give([this, time = EpochTime{current - 1, static_cast<uint64_t>(wall)}] {
        write(time);
        // Release pairs with the exchange in beat.
        is_writing_.store(false, std::memory_order_release);
      });
}

/// Writes the time. After a failure it records no more times: the cluster can run without them, and
/// only restores to a time need them.
void EpochTimeRecorder::write(const EpochTime& time) {
  CHECK(thread_.is_current());
  if (has_failed_) return;
  const auto add = [&]() -> Result<void> {
    if (!writer_) {
      auto opened = EpochTimesWriter::open(file_system_, data_dir_, cluster_uuid_);
      if (!opened) return std::unexpected(opened.error());
      writer_.emplace(*std::move(opened));
    }
    return writer_->add(time);
  };
  const Result<void> added = add();
  if (added) return;
  has_failed_ = true;
  logger_->warn(
      "{}: times of epochs are not recorded any more: `atoll restore --time` is less "
      "exact from now on, and --epoch works",
      added.error().message);
}

}  // namespace atolldb
