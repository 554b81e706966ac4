// A file system whose calls are numbered and fail where a test says: in front of any backend.
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
  disk_full,    ///< nothing is done; answers disk_full
  io_error,     ///< nothing is done; answers durability
  short_write,  ///< of a write the first half of its blocks is done; answers disk_full.
                ///< Of all other calls: like io_error
};

/// Calls are numbered from 1, over all files and threads, in the order in which they begin. A
/// file whose write or sync has failed answers that error ever after, as the real backends do;
/// such refused calls are not counted. Thread-safe.
class FaultInjector : public FileSystem {
 public:
  /// REQUIRES: `below` outlives this object and its files; and this object its files.
  explicit FaultInjector(FileSystem& below) : below_(below) {}

  /// The `number`-th call of all, or of a kind, fails. Adds to what was asked before.
  void fail(uint64_t number, Fault fault);
  void fail(IoCall call, uint64_t number, Fault fault);
  /// And all calls from there on: the device is gone.
  void fail_from(uint64_t number, Fault fault);
  /// No call fails any more; counts go on. Files that failed stay as they are.
  void heal();

  /// Called, by the thread of the call, for each sync of a file that is made to fail.
  std::function<void(const std::string& path)> on_failed_sync;

  uint64_t calls() const;
  uint64_t calls(IoCall call) const;
  /// How many calls were made to fail.
  uint64_t failures() const;
  /// "write of 4096 bytes at 0 to /x/y" for each call, the failed ones marked: for messages.
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
  Result<void> forget_cached(const std::string& path) override {
    return below_.forget_cached(path);
  }
  bool is_durable() const override { return below_.is_durable(); }
  std::string describe() const override { return below_.describe() + ", with injected faults"; }

 private:
  friend class FaultyFile;

  /// Counts a call; says whether it fails, and how.
  std::optional<Fault> count(IoCall call, const std::string& what);
  /// Counts a call; an error if it fails.
  Result<void> begin(IoCall call, const std::string& what);
  /// Counts a call and does `operation` unless it fails.
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
