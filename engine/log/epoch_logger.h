// Epoch logger: writes the committed blocks of its workers to the device, epoch by epoch (R26, R27,
// R30). Source: [FOEDUS15] section 6, [SILOR14] section 3.
//
// The logger closes epoch e when the current epoch is later than e. It waits until none of its
// workers is committing in e or an earlier epoch. Then it loads the `committed` position of each
// worker. So everything committed up to e lies before these positions, and no more records of these
// epochs follow. Only then does the logger write the blocks; the last ones share a write with the
// marker. One sync follows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/log/log_writer.h"
#include "engine/log/worker_log.h"
#include "shared/base/error.h"
#include "shared/memory/cluster_view.h"

namespace atolldb {

class EpochLogger {
 public:
  /// A worker that this logger writes for.
  struct Source {
    const WorkerSlot* slot;
    WorkerLogRing ring;
  };

  /// REQUIRES: `view` outlives the logger.
  /// Thread: one, for all members.
  EpochLogger(const ClusterView& view, LogWriter writer, std::vector<Source> workers);

  /// Makes everything that the workers commit up to `epoch` durable, with one marker. Waits for
  /// commits in progress. This wait is short, because such a commit only has to apply its records
  /// and seal its blocks. When `close` returns, the workers may reuse the blocks. After an error
  /// the logger writes nothing more.
  /// REQUIRES: the current epoch is later than `epoch`.
  Result<void> close(uint64_t epoch);

  /// Returns the last epoch that `close` has made durable. Before the first `close`, returns the
  /// incarnation's start epoch - 1.
  uint64_t durable_epoch() const { return writer_.last_closed_epoch(); }
  /// Creates the next file before it is needed. Errors: those of LogWriter::prepare_next_file.
  Result<void> prepare_next_file() { return writer_.prepare_next_file(); }
  /// Return whether the logger should create the next file now. `wants_next_file` is for an idle
  /// logger, `needs_next_file_soon` for a busy one.
  bool wants_next_file() const { return writer_.wants_next_file(); }
  bool needs_next_file_soon() const { return writer_.needs_next_file_soon(); }
  /// Returns the bytes that still fit into the current file.
  uint64_t bytes_left() const { return writer_.bytes_left(); }
  const LogWriterCounters& counters() const { return writer_.counters(); }

  /// Measurements of the latest `close`.
  struct Batch {
    uint64_t written_bytes = 0;  // committed blocks, headers and the marker
    uint64_t close_ns = 0;       // time of the wait for commits in progress
    uint64_t write_ns = 0;       // time of the writes, without the syncs
    uint64_t sync_ns = 0;        // time of the syncs
  };
  const Batch& latest() const { return latest_; }

 private:
  static constexpr uint64_t kNoEpoch = ~uint64_t{0};

  struct Worker {
    Source source;
    uint64_t next = 0;       // number of the first block not yet written
    uint64_t committed = 0;  // value of WorkerLogControl::committed when the epoch closed
  };
  struct alignas(kLogBlockBytes) OwnBlock {
    LogBlock block;
  };

  void await_closed(uint64_t epoch) const;
  void load_committed();
  /// Writes the blocks committed up to `epoch`. Leaves the blocks of the last epoch in `runs_`,
  /// because one write stores them together with the marker.
  Result<void> write_up_to(uint64_t epoch);
  static uint64_t epoch_of_next(const Worker& worker);
  void take_blocks(Worker& worker, uint64_t epoch);
  LogBlock& copy_of(const LogBlock& block);
  void free_blocks();
  uint64_t durable_epoch_to_name() const;

  const ClusterView* view_;
  LogWriter writer_;
  std::vector<Worker> workers_;
  std::vector<std::span<LogBlock>> runs_;  // blocks to write; kept to reuse the memory
  std::unique_ptr<OwnBlock[]> copies_;     // one block per worker
  uint32_t copies_used_ = 0;
  Batch latest_;
};

}  // namespace atolldb
