// Workers that commit recorded blocks repeatedly. Their buffers are rings like those of a node, and
// full of recorded blocks. In each epoch the next blocks become committed.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/log_driver/recording.h"
#include "engine/log/epoch_logger.h"
#include "shared/memory/cluster_view.h"

namespace atolldb::log_bench {

/// Owns a private mapping of zero-filled pages.
class Mapping {
 public:
  explicit Mapping(uint64_t bytes);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();

  std::byte* bytes() const { return bytes_; }

 private:
  std::byte* bytes_;
  uint64_t size_;
};

class ReplayWorkers {
 public:
  /// `buffer_bytes`: per worker. REQUIRES: the recording has a block.
  ReplayWorkers(const Recording& recording, uint32_t workers, uint64_t buffer_bytes);

  /// Commits the next `blocks` blocks of each worker in `epoch`. Sets their headers and the
  /// versions of their records as a worker does at a commit. Returns the number of records.
  /// REQUIRES: the logger has closed the previous epoch; `blocks` is below the number of blocks in
  /// a buffer.
  uint64_t commit(uint64_t epoch, uint64_t blocks);
  /// Seals the blocks of the last commit. A worker of a cluster does this when it has filled a
  /// block.
  void seal_blocks();

  /// Returns the sources for the logger. No worker commits while the logger reads them.
  std::vector<EpochLogger::Source> sources() const;
  /// Returns the view of a cluster that consists of these workers.
  const ClusterView& view() const { return view_; }
  EpochBlock& epochs() { return view_.control->epochs; }

 private:
  struct Worker {
    Mapping memory;
    WorkerLogRing ring;
    uint64_t next = 0;    // number of the block that is committed next
    uint64_t sealed = 0;  // number of the first block that is not sealed
  };

  Mapping control_;
  Mapping slots_;
  ClusterView view_;
  std::vector<Worker> workers_;
};

}  // namespace atolldb::log_bench
