#include "engine/checkpoint/given_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/format/message_bytes.h"
#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"
#include "shared/base/try.h"

namespace atolldb {

template <typename Archive>
void fields(Archive& archive, Described<Archive, GivenFile>& file) {
  auto& run = file.run;
  archive(file.to, run.path, run.name.snapshot, run.name.reducer, run.name.number, run.chunk_bytes,
          run.chunks, run.records, run.bytes);
}

namespace {

constexpr uint32_t kGivenMagic = 0x31465247;  // "GRF1"
constexpr const char* kGiven = "files of given records";
constexpr const char* kAdvice = "start the cluster again";
constexpr uint32_t kChunksAtOnce = 32;

bool is_possible(const GivenFile& file) {
  return file.run.chunk_bytes == GivenRecords::kChunkBytes && file.run.chunks != 0;
}

}  // namespace

void GivenRecord::set(LogType type, uint32_t storage_id, Bytes key, uint64_t version,
                      Bytes payload) {
  LogRecord& made = record();
  made = {};
  made.type = type;
  made.storage_id = storage_id;
  made.key_bytes = static_cast<uint16_t>(key.size());
  made.payload_bytes = static_cast<uint16_t>(payload.size());
  made.length = LogRecord::bytes(made.key_bytes, made.payload_bytes);
  made.vid = version;
  CHECK(made.length <= bytes_.size());
  std::memset(bytes_.data() + sizeof made, 0, made.length - sizeof made);
  copy_bytes(made.key(), key.data(), key.size());
  copy_bytes(made.payload(), payload.data(), payload.size());
}

Result<std::unique_ptr<GivenRecords::Output>> GivenRecords::create(GivenPlace& place, uint32_t to) {
  CHECK(place.file_system != nullptr && !place.directories.empty());
  FileSystem& files = *place.file_system;
  const uint32_t number = place.next_number.fetch_add(1, std::memory_order_relaxed);
  const SortedRunName name = {place.checkpoint, number, to};
  const std::string& directory = place.directories[number % place.directories.size()];
  const std::string folder = node_directory(directory, place.node);
  std::string path = path_in(folder, to_string(name));
  ATOLL_TRY(files.make_directory(folder));
  IoBuffer buffer(kBufferBytes);
  ATOLL_ASSIGN(auto writer, SortedRunWriter::create(files, std::move(path), name, 0, kChunkBytes,
                                                    buffer.bytes()));
  return std::make_unique<Output>(std::move(buffer), std::move(writer));
}

Result<void> GivenRecords::give(GivenPlace& place, uint32_t to, const LogRecord& record) {
  DCHECK(to != place.node && record.type != LogType::filler);
  std::unique_ptr<Output>& output = outputs_[to];
  if (output == nullptr) {
    ATOLL_ASSIGN(output, create(place, to));
  }
  // A commit may have left more bytes after the payload.
  alignas(LogRecord) std::array<std::byte, kMaxGleanedBytes> copy;
  const uint32_t bytes = LogRecord::bytes(record.key_bytes, record.payload_bytes);
  CHECK(bytes <= copy.size());
  DCHECK(bytes <= record.length && bytes % 8 == 0);
  std::memcpy(copy.data(), &record, bytes);
  auto& given = *reinterpret_cast<LogRecord*>(copy.data());
  given.length = bytes;
  return output->writer.add(given);
}

bool GivenRecords::writes_for(uint32_t to, const LogRecord& record) const {
  const auto found = outputs_.find(to);
  if (found == outputs_.end() || found->second == nullptr) return true;
  return !found->second->writer.has_room(LogRecord::bytes(record.key_bytes, record.payload_bytes));
}

Result<std::vector<GivenFile>> GivenRecords::finish() {
  std::vector<GivenFile> files;
  for (auto& [to, output] : outputs_) {
    CHECK(output != nullptr);
    ATOLL_ASSIGN(SortedRun run, output->writer.finish());
    files.push_back({to, std::move(run)});
  }
  outputs_.clear();
  return files;
}

Result<void> read_given_file(FileSystem& file_system, const GivenFile& file,
                             const std::function<Result<void>(const LogRecord&)>& visit) {
  ATOLL_ASSIGN(auto reader, SortedRunReader::open(file_system, file.run, kChunksAtOnce, kAdvice));
  uint64_t records = 0;
  CHECK(visit != nullptr);
  for (;;) {
    ATOLL_ASSIGN(std::span<const std::byte> chunk, reader->next());
    if (chunk.empty()) break;
    while (!chunk.empty()) {
      const auto& record = *reinterpret_cast<const LogRecord*>(chunk.data());
      CHECK(record.length >= sizeof record && record.length <= chunk.size());
      ATOLL_TRY(visit(record));
      chunk = chunk.subspan(record.length);
      ++records;
    }
  }
  if (records == file.run.records) return {};
  return make_error(ExitCode::corruption,
                    fmt::format("{}: the file has {} records, {} were written: {}", file.run.path,
                                records, file.run.records, kAdvice));
}

std::vector<std::byte> encode_given_files(const std::vector<GivenFile>& files) {
  return encode_message(kGivenMagic, files);
}

Result<std::vector<GivenFile>> decode_given_files(std::span<const std::byte> bytes) {
  ATOLL_ASSIGN(auto files, decode_message<std::vector<GivenFile>>(kGivenMagic, kGiven, bytes));
  if (std::ranges::all_of(files, is_possible)) return files;
  return make_error(ExitCode::failed,
                    std::string(kGiven) + ": a file has impossible lengths: internal error");
}

}  // namespace atolldb
