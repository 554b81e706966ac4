#include "engine/gleaner/sorted_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "engine/format/crc32c.h"
#include "engine/log/log_files.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

constexpr size_t kCrcFrom = offsetof(RunChunkHeader, snapshot);

uint32_t crc_of(std::span<const std::byte> chunk, uint32_t record_bytes) {
  return crc32c(chunk.subspan(kCrcFrom, sizeof(RunChunkHeader) - kCrcFrom + record_bytes));
}

static_assert(SortedRunWriter::kMinChunkBytes > sizeof(RunChunkHeader) + kMaxGleanedBytes);

/// Returns the maximum number of chunks for `record_bytes` of records. Records do not cross chunks.
uint64_t max_chunks(uint64_t record_bytes, uint64_t chunk_bytes) {
  const uint64_t least = chunk_bytes - sizeof(RunChunkHeader) - kMaxGleanedBytes;
  return (record_bytes + least - 1) / least;
}

const char* defect_of(std::span<const std::byte> chunk, const SortedRun& run, uint32_t number) {
  const auto& header = *reinterpret_cast<const RunChunkHeader*>(chunk.data());
  if (header.magic != kRunChunkMagic) return "no chunk of a sorted run begins here";
  if (header.bytes > chunk.size() - sizeof header) return "the chunk's length is beyond its end";
  if (header.crc != crc_of(chunk, header.bytes)) return "the chunk's checksum is wrong";
  if (header.snapshot != run.name.snapshot || header.run != run.name.number ||
      header.chunk != number) {
    return "the chunk belongs to another run or another place";
  }
  return nullptr;
}

}  // namespace

std::string to_string(const SortedRunName& name) {
  return fmt::format("run_{}_{}_{}.tmp", name.snapshot, name.reducer, name.number);
}

std::optional<SortedRunName> parse_sorted_run_name(std::string_view name) {
  constexpr std::string_view kPrefix = "run_";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* at = name.data() + kPrefix.size();
  const char* end = name.data() + name.size();
  SortedRunName parsed;
  for (uint32_t* number : {&parsed.snapshot, &parsed.reducer, &parsed.number}) {
    const auto [next, problem] = std::from_chars(at, end, *number);
    if (problem != std::errc{} || next == end) return std::nullopt;
    at = next + 1;
  }
  // from_chars accepts any separators and ending. This comparison rejects all but the right ones.
  if (to_string(parsed) != name) return std::nullopt;
  return parsed;
}

Result<std::vector<std::string>> list_sorted_runs(FileSystem& file_system,
                                                  const std::string& directory, uint32_t node) {
  const std::string folder = node_directory(directory, node);
  ATOLL_ASSIGN(auto exists, file_system.exists(folder));
  if (!exists) return std::vector<std::string>();
  auto names = file_system.list(folder);
  if (names) std::erase_if(*names, [](const auto& name) { return !parse_sorted_run_name(name); });
  return names;
}

Result<void> remove_sorted_runs(FileSystem& file_system, const std::string& directory,
                                uint32_t node) {
  ATOLL_ASSIGN(auto names, list_sorted_runs(file_system, directory, node));
  for (const std::string& name : names) {
    ATOLL_TRY(file_system.remove(path_in(node_directory(directory, node), name)));
  }
  return {};
}

Result<SortedRunWriter> SortedRunWriter::create(FileSystem& file_system, std::string path,
                                                SortedRunName name, uint64_t record_bytes,
                                                uint64_t chunk_bytes, std::span<std::byte> buffer) {
  CHECK(chunk_bytes >= kMinChunkBytes && chunk_bytes % kIoBlockBytes == 0);
  CHECK(buffer.size() >= chunk_bytes && buffer.size() % chunk_bytes == 0);
  const uint64_t size = std::max<uint64_t>(1, max_chunks(record_bytes, chunk_bytes)) * chunk_bytes;
  ATOLL_ASSIGN(auto file, file_system.create(path, size));
  return SortedRunWriter(std::move(file), size, {std::move(path), name, chunk_bytes, 0, 0, 0},
                         buffer);
}

void SortedRunWriter::begin_chunk() {
  CHECK(cursor_ == nullptr && used_ + run_.chunk_bytes <= buffer_.size());
  std::byte* chunk = buffer_.data() + used_;
  cursor_ = chunk + sizeof(RunChunkHeader);
  end_ = chunk + run_.chunk_bytes;
}

