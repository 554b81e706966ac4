// Copies closed log files to the archive, before they may be deleted (R72, R73). A thread of the
// coordinator makes the copies, because all log files are on this machine. No worker takes part.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "coordinator/archive/archive_progress.h"
#include "coordinator/archive/archive_target.h"
#include "engine/archive/archive_format.h"
#include "engine/archive/archive_state.h"
#include "shared/base/error.h"
#include "shared/file/file.h"
#include "shared/logging/logger.h"
#include "shared/message/control_message.h"
#include "shared/metrics/cluster_metrics.h"

namespace atolldb {

/// Time between two checks for closed log files.
inline constexpr std::chrono::milliseconds kArchivePeriod{200};
/// Time for which a start waits for the first check of the archive. Then it continues without the
/// result.
inline constexpr std::chrono::milliseconds kArchivePatience{10'000};
/// While the archive fails, this is the least time between two logged errors. The errors of a
/// command may all differ, because they contain its output, for example times.
inline constexpr std::chrono::minutes kArchiveErrorPause{1};

/// The data to archive. REQUIRES: the objects outlive the archiver.
struct ArchiveSource {
  FileSystem& files;  // file system of the cluster
  std::string data_dir;
  std::set<std::string> directories;  // directories that may hold log files
  ArchiveProgress& progress;
  std::function<uint64_t()> durable_ddl_records;
};

class LogArchiver {
 public:
  /// `archive_files`: reads log files, and writes the archive if it is a directory. Its calls must
  /// not be in the coordinator's IoWatch, because a hanging archive does not count as a hanging
  /// device (R58).
  LogArchiver(ArchiveSource source, std::unique_ptr<FileSystem> archive_files,
              const Config::Archive& archive, Logger logger);
  LogArchiver(const LogArchiver&) = delete;
  LogArchiver& operator=(const LogArchiver&) = delete;
  ~LogArchiver() { stop(); }

  void start();
  /// Sets archive.retry and archive.timeout from now on. Thread: any.
  void set_times(std::chrono::milliseconds retry, std::chrono::milliseconds timeout);
  /// Ends the copy or the command under way, and the thread. The next start of the cluster
  /// continues.
  void stop();
  /// Waits until the first check of the archive has ended. Returns code identity if the archive is
  /// of other data. Other errors do not count. REQUIRES: the thread runs.
  Result<void> await_examined(std::chrono::milliseconds patience);

  /// Archives all closed log files that wait. Thread: the archiver's. A test may call this instead
  /// of `start`.
  Result<void> work();

  /// Returns the member `archive` of the status. Thread: any.
  Json status() const;
  /// Returns why log files are kept, or "" if no file waits for the archive. Thread: any.
  std::string waiting_text() const;
  const ArchiveMetrics& metrics() const { return metrics_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// A closed log file that the archive does not have yet.
  struct Waiting {
    LogFilePlace place;
    uint64_t bytes = 0;
    uint64_t reach_epoch = 0;
  };

  void run();
  bool is_cancelled() const { return ends_.load(std::memory_order_relaxed); }
  /// Returns the closed files that the archive does not have, in the order in which they are
  /// archived.
  Result<std::vector<Waiting>> find_waiting();
  Result<void> add_stream(std::span<const LogFilePlace> stream, const ArchiveState& state,
                          std::vector<Waiting>& waiting);
  void publish_waiting(std::span<const Waiting> waiting);
  /// Checks that the archive can be reached and is of these data. Afterwards archive and state
  /// agree. A new archive gets the identity in the state. If the state does not describe an
  /// existing archive, it is rebuilt from the archive.
  Result<void> examine();
  Result<void> examine_target();
  Result<void> examine_directory(const std::string& directory, ArchiveState& state);
  /// Stores the file. Then checks that the archive is still there.
  Result<FileSum> put(const std::string& path, const std::string& name);
  Result<void> refuse_set_back(const std::string& directory, const ArchiveState& state);
  Result<void> rebuild(const std::string& directory, const ArchiveIdentity& identity,
                       ArchiveState& state);
  Result<void> store_identity(const ArchiveIdentity& identity);
  /// Stores the record that a crash has left in data_dir, if it is the next one.
  Result<void> finish_record();
  Result<void> archive_file(const Waiting& waiting);
  bool has_news() const;
  /// Returns the next record, without a file.
  Result<ArchiveRecord> next_record();
  Result<void> store_record(const ArchiveRecord& record);
  Result<void> forget_complete();
  void report(const Result<void>& worked);

  const ArchiveSource source_;
  const std::unique_ptr<FileSystem> archive_files_;
  Live<std::chrono::milliseconds> retry_;
  Logger logger_;
  std::atomic<bool> ends_{false};  // also read by target_, within its calls
  const std::unique_ptr<ArchiveTarget> target_;
  ArchiveMetrics metrics_;
  bool is_examined_ = false;  // used by the archiver's thread only
  std::string logged_error_;  // used by the archiver's thread only, as is logged_at_
  Clock::time_point logged_at_;
  // Time at which each waiting file was first seen, in seconds since 1970, by path. Used by the
  // archiver's thread only.
  std::map<std::string, uint64_t> seen_since_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Result<void>> first_answer_;  // guarded by mutex_, as are the next two
  std::string last_file_;                     // the name of the last stored file
  std::string error_;                         // error of the last attempt; empty: it succeeded
  std::thread thread_;
};

}  // namespace atolldb
