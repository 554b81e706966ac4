#include "ops/export/import_source.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <utility>

#include "engine/format/crc32c.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kImportVersion = 2;

std::unexpected<Error> bad_file(const std::string& path, const std::string& reason) {
  return make_error(ExitCode::failed, fmt::format("{}: {}", path, reason));
}

Result<void> open_stream(const std::string& path, std::ifstream& stream) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(path, error);
  stream = std::ifstream(path, std::ios::binary);
  if (is_file && stream.is_open()) return {};
  return bad_file(path, "cannot be read: choose a file");
}

/// Returns the identity of the file. Changes the position of `stream`, which has the file open.
Result<FileIdentity> identify(const std::string& path, std::ifstream& stream) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) {
    return bad_file(path, fmt::format("cannot be examined: {}", std::strerror(errno)));
  }
  constexpr int64_t kSecondNs = 1'000'000'000;
  FileIdentity identity{.bytes = static_cast<uint64_t>(info.st_size),
                        .changed_ns = info.st_mtim.tv_sec * kSecondNs + info.st_mtim.tv_nsec};
  const auto take = static_cast<std::streamsize>(std::min(identity.bytes, kImportEndBytes));
  std::vector<char> block(static_cast<size_t>(take));
  stream.clear();
  for (const auto at : {std::streamoff{0}, static_cast<std::streamoff>(identity.bytes) - take}) {
    if (!stream.seekg(at) || !stream.read(block.data(), take)) {
      return bad_file(path, "cannot be read: check the device");
    }
    identity.ends_crc32c = crc32c(std::as_bytes(std::span(block)), identity.ends_crc32c);
  }
  return identity;
}

}  // namespace

Result<std::unique_ptr<ImportSource>> ImportSource::open(const TableSchema& table,
                                                         const std::vector<std::string>& paths) {
  if (paths.empty() || paths.size() > kMaxImportFiles) {
    return make_error(ExitCode::usage, fmt::format("import: expected 1 to {} files, got {}",
                                                   kMaxImportFiles, paths.size()));
  }
  auto source = std::unique_ptr<ImportSource>(new ImportSource(table));
  for (const std::string& path : paths) {
    std::ifstream stream;
    ATOLL_TRY(open_stream(path, stream));
    CsvReader reader(stream, path);
    CsvRow header;
    ATOLL_ASSIGN(const bool has_header, reader.next(header));
    if (!has_header) return bad_file(path, "is empty: its first line must name the columns");
    auto order = order_of_fields(table, header.fields);
    if (!order) return bad_file(path + ":1", order.error());
    ATOLL_ASSIGN(const FileIdentity identity, identify(path, stream));
    source->files_.push_back({path, identity, *std::move(order)});
  }
  const std::lock_guard lock(source->mutex_);
  ATOLL_TRY(source->open_next());
  return source;
}

Result<void> ImportSource::open_next() {
  CHECK(at_ < files_.size());
  ATOLL_TRY(open_stream(files_[at_].path, stream_));
  reader_.emplace(stream_, files_[at_].path);
  CsvRow header;
  ATOLL_ASSIGN(const bool has_header, reader_->next(header));
  if (!has_header) return bad_file(files_[at_].path, "has become empty");
  read_ = header.end;
  return {};
}

uint64_t ImportSource::bytes() const {
  uint64_t sum = 0;
  for (const ImportFile& file : files_) sum += file.identity.bytes;
  return sum;
}

uint64_t ImportSource::bytes_read() {
  const std::lock_guard lock(mutex_);
  return before_ + read_;
}

