// Reads one logger's stream, block by block, over its files (R29, R30). The files may belong to a
// running cluster, because the reader opens them for reading only.
//
// A stream ends where its chain of blocks ends: at a block that was never written, or at the first
// defect. log_scan.h decides whether that end is the torn tail of a crash or corruption.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/format/log_block.h"
#include "engine/log/log_files.h"
#include "engine/log/log_writer.h"
#include "shared/base/check.h"
#include "shared/base/error.h"
#include "shared/base/limits.h"
#include "shared/file/file.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

/// Identifies a stream. The reader takes missing optional members from the first file.
struct LogStream {
  std::string directory;  // the files are in its subfolder node<k>/
  uint16_t node = 0;
  uint16_t logger = 0;
  uint64_t incarnation = 0;
  std::optional<uint64_t> start_epoch;      // if unknown, taken from the first file
  std::optional<ClusterUuid> cluster_uuid;  // if unknown, taken from the first file
  /// A snapshot has all commits up to this epoch. The first files may be missing if they hold no
  /// later epoch (R38).
  uint64_t covered_epoch = 0;
};

/// Treatment of blocks that LogStream::covered_epoch covers.
enum class CoveredBlocks : uint8_t {
  read,
  skip,  // skip as many as is cheap; skipped blocks are not verified
};

/// The place where the stream ends, and the reason.
struct LogEnd {
  std::string file;
  uint64_t offset = 0;     // in bytes
  bool is_defect = false;  // false: the chain ends at a block never written
  std::string reason;
};

/// Summary of the blocks after the end of a stream that are intact by themselves, although no chain
/// leads to them.
struct LogRemainder {
  uint64_t intact_blocks = 0;
  uint64_t largest_epoch = 0;
  uint64_t largest_durable_epoch = 0;
};

/// Returns the first defect of the block's records, or nothing if there is none. Without a defect
/// the records fill the block's length exactly, and each is well-formed and has the block's epoch.
/// A filler has at least 8 bytes; its fields other than type and length are undefined. REQUIRES:
/// the block's length is at most kLogBlockPayload.
std::optional<std::string> defect_of_records(const LogBlock& block);

/// Returns the blocks of one stream in order, up to its end.
class LogReader {
 public:
  /// Finds the stream's files. If the first file is missing and no snapshot covers it, the stream
  /// ends there with a defect. REQUIRES: `file_system` outlives the reader. Errors: those of the
  /// file system.
  static Result<LogReader> open(FileSystem& file_system, LogStream stream,
                                CoveredBlocks covered = CoveredBlocks::read);

  /// Opens one file of the stream. The reader takes what the file's header says about the earlier
  /// files as given, and ends where the file ends. REQUIRES: as for `open`; the file exists.
  static Result<LogReader> open_one_file(FileSystem& file_system, LogStream stream,
                                         uint32_t ordinal);

  /// Returns the next block of the chain, file headers and markers included, or null if the stream
  /// has ended (see end()). The block is fully verified and valid until the next call. Errors:
  /// those of the file system.
  Result<const LogBlock*> next();

  /// Return file and offset of the block that next() returned last. The chain is gapless and intact
  /// up to and including that block.
  const std::string& file() const { return path_; }
  uint64_t offset() const {
    CHECK(position_ != 0);
    return (position_ - 1) * kLogBlockBytes;
  }

  /// Returns the bytes of covered blocks that were skipped: whole files, and the blocks between the
  /// first header and a marker. The value is final after the second call of next(): the first call
  /// returns the header, and the second one skips.
  uint64_t skipped_bytes() const { return skipped_blocks_ * kLogBlockBytes; }

  /// Returns where and why the stream has ended. REQUIRES: next() returned null.
  const LogEnd& end() const {
    CHECK(end_.has_value());
    return *end_;
  }
  /// Reads the rest of the stream's files and counts its intact blocks. May be called once.
  /// REQUIRES: next() returned null.
  Result<LogRemainder> read_remainder();

  /// Returns the epoch of the last marker, or start epoch - 1 before the first marker. If LogStream
  /// lacks the start epoch, returns 0 before the first header.
  uint64_t closed_epoch() const { return closed_epoch_; }
  /// Returns the ordinals of the stream's files, as found by open().
  const std::vector<uint32_t>& ordinals() const { return ordinals_; }
  const LogStream& stream() const { return stream_; }

 private:
  LogReader(FileSystem& file_system, LogStream stream);

  static constexpr uint64_t kBlocksAtOnce =
      kHugePageBytes / kLogBlockBytes;  // number of blocks in the buffer

  Result<void> open_file(uint32_t ordinal);
  bool is_buffered(uint64_t position) const {
    const uint64_t offset = position * kLogBlockBytes;
    return offset >= buffer_offset_ && offset + kLogBlockBytes <= buffer_offset_ + buffer_bytes_;
  }
  /// Moves `position_` past a hole of the file.
  Result<void> skip_hole();
  /// Returns the block at `position_` of the current file, or null at the end of the file.
  Result<const LogBlock*> read_block();
  /// Returns the ordinal of the file to begin with. Without `may_skip_` this is the first existing
  /// file, else the last file before which all blocks are covered.
  Result<uint32_t> find_first_file() const;
  /// Skips from the block after the first file's header to the last marker of a covered epoch, if
  /// the search finds one.
  Result<void> skip_covered_blocks();
  /// Returns true for an intact block that belongs at `position`, has a covered epoch and is no
  /// file header.
  bool is_covered(const LogBlock& block, uint64_t position) const;
  /// Ends the stream at `position_`.
  const LogBlock* end_here(bool is_defect, std::string reason);
  /// Returns why the block is damaged or belongs to another stream, or null if it is good. Does not
  /// check its position.
  const char* defect_of(const LogBlock& block) const;
  /// Appends the block to the chain. Returns why it does not fit there, or null if it does.
  const char* chain(const LogBlock& block);
  const char* chain_header(const LogBlock& block);
  /// Checks the header of the first file that is read, if earlier files were deleted or skipped.
  /// Takes the epochs with which these files ended from the header. Returns a defect, or null.
  const char* chain_first_header(const LogBlock& block);

  FileSystem* file_system_;
  LogStream stream_;
  std::vector<uint32_t> ordinals_;
  IoBuffer buffer_{kBlocksAtOnce * kLogBlockBytes};
  uint64_t buffer_offset_ = 0;  // offset of the buffer in the file
  uint64_t buffer_bytes_ = 0;

  std::unique_ptr<File> file_;
  std::string path_;
  uint32_t ordinal_ = 0;
  uint32_t first_ordinal_ = 0;    // ordinal of the first file that is read
  uint64_t position_ = 0;         // number of the next block in the file
  uint64_t blocks_per_file_ = 0;  // 0: not known yet
  uint64_t next_sequence_ = 0;
  uint64_t last_epoch_ = 0;
  uint64_t closed_epoch_ = 0;
  bool may_skip_ = false;  // CoveredBlocks::skip was requested, and the skip is not done yet
  uint64_t skipped_blocks_ = 0;
  std::optional<LogEnd> end_;
};

}  // namespace atolldb
