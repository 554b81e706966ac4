// Reads files from the begin to the end while their reader works on what it has.
//
// A reader that alternates between the device and its work uses neither fully. Here some reads of
// the bytes that follow are always in progress, while the reader works on the bytes before them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "shared/file/batch_reader.h"
#include "shared/file/forwarding_file_system.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

/// The reads in progress of one file at a time. Thread: one, for all functions.
class ReadAhead {
 public:
  static constexpr uint32_t kChunks = 4;
  static constexpr uint64_t kChunkBytes = uint64_t{512} << 10;

  explicit ReadAhead(BatchReader::Method method = BatchReader::Method::automatic)
      : reader_(BatchReader::create(kChunks, method)) {}
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead() { stop(); }

  /// Does the same as `file.read(offset, into)`. Reads ahead if `into` has at least kChunkBytes,
  /// and if the next call begins where this one ends. The end of the file is that of the first
  /// call. REQUIRES: `stop` is called before `file` is destroyed.
  Result<uint64_t> read(const File& file, uint64_t offset, std::span<std::byte> into);

  /// Waits until no read is in progress, and keeps what was read. A thread calls it before it waits
  /// for anything else: a read counts as in progress until this thread has fetched its result, and
  /// an old one looks like a device that hangs (R58).
  void await_all();
  /// Returns the number of reads in progress.
  uint32_t pending() const { return reader_->pending(); }

  /// Waits for the reads of `file` in progress, and discards what they have read.
  void stop(const File& file) {
    if (file_ == &file) stop();
  }

 private:
  struct Chunk {
    bool is_submitted = false;
    bool has_ended = false;
    Result<uint64_t> bytes = uint64_t{0};  // once the read has ended
  };

  void start(const File& file, uint64_t offset);
  void stop();
  /// Begins to read the next bytes into the chunk, unless the file ends before them.
  void submit(uint32_t chunk);
  void await(uint32_t chunk);
  std::span<std::byte> bytes_of(uint32_t chunk) {
    return buffer_.bytes().subspan(chunk * kChunkBytes, kChunkBytes);
  }

  std::unique_ptr<BatchReader> reader_;
  IoBuffer buffer_{kChunks * kChunkBytes};
  std::array<Chunk, kChunks> chunks_;
  const File* file_ = nullptr;  // null: nothing is read ahead
  uint64_t end_ = 0;            // of the file
  uint64_t position_ = 0;       // of the next byte that `read` returns
  uint64_t next_ = 0;           // of the next byte to submit
  uint32_t first_ = 0;          // the chunk with `position_`
  uint64_t used_ = 0;           // bytes of this chunk before `position_`
};

/// Opens files whose reads use a ReadAhead. Thread: that of the ReadAhead, for its files.
class ReadAheadFileSystem final : public ForwardingFileSystem {
 public:
  /// REQUIRES: `below` and `ahead` outlive this object and its files.
  ReadAheadFileSystem(FileSystem& below, ReadAhead& ahead)
      : ForwardingFileSystem(below), ahead_(&ahead) {}

  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override;

 private:
  ReadAhead* ahead_;
};

}  // namespace atolldb
