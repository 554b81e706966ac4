// Any file system as a slower device: every read, write and sync takes a configured time more. It
// spins on the clock, as the emulated NVRAM of the FOEDUS paper does (section 9.3.1: a software
// spin loop on the time-stamp counter in each read and write of a tmpfs), because a sleep of
// microseconds is neither precise nor short. So the delay takes a processor, as waiting for real
// NVRAM does.
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

/// Files must not outlive their file system.
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
