// File system that emulates a slower device: it adds a configured latency to every read, write and
// sync. The delay spins on the clock, because a sleep of microseconds is neither precise nor short
// enough. It occupies a processor, as waiting for real NVRAM does. Source: [FOEDUS15] section 9.3.1
// (emulated NVRAM: a spin loop on the time-stamp counter in each read and write of a tmpfs).
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "shared/file/forwarding_file_system.h"

namespace atolldb {

struct EmulatedLatency {
  std::chrono::nanoseconds read{0};
  std::chrono::nanoseconds write{0};
  std::chrono::nanoseconds sync{0};

  bool operator==(const EmulatedLatency&) const = default;
};

/// REQUIRES: this file system outlives its files.
class EmulatedNvm : public ForwardingFileSystem {
 public:
  EmulatedNvm(std::unique_ptr<FileSystem> below, EmulatedLatency latency)
      : ForwardingFileSystem(*below), owned_(std::move(below)), latency_(latency) {}

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  /// "posix, direct I/O; emulated latency in ns: read 0, write 5000, sync 5000"
  std::string describe() const override;

 private:
  std::unique_ptr<FileSystem> owned_;
  EmulatedLatency latency_;
};

}  // namespace atolldb
