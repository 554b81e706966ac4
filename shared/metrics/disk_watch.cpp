#include "shared/metrics/disk_watch.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/path_errors.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

std::string backup_note_path(const std::string& data_dir) { return data_dir + "/last_backup.json"; }

}  // namespace

DiskWatch::DiskWatch(const std::vector<std::string>& directories, std::chrono::milliseconds period,
                     Read read, ReadBackupTime read_backup_time)
    : period_(period), read_(std::move(read)), read_backup_time_(std::move(read_backup_time)) {
  CHECK(period_.count() > 0 && read_ != nullptr);
  for (const std::string& directory : directories) {
    CHECK(!directory.empty());  // no label may be empty
    disks_.push_back({directory, {}, false});
  }
  read_all();
  thread_ = std::thread([this] { run(); });
}

DiskWatch::~DiskWatch() {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void DiskWatch::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, period_, [this] { return ends_; })) {
    lock.unlock();
    read_all();
    lock.lock();
  }
}

/// Reads without the lock, because a call may hang. Only one thread at a time calls this function,
/// and the number of disks is constant.
void DiskWatch::read_all() {
  std::vector<Disk> disks;
  {
    const std::lock_guard guard(mutex_);
    disks = disks_;
  }
  for (Disk& disk : disks) {
    const Result<FileSystemRoom> room = read_(disk.directory);
    if (!room) continue;  // keeps the latest room
    disk.room = *room;
    disk.is_known = true;
  }
  if (read_backup_time_ != nullptr) {
    backup_time_.store(read_backup_time_(), std::memory_order_relaxed);  // for display
  }
  const std::lock_guard guard(mutex_);
  CHECK(disks.size() == disks_.size());
  disks_ = std::move(disks);
}

std::vector<DiskWatch::Disk> DiskWatch::disks() const {
  const std::lock_guard guard(mutex_);
  std::vector<Disk> known = disks_;
  std::erase_if(known, [](const Disk& disk) { return !disk.is_known; });
  return known;
}

std::optional<uint64_t> DiskWatch::backup_time() const {
  if (read_backup_time_ == nullptr) return std::nullopt;
  return backup_time_.load(std::memory_order_relaxed);
}

Result<void> write_backup_note(const std::string& data_dir, const BackupNote& note) {
  const std::string path = backup_note_path(data_dir);
  const std::string temporary = path + ".new";
  const nlohmann::json json = {{"schema_version", 1},
                               {"finished_s", note.finished_s},
                               {"id", note.id},
                               {"directory", note.directory}};
  errno = 0;
  std::ofstream file(temporary, std::ios::trunc);
  file << json.dump(2) << "\n";
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    return std::unexpected(path_error(path, "cannot be written", errno,
                                      "the backup is complete, but the cluster does not know its "
                                      "age: make the directory writable and take another"));
  }
  return {};
}

uint64_t last_backup_time(const std::string& data_dir) {
  std::ifstream file(backup_note_path(data_dir));
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("finished_s")) return 0;
  const auto& finished = json["finished_s"];
  return finished.is_number_unsigned() ? finished.get<uint64_t>() : 0;
}

void add_disks(MetricFamilies& families, const DiskWatch& watch) {
  if (const std::optional<uint64_t> time = watch.backup_time()) {
    families
        .gauge("atoll_backup_finished_seconds",
               "When `atoll backup` last finished, in seconds since 1970; 0: never.")
        .sample(*time);
  }
  const std::vector<DiskWatch::Disk> disks = watch.disks();
  if (disks.empty()) return;
  families.gauge("atoll_disk_size_bytes", "Size of the file system of a directory with data.");
  for (const auto& disk : disks) {
    families.sample(disk.room.size_bytes, {{"directory", disk.directory}});
  }
  families.gauge("atoll_disk_free_bytes",
                 "Room on the file system of a directory with data, read every 10 seconds.");
  for (const auto& disk : disks) {
    families.sample(disk.room.free_bytes, {{"directory", disk.directory}});
  }
}

}  // namespace atolldb
