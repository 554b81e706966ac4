// Sorted runs: what a reducer dumps while its mappers go on (foedus.txt section 7.3). Temporary
// files, of use to the reducer that wrote them alone; never synced.
//
//   <directory>/node<k>/run_<snapshot>_<reducer>_<number>.tmp
//
// Chunks of one size, each a header and whole records in sort order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/gleaner/gleaned_record.h"
#include "shared/error.h"
#include "shared/file/file.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

inline constexpr uint32_t kRunChunkMagic = 0x4e555241;  // "ARUN"

struct RunChunkHeader {
  uint32_t magic;
  uint32_t crc;  // CRC32C of bytes [8, header + bytes)
  uint32_t snapshot;
  uint32_t run;    // number of the run
  uint32_t chunk;  // number of the chunk in it
  uint32_t bytes;  // of records
  uint64_t spare;
};
static_assert(sizeof(RunChunkHeader) == 32);

struct SortedRunName {
  uint32_t snapshot = 0;
  uint32_t reducer = 0;  // within the node
  uint32_t number = 0;

  bool operator==(const SortedRunName&) const = default;
};

/// "run_12_0_3.tmp", and back.
std::string to_string(const SortedRunName& name);
std::optional<SortedRunName> parse_sorted_run_name(std::string_view name);

/// Names of all sorted runs in the node's directory (<directory>/node<k>); none if it is missing.
/// Between runs of the gleaner they are leftovers of a crash.
Result<std::vector<std::string>> list_sorted_runs(FileSystem& file_system,
                                                  const std::string& directory, uint32_t node);
/// Removes them. REQUIRES: no run of the gleaner is under way in this directory.
Result<void> remove_sorted_runs(FileSystem& file_system, const std::string& directory,
                                uint32_t node);

/// A run that is written.
struct SortedRun {
  std::string path;
  SortedRunName name;
  uint64_t chunk_bytes = 0;
  uint32_t chunks = 0;
  uint64_t records = 0;
  uint64_t bytes = 0;  // of records
};

class SortedRunWriter {
 public:
  /// Smallest chunk: so that a record fits, and not much is lost at its end.
  static constexpr uint64_t kMinChunkBytes = 4 * kIoBlockBytes;

  /// Makes the file with room for `record_bytes` of records. `buffer`: whole chunks, what one write
  /// takes; used until `finish`. `chunk_bytes`: a multiple of kIoBlockBytes, from kMinChunkBytes.
  static Result<SortedRunWriter> create(FileSystem& file_system, std::string path,
                                        SortedRunName name, uint64_t record_bytes,
                                        uint64_t chunk_bytes, std::span<std::byte> buffer);

  Result<void> add(const LogRecord& record);
  Result<SortedRun> finish();

 private:
  SortedRunWriter(std::unique_ptr<File> file, SortedRun run, std::span<std::byte> buffer)
      : file_(std::move(file)), run_(std::move(run)), buffer_(buffer) {}
  void begin_chunk();
  void end_chunk();
  Result<void> write();

  std::unique_ptr<File> file_;
  SortedRun run_;
  std::span<std::byte> buffer_;
  uint64_t written_ = 0;         // bytes of the file
  uint64_t used_ = 0;            // bytes of the buffer in complete chunks
  std::byte* cursor_ = nullptr;  // in the chunk under way; null: none
  std::byte* end_ = nullptr;
};

/// Reads a run, a chunk at a time.
class SortedRunReader {
 public:
  /// Reads `chunks_at_once` with one call, from 1, into one of two such buffers.
  static Result<std::unique_ptr<SortedRunReader>> open(FileSystem& file_system,
                                                       const SortedRun& run,
                                                       uint32_t chunks_at_once);

  /// The records of the next chunk; empty: there is none. Valid until the next call but one: who
  /// steps over a chunk's end may go on using the record before. Damage: code corruption, with file
  /// and offset.
  Result<std::span<const std::byte>> next();

 private:
  SortedRunReader(std::unique_ptr<File> file, SortedRun run, uint32_t chunks_at_once)
      : file_(std::move(file)),
        run_(std::move(run)),
        at_once_(chunks_at_once),
        buffers_(2 * at_once_ * run_.chunk_bytes) {}

  std::unique_ptr<File> file_;
  SortedRun run_;
  uint32_t at_once_;
  IoBuffer buffers_;    // two halves, read into by turns
  uint64_t bytes_ = 0;  // in the buffer read last
  uint32_t chunk_ = 0;  // the next one
};

}  // namespace atolldb
