// Room on the file systems of a cluster's data, and the time of its last backup. A thread of its
// own reads them, so that a device that hangs (R58) delays no scrape.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "shared/base/error.h"
#include "shared/file/file_system_wrappers.h"

namespace atolldb {

class MetricFamilies;

class DiskWatch {
 public:
  using Read = std::function<Result<FileSystemRoom>(const std::string& directory)>;
  /// Returns seconds since 1970, or 0 without a backup.
  using ReadBackupTime = std::function<uint64_t()>;
  static constexpr std::chrono::milliseconds kPeriod{10'000};

  struct Disk {
    std::string directory;
    FileSystemRoom room;  // the latest one that could be read
    bool is_known = false;
  };

  /// Reads once, then every `period` on a thread. `read_backup_time`: null if the cluster keeps no
  /// data that a backup could have.
  explicit DiskWatch(const std::vector<std::string>& directories,
                     std::chrono::milliseconds period = kPeriod, Read read = file_system_room,
                     ReadBackupTime read_backup_time = nullptr);
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;
  ~DiskWatch();

  /// Returns the directories whose room is known. Thread: any. Never waits for a device.
  std::vector<Disk> disks() const;
  /// Returns the time of the last backup, or nothing if it is not read. Thread: any. Never waits.
  std::optional<uint64_t> backup_time() const;

 private:
  void run();
  void read_all();

  const std::chrono::milliseconds period_;
  const Read read_;
  const ReadBackupTime read_backup_time_;
  std::atomic<uint64_t> backup_time_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Disk> disks_;  // guarded by mutex_
  bool ends_ = false;        // guarded by mutex_
  std::thread thread_;
};

/// Note of the last backup, in the data directory.
struct BackupNote {
  uint64_t finished_s = 0;  // seconds since 1970
  std::string id;           // of the backup in `directory`
  std::string directory;
};
/// Writes the note atomically. A restored database has no note, because it has no backup yet.
Result<void> write_backup_note(const std::string& data_dir, const BackupNote& note);
/// Returns the time of the last backup in seconds since 1970, or 0 if there is no readable note.
uint64_t last_backup_time(const std::string& data_dir);

/// Adds the metric families about disks to a scrape. Adds none while no room is known.
void add_disks(MetricFamilies& families, const DiskWatch& watch);

}  // namespace atolldb