void SortedRunWriter::end_chunk() {
  CHECK(cursor_ != nullptr && cursor_ <= end_);
  const std::span<std::byte> chunk = buffer_.subspan(used_, run_.chunk_bytes);
  auto& header = *reinterpret_cast<RunChunkHeader*>(chunk.data());
  const auto bytes = static_cast<uint32_t>(cursor_ - (chunk.data() + sizeof(RunChunkHeader)));
  header = {kRunChunkMagic, 0, run_.name.snapshot, run_.name.number, run_.chunks, bytes, 0};
  header.crc = crc_of(chunk, bytes);
  ++run_.chunks;
  used_ += run_.chunk_bytes;
  cursor_ = end_ = nullptr;
}

Result<void> SortedRunWriter::write() {
  CHECK(cursor_ == nullptr && used_ % run_.chunk_bytes == 0);
  if (used_ == 0) return {};
  if (written_ + used_ > size_) {
    const uint64_t size = kGrowth.next_size(size_, used_);
    ATOLL_TRY(file_->grow(size));
    size_ = size;
  }
  const std::span<const std::byte> slice = buffer_.first(used_);
  auto result = file_->write(written_, std::array{slice});
  written_ += used_;
  used_ = 0;
  return result;
}

/// Begins a chunk, which has room for a record of `record_bytes`.
Result<void> SortedRunWriter::next_chunk(uint32_t record_bytes) {
  if (cursor_ != nullptr) end_chunk();
  if (used_ == buffer_.size()) {
    ATOLL_TRY(write());
  }
  begin_chunk();
  CHECK(record_bytes <= static_cast<size_t>(end_ - cursor_));
  return {};
}

Result<SortedRun> SortedRunWriter::finish() {
  if (cursor_ != nullptr) end_chunk();
  ATOLL_TRY(write());
  CHECK(written_ == run_.chunks * run_.chunk_bytes);
  CHECK(run_.bytes >= run_.records * sizeof(LogRecord) && run_.bytes <= written_);
  return std::move(run_);
}

Result<std::unique_ptr<SortedRunReader>> SortedRunReader::open(FileSystem& file_system,
                                                               const SortedRun& run,
                                                               uint32_t chunks_at_once,
                                                               const char* advice) {
  CHECK(chunks_at_once > 0 && run.chunk_bytes >= SortedRunWriter::kMinChunkBytes);
  ATOLL_ASSIGN(auto file, file_system.open_for_reading(run.path));
  return std::unique_ptr<SortedRunReader>(
      new SortedRunReader(std::move(file), run, chunks_at_once, advice));
}

Result<std::span<const std::byte>> SortedRunReader::next() {
  DCHECK(chunk_ <= run_.chunks);
  if (chunk_ == run_.chunks) return std::span<const std::byte>();
  const uint64_t bytes_at_once = at_once_ * run_.chunk_bytes;
  const std::span<std::byte> buffer =
      buffers_.bytes().subspan(chunk_ / at_once_ % 2 * bytes_at_once, bytes_at_once);
  const uint64_t offset = uint64_t{chunk_} * run_.chunk_bytes;
  const uint64_t at = chunk_ % at_once_ * run_.chunk_bytes;
  if (at == 0) {
    const uint64_t chunks = std::min(at_once_, run_.chunks - chunk_);
    ATOLL_ASSIGN(auto count, file_->read(offset, buffer.first(chunks * run_.chunk_bytes)));
    CHECK(count <= chunks * run_.chunk_bytes);
    bytes_ = count;
  }
  const std::span<std::byte> chunk = buffer.subspan(at, run_.chunk_bytes);
  const char* defect =
      bytes_ < at + chunk.size() ? "the file ends in this chunk" : defect_of(chunk, run_, chunk_);
  if (defect != nullptr) {
    return make_error(ExitCode::corruption,
                      fmt::format("{}: offset {}: {}: {}", file_->path(), offset, defect, advice_));
  }
  ++chunk_;
  const auto& header = *reinterpret_cast<const RunChunkHeader*>(chunk.data());
  return chunk.subspan(sizeof header, header.bytes);
}

}  // namespace atolldb
