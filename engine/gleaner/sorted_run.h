// Sorted runs: files to which a reducer spills records while its mappers continue. The files are
// temporary, used only by the reducer that wrote them, and never synced. Source: [FOEDUS15] section
// 7.3.
//
//  <directory>/node<k>/run_<snapshot>_<reducer>_<number>.tmp
//
// A file consists of chunks of equal size. A chunk is a header and whole records in sort order.
// Replays use the same files for records in any order (engine/checkpoint/given_records.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/gleaner/gleaned_record.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"
#include "shared/base/error.h"
#include "shared/base/try.h"
#include "shared/file/file.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

inline constexpr uint32_t kRunChunkMagic = 0x4e555241;  // "ARUN"

struct RunChunkHeader {
  uint32_t magic;
  uint32_t crc;  // CRC32C of bytes [8, header + bytes)
  uint32_t snapshot;
  uint32_t run;    // number of the sorted run
  uint32_t chunk;  // number of the chunk in the run
  uint32_t bytes;  // bytes of records
  uint64_t spare;
};
static_assert(sizeof(RunChunkHeader) == 32);

struct SortedRunName {
  uint32_t snapshot = 0;
  uint32_t reducer = 0;  // within the node
  uint32_t number = 0;

  bool operator==(const SortedRunName&) const = default;
};

/// Returns the file name of a sorted run, for example "run_12_0_3.tmp".
std::string to_string(const SortedRunName& name);
/// Returns the parts of such a file name, or nothing for any other text.
std::optional<SortedRunName> parse_sorted_run_name(std::string_view name);

/// Returns the names of all sorted runs in <directory>/node<k>; none if the directory is missing.
/// While no snapshot job and no replay is under way, they are leftovers of a crash.
Result<std::vector<std::string>> list_sorted_runs(FileSystem& file_system,
                                                  const std::string& directory, uint32_t node);
/// Removes all sorted runs in <directory>/node<k>.
/// REQUIRES: no snapshot job is under way in this directory, and no replay needs them.
Result<void> remove_sorted_runs(FileSystem& file_system, const std::string& directory,
                                uint32_t node);

/// A completely written sorted run.
struct SortedRun {
  std::string path;
  SortedRunName name;
  uint64_t chunk_bytes = 0;
  uint32_t chunks = 0;
  uint64_t records = 0;
  uint64_t bytes = 0;  // bytes of records
};

class SortedRunWriter {
 public:
  /// Smallest size of a chunk. Such a chunk has room for any record, and wastes little space at its
  /// end.
  static constexpr uint64_t kMinChunkBytes = 4 * kIoBlockBytes;

  /// A replay has many files that stay small, and a few large ones (given_records.h).
  static constexpr FileGrowth kGrowth = {.least = uint64_t{64} << 10, .most = uint64_t{1} << 20};

  /// Creates the file with room for `record_bytes` of records; it grows if there are more.
  /// `chunk_bytes`: a multiple of kIoBlockBytes, at least kMinChunkBytes. `buffer` collects chunks
  /// and is written whenever it is full. Its size is a multiple of `chunk_bytes`, and it must stay
  /// valid until `finish` returns.
  static Result<SortedRunWriter> create(FileSystem& file_system, std::string path,
                                        SortedRunName name, uint64_t record_bytes,
                                        uint64_t chunk_bytes, std::span<std::byte> buffer);

  Result<void> add(const LogRecord& record) {
    DCHECK(record.length % 8 == 0 && record.length <= kMaxGleanedBytes);
    if (record.length > static_cast<size_t>(end_ - cursor_)) [[unlikely]] {
      ATOLL_TRY(next_chunk(record.length));
    }
    copy_bytes(cursor_, &record, record.length);
    cursor_ += record.length;
    ++run_.records;
    run_.bytes += record.length;
    return {};
  }
  /// Returns whether `add` only copies a record of so many bytes, and writes nothing.
  bool has_room(uint32_t record_bytes) const {
    if (record_bytes <= static_cast<size_t>(end_ - cursor_)) return true;
    return used_ + (cursor_ == nullptr ? 0 : run_.chunk_bytes) < buffer_.size();
  }
  Result<SortedRun> finish();

 private:
  SortedRunWriter(std::unique_ptr<File> file, uint64_t size, SortedRun run,
                  std::span<std::byte> buffer)
      : file_(std::move(file)), size_(size), run_(std::move(run)), buffer_(buffer) {}
  Result<void> next_chunk(uint32_t record_bytes);
  void begin_chunk();
  void end_chunk();
  Result<void> write();

  std::unique_ptr<File> file_;
  uint64_t size_;  // of the file
  SortedRun run_;
  std::span<std::byte> buffer_;
  uint64_t written_ = 0;         // bytes of the file that were written
  uint64_t used_ = 0;            // bytes of the buffer in complete chunks
  std::byte* cursor_ = nullptr;  // position in the open chunk; null: none is open
  std::byte* end_ = nullptr;
};

/// Reads a sorted run, chunk by chunk.
class SortedRunReader {
 public:
  /// Opens a run. The reader reads the file in pieces of `chunks_at_once` (at least 1) chunks, and
  /// keeps the last two pieces in memory. `advice`: the end of the message for a damaged chunk. It
  /// outlives the reader.
  static Result<std::unique_ptr<SortedRunReader>> open(
      FileSystem& file_system, const SortedRun& run, uint32_t chunks_at_once,
      const char* advice = "the logs still hold all records: take the snapshot again");

  /// Returns the records of the next chunk, or an empty span at the end. They are valid until the
  /// second call after this one. So a caller that moves to the next chunk may still use the last
  /// record of the chunk before.
  /// Error: code corruption, with file and offset.
  Result<std::span<const std::byte>> next();

 private:
  SortedRunReader(std::unique_ptr<File> file, SortedRun run, uint32_t chunks_at_once,
                  const char* advice)
      : file_(std::move(file)),
        run_(std::move(run)),
        advice_(advice),
        at_once_(chunks_at_once),
        buffers_(2 * at_once_ * run_.chunk_bytes) {}

  std::unique_ptr<File> file_;
  SortedRun run_;
  const char* advice_;
  uint32_t at_once_;
  IoBuffer buffers_;    // two halves, used alternately
  uint64_t bytes_ = 0;  // bytes in the buffer that was read last
  uint32_t chunk_ = 0;  // number of the next chunk
};

}  // namespace atolldb
