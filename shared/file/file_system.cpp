#include "shared/file/file_system.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/config/config_values.h"
#include "shared/file/io_buffer.h"
#include "shared/file/pmem_file_system.h"

namespace atolldb {

static_assert(config_limits::kLogFileStepBytes == kIoBlockBytes);

namespace {

std::unique_ptr<FileSystem> make_backend(const FileSystemSettings& settings) {
  switch (settings.backend) {
    case FileBackend::posix:
      return std::make_unique<PosixFileSystem>(settings.warn);
    case FileBackend::pmem:
      return std::make_unique<PmemFileSystem>(settings.warn);
    case FileBackend::null:
      return make_null_file_system();
  }
  CHECK(false);
}

}  // namespace

FileSystemSettings file_system_settings(const Config::Durability& durability, FileWarning warn,
                                        IoWatch* watch) {
  using std::chrono::nanoseconds;
  CHECK(durability.emulated_latency.count() >= 0);
  return {durability.backend,
          {.write = durability.emulated_latency + nanoseconds(durability.nvm_write_ns),
           .sync = durability.emulated_latency,
           .page_read = nanoseconds(durability.nvm_read_ns),
           .block_write = nanoseconds(durability.nvm_block_ns)},
          std::move(warn),
          watch};
}

std::unique_ptr<FileSystem> make_file_system(const FileSystemSettings& settings) {
  auto files = make_backend(settings);
  if (settings.latency != EmulatedLatency{}) {
    files = std::make_unique<EmulatedNvm>(
        std::move(files), settings.latency,
        settings.watch != nullptr ? &settings.watch->delays() : nullptr);
  }
  if (settings.watch == nullptr) return files;
  return std::make_unique<WatchedFileSystem>(std::move(files), *settings.watch);
}

Result<std::optional<std::string>> read_text_file(FileSystem& file_system,
                                                  const std::string& path) {
  ATOLL_ASSIGN(auto exists, file_system.exists(path));
  if (!exists) return std::nullopt;
  ATOLL_ASSIGN(auto file, file_system.open_for_reading(path));
  ATOLL_ASSIGN(const uint64_t size, file->size());
  if (size > kMaxTextFileBytes) {
    return make_error(ExitCode::corruption,
                      fmt::format("{}: has {} bytes, more than the limit of {}: restore the file",
                                  path, size, kMaxTextFileBytes));
  }
  std::string text(size, '\0');
  ATOLL_ASSIGN(const uint64_t count, file->read(0, std::as_writable_bytes(std::span(text))));
  CHECK(count <= size);
  text.resize(count);
  return text;
}

Result<void> replace_text_file(FileSystem& file_system, const std::string& path, std::string text) {
  if (text.size() > kMaxTextFileBytes) {
    return make_error(
        ExitCode::resources,
        fmt::format("{}: would have {} bytes, the limit is {}: name fewer directories", path,
                    text.size(), kMaxTextFileBytes));
  }
  text.resize((text.size() / kIoBlockBytes + 1) * kIoBlockBytes, '\n');
  IoBuffer buffer(text.size());
  CHECK(buffer.bytes().size() == text.size());
  std::ranges::copy(std::as_bytes(std::span(text)), buffer.bytes().begin());

  CHECK(path.find('/') != std::string::npos);
  const std::string next = path + ".new";
  ATOLL_ASSIGN(const bool is_left, file_system.exists(next));  // true if a crash has left it
  if (is_left) {
    ATOLL_TRY(file_system.remove(next));
  }
  ATOLL_ASSIGN(auto file, file_system.create(next, text.size()));
  const std::array<std::span<const std::byte>, 1> slices = {buffer.bytes().first(text.size())};
  ATOLL_TRY(file->write(0, slices));
  ATOLL_TRY(file->sync());
  ATOLL_TRY(file_system.rename(next, path));
  return file_system.sync_directory(path.substr(0, path.rfind('/')));
}

}  // namespace atolldb
