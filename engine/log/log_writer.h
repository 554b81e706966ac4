// Writes one logger's stream of blocks, in files of equal size (R26, R28, R29, R30). log_block.h
// describes the format.
//
// Thread: one, that of the logger. Files are filled to the last block, so the sequence number of a
// block gives its file and offset. The next file is created before it is needed. Its header names
// the last epoch closed before it. So the header is written later, with the blocks that follow it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/format/log_block.h"
#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct LogWriterSettings {
  std::string directory;  // the files are in its subfolder node<k>/
  uint16_t node = 0;
  uint16_t logger = 0;  // number of the logger in its node
  uint64_t incarnation = 0;
  uint64_t start_epoch = 0;  // the incarnation's first epoch
  ClusterUuid cluster_uuid = {};
  uint64_t file_bytes = 0;  // multiple of kLogBlockBytes, at least three blocks
};

struct LogWriterCounters {
  uint64_t bytes = 0;                  // written, with headers and markers
  uint64_t blocks = 0;                 // written, with headers and markers
  uint64_t syncs = 0;                  // number of file syncs
  uint64_t files = 0;                  // number of files begun
  uint64_t sync_ns = 0;                // time of syncs
  uint64_t failed_preallocations = 0;  // attempts to create the next file that found no disk space
};

/// Writes blocks of records and markers to the files of one stream.
class LogWriter {
 public:
  /// Creates the first file with its header, durably (R28). REQUIRES: `file_system` outlives the
  /// writer. Errors: those of the file system; the file exists already. On an error the function
  /// removes what it has created, as far as the file system allows.
  static Result<LogWriter> create(FileSystem& file_system, LogWriterSettings settings);

  /// Writes whole blocks in the given order, with as few writes as possible. When it returns, the
  /// blocks are written but not synced. `durable_epoch`: the cluster's durable epoch as known now.
  /// It is the minimum over all loggers, so it is at most last_closed_epoch() (CHECK). A block that
  /// named a larger epoch would make its log corrupt (R30).
  /// REQUIRES: the memory of the blocks is aligned to kIoBlockBytes; the workers have filled epoch,
  /// length, worker and type (records) and have sealed the blocks. The writer stamps the other
  /// header fields in place. Epochs do not descend and are later than the last closed one (CHECK).
  Result<void> append(std::span<const std::span<LogBlock>> runs, uint64_t durable_epoch);

  /// Writes `runs` as append does, and the marker of `epoch` in the same write. Then syncs once
  /// each file that was written since the last sync. When it returns, everything appended survives
  /// a power cut. Epochs ascend (CHECK).
  Result<void> close_epoch(uint64_t epoch, uint64_t durable_epoch,
                           std::span<const std::span<LogBlock>> runs = {});

  /// Returns true if the current file is half full and the next one does not exist. An idle logger
  /// should call prepare_next_file() now, so that a later append need not wait for it.
  bool wants_next_file() const { return !next_ && position_ >= blocks_per_file_ / 2; }
  /// Returns true if the current file is three quarters full and the next one does not exist. Even
  /// a busy logger should create the next file now. Then a full disk is noticed while the current
  /// file still has room.
  bool needs_next_file_soon() const {
    return !next_ && position_ >= blocks_per_file_ - blocks_per_file_ / 4;
  }
  /// Creates the next file, durably, if it does not exist.
  /// Error: code disk_full if there is no room. The attempt then leaves nothing on disk, the writer
  /// continues in the current file, and the caller may try again. Any other error is final.
  Result<void> prepare_next_file();
  /// Returns the bytes that still fit into the current file.
  uint64_t bytes_left() const {
    CHECK(position_ <= blocks_per_file_);
    return (blocks_per_file_ - position_) * kLogBlockBytes;
  }

  /// Returns the last epoch that is closed and durable in this logger's files, or start epoch - 1
  /// if there is none.
  uint64_t last_closed_epoch() const { return closed_epoch_; }
  const LogWriterCounters& counters() const { return counters_; }

 private:
  struct alignas(kLogBlockBytes) OwnBlock {
    LogBlock block = {};
  };

  LogWriter(FileSystem& file_system, LogWriterSettings settings);

  Result<std::unique_ptr<File>> make_file(uint32_t ordinal);
  Result<void> sync_new(File& file, const std::string& directory);
  /// Adds the header of the current file to `placed_`, as its first block.
  void start_file();
  /// Stamps blocks of records and adds them to `placed_`.
  Result<void> place_records(std::span<const std::span<LogBlock>> runs, uint64_t durable_epoch);
  /// Stamps blocks of one type and adds them to `placed_`. Continues in the next file when the
  /// current one is full.
  Result<void> place(LogBlockType type, std::span<LogBlock> run, uint64_t durable_epoch);
  void stamp(LogBlock& block, uint64_t durable_epoch);
  Result<void> write_placed();
  Result<void> sync_all();
  /// Stores the error; all later calls return it. After an error no file is written or synced.
  Result<void> fail(Error error);

  FileSystem* file_system_;
  LogWriterSettings settings_;
  uint64_t blocks_per_file_;
  std::unique_ptr<File> current_;
  std::unique_ptr<File> next_;
  std::vector<std::unique_ptr<File>> filled_;  // files before `current_` that are not synced yet
  std::optional<Error> failure_;

  uint32_t ordinal_ = 0;
  uint64_t position_ = 0;  // blocks of the current file that are written or placed
  uint64_t written_ = 0;   // blocks of the current file that are written
  uint64_t next_sequence_ = 0;
  uint64_t last_epoch_;    // epoch of the last block
  uint64_t closed_epoch_;  // epoch of the last marker
  LogWriterCounters counters_;

  std::vector<std::span<const std::byte>> placed_;  // blocks to write; kept to reuse the memory
  std::unique_ptr<OwnBlock> header_;
  std::unique_ptr<OwnBlock> marker_;
};

}  // namespace atolldb
