// Fault-injecting file system: numbers all calls to a backend and fails those that the test
// selects.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/file/file.h"

namespace atolldb::test {

enum class IoCall : uint8_t {
  create,
  open,
  open_for_reading,
  write,
  grow,
  sync,
  read,
  size,
  sync_directory,
  make_directory,
  list,
  exists,
  rename,
  remove,
  count_,
};
inline constexpr uint32_t kIoCallCount = static_cast<uint32_t>(IoCall::count_);

enum class Fault : uint8_t {
  disk_full,  ///< the call does nothing and returns ExitCode::disk_full
  io_error,   ///< the call does nothing and returns ExitCode::durability
  /// a write writes the first half of its blocks and returns disk_full; other calls: as io_error
  short_write,
};

/// Calls are numbered from 1, over all files and threads, in the order in which they begin. After a
/// failed write or sync, the file returns that error for every later call, as the real backends do.
/// Such refused calls are not counted. Thread-safe.
class FaultInjector : public FileSystem {
 public:
  /// REQUIRES: `below` outlives this object, and this object outlives its files.
  explicit FaultInjector(FileSystem& below) : below_(below) {}

  /// Makes the `number`-th call fail, of all calls or of one kind. Earlier faults stay set.
  void fail(uint64_t number, Fault fault);
  void fail(IoCall call, uint64_t number, Fault fault);
  /// Makes all calls from that number on fail, as if the device had failed completely.
  void fail_from(uint64_t number, Fault fault);
  /// Clears the faults: later calls succeed, and counting continues. Failed files stay failed.
  void heal();

  /// Called for each sync of a file that the injector fails. Thread: the thread of the call.
  std::function<void(const std::string& path)> on_failed_sync;

  uint64_t calls() const;
  uint64_t calls(IoCall call) const;
  /// Number of calls that were made to fail.
  uint64_t failures() const;
  /// One line per call ("write of 4096 bytes at 0 to /x/y"), for messages. Failed calls are marked.
  std::vector<std::string> trace() const;

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> make_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  /// A link counts as a rename.
  Result<bool> link(const std::string& from, const std::string& to) override;
  /// The removal of a directory counts as a removal.
  Result<void> remove_directory(const std::string& path) override;
  Result<void> forget_cached(const std::string& path) override {
    return below_.forget_cached(path);
  }
  bool is_durable() const override { return below_.is_durable(); }
  std::string describe() const override { return below_.describe() + ", with injected faults"; }

 private:
  friend class FaultyFile;

  /// Counts a call. Returns the fault, or nullopt if the call shall succeed.
  std::optional<Fault> count(IoCall call, const std::string& what);
  /// Counts a call. Returns an error if it shall fail.
  Result<void> begin(IoCall call, const std::string& what);
  /// Counts a call, and runs `operation` unless the call shall fail.
  template <typename Operation>
  auto run(IoCall call, const std::string& what, Operation operation) -> decltype(operation());

  FileSystem& below_;
  mutable std::mutex mutex_;
  uint64_t calls_ = 0;
  std::array<uint64_t, kIoCallCount> calls_of_{};
  uint64_t failures_ = 0;
  std::map<uint64_t, Fault> faults_;
  std::map<std::pair<IoCall, uint64_t>, Fault> faults_of_;
  std::optional<std::pair<uint64_t, Fault>> fail_from_;
  std::vector<std::string> trace_;
};

}  // namespace atolldb::test
