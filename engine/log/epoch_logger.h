// One logger: takes the blocks that its workers have committed, epoch by epoch, to the device
// (design: durability; rules R26, R27, R30; foedus.txt section 6, silor.txt section 3).
//
// Closing an epoch e: the current epoch is later; then no worker of ours is committing in e or
// before; then its committed markers are loaded. So everything that was committed up to e is in
// front of them, and nothing will be added. Only then its blocks are written, the last of them in
// one write with the marker, then there is one sync.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/log/log_writer.h"
#include "engine/log/worker_log.h"
#include "shared/error.h"
#include "shared/memory/cluster_view.h"

namespace atolldb {

class EpochLogger {
 public:
  /// A worker that this logger writes for.
  struct Source {
    const WorkerSlot* slot;
    WorkerLogRing ring;
  };

  /// One thread's from now on. `view` outlives it.
  EpochLogger(const ClusterView& view, LogWriter writer, std::vector<Source> workers);

  /// Makes everything that the workers commit up to `epoch` durable, with one marker. REQUIRES: the
  /// current epoch is later. Waits for commits that are under way, which apply what they have
  /// written and take the checksums of their blocks. The blocks are free for the workers
  /// afterwards. After an error nothing more is written.
  Result<void> close(uint64_t epoch);

  /// The last epoch that `close` has made durable; the incarnation's start epoch - 1 before.
  uint64_t durable_epoch() const { return writer_.last_closed_epoch(); }
  /// Makes the next file ahead of its use: see LogWriter.
  Result<void> prepare_next_file() { return writer_.prepare_next_file(); }
  /// When that is worth the time if there is nothing to close, and if there is.
  bool wants_next_file() const { return writer_.wants_next_file(); }
  bool needs_next_file_soon() const { return writer_.needs_next_file_soon(); }
  /// What can still be written before the next file is needed.
  uint64_t bytes_left() const { return writer_.bytes_left(); }
  const LogWriterCounters& counters() const { return writer_.counters(); }

  /// Of the latest `close`.
  struct Batch {
    uint64_t written_bytes = 0;  // of committed blocks; headers and the marker included
    uint64_t write_ns = 0;       // likewise
    uint64_t sync_ns = 0;
  };
  const Batch& latest() const { return latest_; }

 private:
  static constexpr uint64_t kNoEpoch = ~uint64_t{0};

  struct Worker {
    Source source;
    uint64_t next = 0;       // number of the first block that is not written
    uint64_t committed = 0;  // position, as loaded when the epoch was closed
  };
  struct alignas(kLogBlockBytes) OwnBlock {
    LogBlock block;
  };

  void await_closed(uint64_t epoch) const;
  void load_committed();
  /// Writes what is committed up to `epoch`, but leaves the last of it in `runs_`.
  Result<void> write_up_to(uint64_t epoch);
  static uint64_t epoch_of_next(const Worker& worker);
  void take_blocks(Worker& worker, uint64_t epoch);
  LogBlock& copy_of(const LogBlock& block);
  void free_blocks();
  uint64_t durable_epoch_to_note() const;

  const ClusterView* view_;
  LogWriter writer_;
  std::vector<Worker> workers_;
  std::vector<std::span<LogBlock>> runs_;  // taken, not yet written; kept for its memory
  std::unique_ptr<OwnBlock[]> copies_;     // one a worker
  uint32_t copies_used_ = 0;
  Batch latest_;
};

}  // namespace atolldb
