// One logger's stream of blocks, cut into files of one size (design: durability; rules R26, R28,
// R29, R30). The format is in log_block.h.
//
// The logger thread owns a writer; nothing here is shared. Files are filled to the last block, so
// that a block's sequence gives its file and its offset. A file is made ahead of its first block,
// its header is written with that block, because it names the last epoch closed before.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/log/log_block.h"
#include "engine/log/log_files.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

using ClusterUuid = std::array<uint8_t, 16>;

struct LogWriterSettings {
  std::string directory;  // its node<k>/ gets the files
  uint16_t node = 0;
  uint16_t logger = 0;  // within the node
  uint64_t incarnation = 0;
  uint64_t start_epoch = 0;  // of the incarnation: no block has an earlier epoch
  ClusterUuid cluster_uuid = {};
  uint64_t file_bytes = 0;  // a multiple of kLogBlockBytes, three blocks or more
};

struct LogWriterCounters {
  uint64_t bytes = 0;                  // written, headers and markers included
  uint64_t blocks = 0;                 // likewise
  uint64_t syncs = 0;                  // of files
  uint64_t files = 0;                  // begun
  uint64_t sync_ns = 0;                // of syncs
  uint64_t failed_preallocations = 0;  // attempts to make the next file that found no room
};

class LogWriter {
 public:
  /// Makes the first file with its header, durably (R28). `file_system` outlives the writer.
  /// Errors: those of the file system, and a file of that name that is there already. Nothing that
  /// it has made is left then, as far as the file system removes it.
  static Result<LogWriter> create(FileSystem& file_system, LogWriterSettings settings);

  /// Writes whole blocks in the order given, with as few writes as possible; returns when they are
  /// written, not synced. The blocks' memory is aligned to kIoBlockBytes; the workers have filled
  /// epoch, length, worker and type (records) and sealed them; all else of the header is stamped
  /// here, in place.
  /// Epochs do not descend and are later than the last one closed (CHECK).
  /// `durable_epoch`: the global one as known now. It is the minimum over all loggers, so at most
  /// last_closed_epoch() (CHECK): a block that named more would make its log a corrupt one (R30).
  Result<void> append(std::span<const std::span<LogBlock>> runs, uint64_t durable_epoch);

  /// Writes `runs`, as append would, and in the same write the marker of `epoch`; then syncs once
  /// each file written to since the last time. When it returns, everything appended survives a
  /// power cut. Epochs ascend (CHECK).
  Result<void> close_epoch(uint64_t epoch, uint64_t durable_epoch,
                           std::span<const std::span<LogBlock>> runs = {});

  /// The current file is half full and its successor not made: prepare_next_file() now, when there
  /// is nothing better to do, spares the append that crosses over the time it takes.
  bool wants_next_file() const { return !next_ && position_ >= blocks_per_file_ / 2; }
  /// The current file is three quarters full and its successor not made: to be made even if there
  /// is something better to do, so that a full disk is known while there is room to wait in.
  bool needs_next_file_soon() const {
    return !next_ && position_ >= blocks_per_file_ - blocks_per_file_ / 4;
  }
  /// Makes the next file, durably, if it is not there yet. Code disk_full: nothing is left of the
  /// attempt, and the writer goes on with the current file: the caller may try again. Any other
  /// error is final.
  Result<void> prepare_next_file();
  /// What can still be written before the next file is needed.
  uint64_t bytes_left() const { return (blocks_per_file_ - position_) * kLogBlockBytes; }

  /// The last epoch closed and durable here; start epoch - 1 before the first.
  uint64_t last_closed_epoch() const { return closed_epoch_; }
  const LogWriterCounters& counters() const { return counters_; }

 private:
  struct alignas(kLogBlockBytes) OwnBlock {
    LogBlock block = {};
  };

  LogWriter(FileSystem& file_system, LogWriterSettings settings);

  Result<std::unique_ptr<File>> make_file(uint32_t ordinal);
  Result<void> sync_new(File& file, const std::string& directory);
  /// Begins the current file with its header, as the first of what is to be written.
  void start_file();
  /// Adds blocks of records, stamped, to what is to be written.
  Result<void> place_records(std::span<const std::span<LogBlock>> runs, uint64_t durable_epoch);
  /// The same for blocks of one type; crosses into further files.
  Result<void> place(LogBlockType type, std::span<LogBlock> run, uint64_t durable_epoch);
  void stamp(LogBlock& block, uint64_t durable_epoch);
  Result<void> write_placed();
  Result<void> sync_all();
  /// No file is written or synced after an error: this is the answer from now on.
  Result<void> fail(Error error);

  FileSystem* file_system_;
  LogWriterSettings settings_;
  uint64_t blocks_per_file_;
  std::unique_ptr<File> current_;
  std::unique_ptr<File> next_;
  std::vector<std::unique_ptr<File>> filled_;  // predecessors of `current_`, not yet synced
  std::optional<Error> failure_;

  uint32_t ordinal_ = 0;
  uint64_t position_ = 0;  // blocks of the current file that are written or placed
  uint64_t written_ = 0;   // blocks of the current file that are written
  uint64_t next_sequence_ = 0;
  uint64_t last_epoch_;    // of the last block
  uint64_t closed_epoch_;  // of the last marker
  LogWriterCounters counters_;

  std::vector<std::span<const std::byte>> placed_;  // from `written_` on; kept for its memory
  std::unique_ptr<OwnBlock> header_;
  std::unique_ptr<OwnBlock> marker_;
};

}  // namespace atolldb