uint64_t ImportSource::rows_left_out() {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

bool ImportSource::is_committed(const CsvRow& row) const {
  const auto of_file = committed_.find(at_);
  if (of_file == committed_.end()) return false;
  auto after = of_file->second.upper_bound(row.offset);
  return after != of_file->second.begin() && row.offset < std::prev(after)->second;
}

Result<ImportBatch> ImportSource::next() {
  const std::lock_guard lock(mutex_);
  ImportBatch batch;
  while (at_ < files_.size() && batch.rows.size() < kMaxBatchRows) {
    CsvRow row;
    ATOLL_ASSIGN(const bool has_row, reader_->next(row));
    if (!has_row) {
      if (!batch.rows.empty()) break;
      before_ += files_[at_].identity.bytes;
      read_ = 0;
      if (++at_ == files_.size()) break;
      ATOLL_TRY(open_next());
      continue;
    }
    read_ = row.end;
    if (is_committed(row)) {
      ++left_out_;
      if (!batch.rows.empty()) break;  // ends the batch, because a batch has no gaps
      continue;
    }
    batch.file = at_;
    batch.rows.push_back(std::move(row));
  }
  return batch;
}

Result<void> ImportSource::remember_in(const std::string& path, const std::string& target,
                                       uint32_t schema_crc32c) {
  Json files = Json::array();
  for (const ImportFile& file : files_) {
    files.push_back({{"path", file.path},
                     {"bytes", file.identity.bytes},
                     {"changed_ns", file.identity.changed_ns},
                     {"ends_crc32c", file.identity.ends_crc32c}});
  }
  const Json header = {
      {"format", "atoll-import"}, {"version", kImportVersion},      {"target", target},
      {"table", table_.name},     {"schema_crc32c", schema_crc32c}, {"files", files}};
  const std::lock_guard lock(mutex_);
  CHECK(at_ == 0 && committed_.empty() && !memory_.is_open());
  return read_memory(path, header.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Result<void> ImportSource::read_memory(const std::string& path, const std::string& header) {
  memory_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!memory_.is_open()) {
    return bad_file(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  // Locks the file, because without the lock two imports would send the same batches.
  if (flock(memory_.get(), LOCK_EX | LOCK_NB) != 0) {
    return bad_file(path, "is in use: another `atoll import` runs with it");
  }
  std::string text = file_text(memory_.get());
  struct stat info{};
  if (fstat(memory_.get(), &info) != 0 || static_cast<uint64_t>(info.st_size) != text.size()) {
    return bad_file(path, "cannot be read: check the device");
  }
  // A crash may have torn the last line. Removes it, so that the next line does not continue it.
  text.resize(text.find_last_of('\n') + 1);
  if (ftruncate(memory_.get(), static_cast<off_t>(text.size())) != 0) {
    return bad_file(path, fmt::format("cannot be truncated: {}", std::strerror(errno)));
  }
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line)) {
    const std::string first = header + "\n";
    const ssize_t written =
        uninterrupted([&] { return write(memory_.get(), first.data(), first.size()); });
    if (written == static_cast<ssize_t>(first.size())) return {};
    return bad_file(path, "cannot be written: make room");
  }
  if (line != header) {
    return bad_file(path,
                    "is of an import of another table, schema or files, or into another cluster "
                    "or storage, or these have changed: choose a new file for --resume");
  }
  while (std::getline(lines, line)) {
    std::istringstream numbers(line);
    size_t file = 0;
    uint64_t offset = 0;
    uint64_t end = 0;
    const bool is_whole = (numbers >> file >> offset >> end) && numbers.eof();
    if (!is_whole || file >= files_.size() || offset >= end) {
      return make_error(ExitCode::corruption,
                        fmt::format("{}: the line \"{}\" is damaged: import again without "
                                    "--resume",
                                    path, line));
    }
    committed_[file][offset] = end;
  }
  return {};
}

Result<void> ImportSource::finish(const ImportBatch& batch) {
  CHECK(!batch.rows.empty());
  const std::lock_guard lock(mutex_);
  if (!memory_.is_open()) return {};
  const std::string line =
      fmt::format("{} {} {}\n", batch.file, batch.rows.front().offset, batch.rows.back().end);
  const ssize_t written =
      uninterrupted([&] { return write(memory_.get(), line.data(), line.size()); });
  if (written == static_cast<ssize_t>(line.size())) return {};
  // Removes the torn line, so that the lines of batches in flight do not continue it.
  const off_t end = lseek(memory_.get(), 0, SEEK_CUR);
  if (written > 0 && ftruncate(memory_.get(), end - written) != 0) memory_.reset();
  return make_error(ExitCode::disk_full, "--resume: its file cannot be written: make room");
}

}  // namespace atolldb
