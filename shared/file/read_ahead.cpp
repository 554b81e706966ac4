#include "shared/file/read_ahead.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

class FileReadAhead final : public ForwardingFile {
 public:
  FileReadAhead(std::unique_ptr<File> file, ReadAhead& ahead)
      : ForwardingFile(std::move(file)), ahead_(&ahead) {}
  ~FileReadAhead() override { ahead_->stop(below()); }

  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    return ahead_->read(below(), offset, into);
  }

 private:
  ReadAhead* ahead_;
};

}  // namespace

Result<uint64_t> ReadAhead::read(const File& file, uint64_t offset, std::span<std::byte> into) {
  if (file_ != &file || offset != position_) {
    stop();
    if (into.size() >= kChunkBytes && offset % kIoBlockBytes == 0) start(file, offset);
    if (file_ == nullptr) return file.read(offset, into);
  }
  uint64_t done = 0;
  while (done < into.size() && chunks_[first_].is_submitted) {
    await(first_);
    const Chunk& chunk = chunks_[first_];
    if (!chunk.bytes) {
      Error error = chunk.bytes.error();
      stop();
      return std::unexpected(std::move(error));
    }
    DCHECK(used_ <= *chunk.bytes && *chunk.bytes <= kChunkBytes);
    const uint64_t count = std::min(*chunk.bytes - used_, into.size() - done);
    std::memcpy(into.data() + done, bytes_of(first_).data() + used_, count);
    done += count;
    used_ += count;
    if (used_ < kChunkBytes) break;  // `into` is full, or the file ends in this chunk
    submit(first_);
    reader_->start();
    first_ = (first_ + 1) % kChunks;
    used_ = 0;
  }
  position_ += done;
  return done;
}

void ReadAhead::start(const File& file, uint64_t offset) {
  CHECK(file_ == nullptr && reader_->pending() == 0 && offset % kIoBlockBytes == 0);
  const Result<uint64_t> size = file.size();
  if (!size || offset >= *size) return;  // the caller's read tells the reason
  file_ = &file;
  end_ = *size;
  position_ = next_ = offset;
  first_ = 0;
  used_ = 0;
  for (uint32_t chunk = 0; chunk < kChunks; ++chunk) submit(chunk);
  reader_->start();
}

void ReadAhead::submit(uint32_t chunk) {
  chunks_[chunk] = {};
  if (next_ >= end_) return;
  const bool has_room = reader_->submit(*file_, next_, bytes_of(chunk), chunk);
  CHECK(has_room);  // each chunk has at most one read
  chunks_[chunk].is_submitted = true;
  next_ += kChunkBytes;
}

void ReadAhead::await(uint32_t chunk) {
  DCHECK(chunk < kChunks && chunks_[chunk].is_submitted);
  while (!chunks_[chunk].has_ended) {
    BatchReader::Done done = reader_->wait();
    CHECK(done.tag < kChunks && !chunks_[done.tag].has_ended);
    chunks_[done.tag].bytes = std::move(done.bytes);
    chunks_[done.tag].has_ended = true;
  }
}

void ReadAhead::await_all() {
  for (uint32_t chunk = 0; chunk < kChunks; ++chunk) {
    if (chunks_[chunk].is_submitted) await(chunk);
  }
  DCHECK(reader_->pending() == 0);
}

void ReadAhead::stop() {
  while (reader_->pending() != 0) static_cast<void>(reader_->wait());
  chunks_.fill({});
  file_ = nullptr;
}

Result<std::unique_ptr<File>> ReadAheadFileSystem::open_for_reading(const std::string& path) {
  ATOLL_ASSIGN(auto file, below().open_for_reading(path));
  return std::make_unique<FileReadAhead>(std::move(file), *ahead_);
}

}  // namespace atolldb
