// Records that a process of a replay has read and another process keeps until the end of the files
// (R100): updates of parts of records, appends to heaps, and blocked records.
//
// They travel in temporary files in the format of sorted runs (engine/gleaner/sorted_run.h), but in
// the order in which they were read. A thread writes one file for each process to which it gives
// records. The files are never synced: after a crash the replay begins again. A start-up removes
// those of an earlier one, as it does with sorted runs (R54).
//
//  <directory>/node<k>/run_<checkpoint>_<number of the file>_<receiver>.tmp
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/format/log_record.h"
#include "engine/format/tree_key.h"
#include "engine/gleaner/gleaned_record.h"
#include "engine/gleaner/sorted_run.h"
#include "shared/base/error.h"
#include "shared/file/file.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

/// A record of the log that a process makes, to give it to another one.
class GivenRecord {
 public:
  /// Makes a record with payload offset 0. REQUIRES: the key and the payload fit into
  /// kMaxGleanedBytes.
  void set(LogType type, uint32_t storage_id, Bytes key, uint64_t version, Bytes payload);
  LogRecord& record() { return *reinterpret_cast<LogRecord*>(bytes_.data()); }

 private:
  alignas(LogRecord) std::array<std::byte, kMaxGleanedBytes> bytes_;
};

/// A complete file, with records for one process.
struct GivenFile {
  uint32_t to = 0;  // number of the process
  SortedRun run;
};

/// Where the threads of one process write their files.
struct GivenPlace {
  FileSystem* file_system = nullptr;
  std::vector<std::string> directories;  // the files are spread over them
  uint32_t node = 0;
  uint32_t checkpoint = 0;               // of the replay
  std::atomic<uint32_t> next_number{0};  // of a file; relaxed: each number is taken once
};

/// The files of one thread. Thread: one at a time.
class GivenRecords {
 public:
  static constexpr uint64_t kChunkBytes = SortedRunWriter::kMinChunkBytes;
  /// Memory for each process to which the thread gives records.
  static constexpr uint64_t kBufferBytes = 4 * kChunkBytes;

  /// Adds a copy of the record. `place`: the same for all calls; it outlives the object. Errors:
  /// those of the file system. REQUIRES: the key and the payload fit into kMaxGleanedBytes.
  Result<void> give(GivenPlace& place, uint32_t to, const LogRecord& record);
  /// Returns whether `give` writes to a file now. Else it only copies the record.
  bool writes_for(uint32_t to, const LogRecord& record) const;
  /// Writes what is left. Returns the files; the object is empty then.
  Result<std::vector<GivenFile>> finish();

 private:
  struct Output {
    IoBuffer buffer{kBufferBytes};
    SortedRunWriter writer;
  };

  Result<std::unique_ptr<Output>> create(GivenPlace& place, uint32_t to);

  std::map<uint32_t, std::unique_ptr<Output>> outputs_;  // by receiver
};

/// Calls `visit` with each record of the file. Errors: those of the file system and of `visit`;
/// code corruption for a damaged file.
Result<void> read_given_file(FileSystem& file_system, const GivenFile& file,
                             const std::function<Result<void>(const LogRecord&)>& visit);

/// Encode the files for messages between processes, and decode them. Error: code failed if the
/// bytes differ from what the encode function writes, or if a file has impossible lengths.
std::vector<std::byte> encode_given_files(const std::vector<GivenFile>& files);
Result<std::vector<GivenFile>> decode_given_files(std::span<const std::byte> bytes);

}  // namespace atolldb
