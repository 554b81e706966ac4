// The archive of a data directory in memory, as the coordinator works on it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "coordinator/archive/log_archiver.h"
#include "engine/archive/archive_content.h"
#include "engine/recovery/retention.h"
#include "shared/file/forwarding_file_system.h"
#include "tests/engine/log/written_log.h"

namespace atolldb::test {

inline constexpr const char* kArchive = "/archive";

inline Config archive_config(const std::string& directory = kArchive) {
  Config config;
  config.cluster.name = "bank";
  config.cluster.data_dir = "/data";
  config.archive.directory = directory;
  return config;
}

/// One run of the coordinator, as far as the archive is concerned. REQUIRES: `files` outlives it.
class ArchiveRun {
 public:
  ArchiveRun(FileSystem& files, const Savepoint& savepoint, const Config& config)
      : ArchiveRun(files, files, savepoint, config) {}

  /// `archive_files`: file system of the archive, which may fail while that of the data works.
  ArchiveRun(FileSystem& files, FileSystem& archive_files, const Savepoint& savepoint,
             const Config& config, bool salvages = false) {
    auto opened =
        ArchiveProgress::open(files, config, savepoint, salvages, make_silent_logger("archive"));
    CHECK(opened.has_value());
    progress_ = *std::move(opened);
    progress_->add(savepoint);
    const auto ddl_count = [&files, uuid = savepoint.cluster_uuid]() -> uint64_t {
      const auto ddl = read_ddl_log(files, "/data", uuid);
      return ddl ? ddl->records.size() : 0;
    };
    archiver_ = std::make_unique<LogArchiver>(
        ArchiveSource{files, "/data", {"/data", "/fast"}, *progress_, ddl_count},
        std::make_unique<ForwardingFileSystem>(archive_files), config.archive,
        make_silent_logger("archive"));
  }

  /// Returns the error, or an empty text.
  std::string work() {
    const auto worked = archiver_->work();
    return worked ? "" : worked.error().message;
  }
  LogArchiver& archiver() { return *archiver_; }
  ArchiveProgress& progress() { return *progress_; }
  KeepLog keep_log() {
    return [this](const LogFilePlace& place) { return progress_->must_stay(place); };
  }

 private:
  std::unique_ptr<ArchiveProgress> progress_;
  std::unique_ptr<LogArchiver> archiver_;
};

/// Returns the path of a log file in the archive that differs from the file of the same name in the
/// data. Files that were deleted from the data are not compared. Returns an empty text if no file
/// differs.
inline std::string differing_file(MemoryFileSystem& files) {
  const std::string prefix = std::string(kArchive) + "/node";
  for (const std::string& path : files.paths()) {
    if (!path.starts_with(prefix)) continue;
    const std::string name = path.substr(std::string(kArchive).size());
    for (const char* directory : {"/data", "/fast"}) {
      if (!*files.exists(directory + name)) continue;
      if (files.bytes(directory + name) != files.bytes(path)) return path;
    }
  }
  return "";
}

/// Only closed files are archived (R73), so archived files never differ from those of the cluster.
inline std::string only_closed_files_are_archived() {
  DataDirectory data;
  if (!data.files.make_directory(kArchive)) return "making the directory";
  if (const auto problem = data.begin({kFirst}); !problem.empty()) return problem;
  ArchiveRun run(data.files, data.start.savepoint, archive_config());
  for (uint64_t epoch = 1; epoch <= 12; ++epoch) {
    data.write_all(epoch, epoch);
    if (const auto problem = run.work(); !problem.empty()) return problem;
    const std::string path = differing_file(data.files);
    if (!path.empty()) return path + " was archived before it was closed";
  }
  const auto content = read_archive(data.files, kArchive);
  if (!content) return content.error().message;
  return content->files.size() < 2 ? "too few files are archived" : "";
}

}  // namespace atolldb::test
