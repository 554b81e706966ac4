// Reads one logger's stream, block by block, over its files (design: durability; R29, R30). The
// files may be somebody else's, and live: they are opened for reading only.
//
// A stream ends where its chain of blocks does: where nothing was written yet, or at the first
// defect. Whether that is the tail of a crash or corruption is decided by log_scan.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/log/log_block.h"
#include "engine/log/log_files.h"
#include "engine/log/log_writer.h"
#include "shared/error.h"
#include "shared/file/file.h"
#include "shared/file/io_buffer.h"
#include "shared/limits.h"

namespace atolldb {

/// Which stream, and what is known of it from elsewhere.
struct LogStream {
  std::string directory;  // its node<k>/ holds the files
  uint16_t node = 0;
  uint16_t logger = 0;
  uint64_t incarnation = 0;
  std::optional<uint64_t> start_epoch;      // else taken from the first file
  std::optional<ClusterUuid> cluster_uuid;  // likewise
  /// A snapshot has all commits up to this epoch: first files that hold no later one may be missing
  /// (R38).
  uint64_t covered_epoch = 0;
};

/// What a reader does with blocks that LogStream::covered_epoch covers.
enum class CoveredBlocks : uint8_t {
  read,
  skip,  // as many as is cheap: these are not checked either
};

/// A place, and why the stream ends there.
struct LogEnd {
  std::string file;
  uint64_t offset = 0;     // in bytes
  bool is_defect = false;  // false: nothing was written there yet
  std::string reason;
};

/// What follows the end of a stream: blocks that are intact by themselves, out of any chain.
struct LogRemainder {
  uint64_t intact_blocks = 0;
  uint64_t largest_epoch = 0;
  uint64_t largest_durable_epoch = 0;
};

class LogReader {
 public:
  /// Looks for the stream's files; a missing first one that no snapshot covers is the end of the
  /// stream, and a defect.
  /// `file_system` outlives the reader. Errors: those of the file system.
  static Result<LogReader> open(FileSystem& file_system, LogStream stream,
                                CoveredBlocks covered = CoveredBlocks::read);

  /// The next block of the chain, checked in all ways, file headers and markers included; valid
  /// until the next call. Null: the stream has ended, see end(). Errors: those of the file system.
  Result<const LogBlock*> next();

  /// Where the block last returned is; the chain is gapless and intact up to and with it.
  const std::string& file() const { return path_; }
  uint64_t offset() const { return (position_ - 1) * kLogBlockBytes; }

  /// Of covered blocks left out: whole files, and those from the first header to a marker. Complete
  /// after the second next(): the first one returns the header.
  uint64_t skipped_bytes() const { return skipped_blocks_ * kLogBlockBytes; }

  /// REQUIRES: next() returned null.
  const LogEnd& end() const { return *end_; }
  /// REQUIRES: next() returned null. Reads all that is left of the stream's files, once.
  Result<LogRemainder> read_remainder();

  /// The epoch of the last marker; start epoch - 1 before the first (0 before the first header).
  uint64_t closed_epoch() const { return closed_epoch_; }
  /// Names of the stream's files there are, by ordinal, as found by open().
  const std::vector<uint32_t>& ordinals() const { return ordinals_; }
  const LogStream& stream() const { return stream_; }

 private:
  LogReader(FileSystem& file_system, LogStream stream);

  static constexpr uint64_t kBlocksAtOnce = kHugePageBytes / kLogBlockBytes;  // of the buffer

  Result<void> open_file(uint32_t ordinal);
  /// The block at `position_` of the current file; null at the end of the file.
  Result<const LogBlock*> read_block();
  // log_reader_skip.cpp:
  /// The last file before which all is covered.
  Result<uint32_t> find_first_file() const;
  /// From behind the first file's header to the last marker of a covered epoch, if it is found.
  Result<void> skip_covered_blocks();
  /// An intact block of this place and of a covered epoch, and no file header.
  bool is_covered(const LogBlock& block, uint64_t position) const;
  /// Ends the stream at `position_`.
  const LogBlock* end_here(bool is_defect, std::string reason);
  /// What is wrong with the block as such: fits no stream, or not this one's. Null: nothing.
  const char* defect_of(const LogBlock& block) const;
  /// What is wrong with it as the next one of the chain; else takes it over. Null: nothing.
  const char* chain(const LogBlock& block);
  const char* chain_header(const LogBlock& block);
  /// The same of the first file there is, whose predecessors were deleted.
  const char* chain_first_header(const LogBlock& block);

  FileSystem* file_system_;
  LogStream stream_;
  std::vector<uint32_t> ordinals_;
  IoBuffer buffer_{kBlocksAtOnce * kLogBlockBytes};
  uint64_t buffer_offset_ = 0;  // in the file
  uint64_t buffer_bytes_ = 0;

  std::unique_ptr<File> file_;
  std::string path_;
  uint32_t ordinal_ = 0;
  uint32_t first_ordinal_ = 0;    // where the stream begins
  uint64_t position_ = 0;         // of the next block in the file
  uint64_t blocks_per_file_ = 0;  // 0: not known yet
  uint64_t next_sequence_ = 0;
  uint64_t last_epoch_ = 0;
  uint64_t closed_epoch_ = 0;
  bool may_skip_ = false;  // CoveredBlocks::skip, and not done yet
  uint64_t skipped_blocks_ = 0;
  std::optional<LogEnd> end_;
};

}  // namespace atolldb
