// Record of a process's device calls in progress, with their start times (R58). Each call is
// recorded in memory before it enters the kernel. The watcher reads these records, and never
// touches the device.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "shared/base/tick_clock.h"
#include "shared/file/forwarding_file_system.h"

namespace atolldb {

enum class IoOperation : uint32_t {
  none = 0,
  read,
  write,
  grow,
  sync,
  open,
  create,
  sync_directory,
  other,  // operations on names: listing, renaming, removing
};
constexpr uint32_t kIoOperationCount = static_cast<uint32_t>(IoOperation::other) + 1;
const char* to_string(IoOperation operation);

/// A device call in progress.
struct PendingIo {
  IoOperation operation = IoOperation::none;
  std::string path;
  std::chrono::nanoseconds age{0};
};

/// Thread-safe. Recording a call costs one compare-and-swap, a few stores and one clock read.
class IoWatch {
 public:
  /// Limit of recorded calls in progress; calls above it are not recorded.
  static constexpr uint32_t kMaxCalls = 512;

  /// Registers a path and returns its number. Records of calls store this number instead of the
  /// text. A file stays registered while it is open.
  uint64_t add_path(const std::string& path);
  void remove_path(uint64_t number);

  /// Returns the oldest call in progress, or nothing if there is no call.
  std::optional<PendingIo> oldest() const;

  /// Records a call. Returns its entry, or null if there are too many calls. Each call is followed
  /// by a call of `end` with the result.
  std::atomic<int64_t>* begin(IoOperation operation, uint64_t path);
  static void end(std::atomic<int64_t>* entry);

  /// Counts of the emulated delays of the process's device calls (EmulatedNvm).
  DelayCounts& delays() { return delays_; }
  const DelayCounts& delays() const { return delays_; }

  /// Records a call from construction to destruction.
  class Note {
   public:
    Note(IoWatch& watch, IoOperation operation, uint64_t path)
        : entry_(watch.begin(operation, path)) {}
    Note(const Note&) = delete;
    Note& operator=(const Note&) = delete;
    ~Note() { end(entry_); }

   private:
    std::atomic<int64_t>* entry_;
  };

 private:
  static constexpr int64_t kFree = 0;
  static constexpr int64_t kTaken = -1;  // a thread is writing the slot's other words

  struct alignas(64) Slot {
    std::atomic<int64_t> since_ns{kFree};  // start of the call on the steady clock
    std::atomic<uint32_t> operation{0};
    std::atomic<uint64_t> path{0};
  };

  std::array<Slot, kMaxCalls> slots_;
  mutable std::mutex mutex_;
  std::map<uint64_t, std::string> paths_;  // guarded by mutex_
  uint64_t last_path_ = 0;                 // guarded by mutex_
  DelayCounts delays_;
};

/// File system that records each call in an IoWatch. REQUIRES: it outlives its files.
class WatchedFileSystem : public ForwardingFileSystem {
 public:
  /// REQUIRES: `watch` outlives this object.
  WatchedFileSystem(std::unique_ptr<FileSystem> below, IoWatch& watch)
      : ForwardingFileSystem(*below), owned_(std::move(below)), watch_(watch) {}

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> make_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  Result<bool> link(const std::string& from, const std::string& to) override;
  Result<void> remove_directory(const std::string& path) override;
  Result<void> forget_cached(const std::string& path) override;

 private:
  std::unique_ptr<FileSystem> owned_;
  IoWatch& watch_;
};

}  // namespace atolldb
