#include "shared/file/file_system.h"

#include "shared/base/check.h"
#include "shared/config/config_values.h"
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
  CHECK(durability.emulated_latency.count() >= 0);
  return {durability.backend,
          {.write = durability.emulated_latency, .sync = durability.emulated_latency},
          std::move(warn),
          watch};
}

std::unique_ptr<FileSystem> make_file_system(const FileSystemSettings& settings) {
  auto files = make_backend(settings);
  if (settings.latency != EmulatedLatency{}) {
    files = std::make_unique<EmulatedNvm>(std::move(files), settings.latency);
  }
  if (settings.watch == nullptr) return files;
  return std::make_unique<WatchedFileSystem>(std::move(files), *settings.watch);
}

}  // namespace atolldb
