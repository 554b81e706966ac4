// Bodies of tests of kept older snapshots (R55), and of log that waits for an archive (R72). A body
// returns an error text, or an empty text if all is right. Every run takes the same steps.
#pragma once

#include <optional>
#include <string>

#include "engine/recovery/log_start.h"
#include "engine/recovery/retention.h"
#include "tests/engine/log/written_log.h"
#include "tests/engine/snapshot/made_snapshot.h"

namespace atolldb::test {

/// A log of epochs 1 to 9, and kept snapshots of epochs 3 and 5. All unneeded files have been
/// deleted.
struct KeptData {
  /// Returns an error text, or an empty text.
  std::string make() {
    std::string problem = data.begin({kFirst}, 8);
    if (!problem.empty()) return problem;
    data.write_all(1, 9);
    problem = make_snapshot(data.files, "/data", data.start.savepoint, 3, {}, 2);
    if (problem.empty()) {
      problem = make_snapshot(data.files, "/data", data.start.savepoint, 5, {}, 2);
    }
    if (!problem.empty()) return problem;
    const auto deleted =
        delete_unneeded(data.files, "/data", data.start.savepoint, {"/data", "/fast"}, {});
    return deleted ? "" : deleted.error().message;
  }
  DataDirectory data;
};

/// The newest snapshot is damaged. A start-up from the older one must have everything that was
/// committed.
inline std::string kept_snapshots_keep_their_log() {
  KeptData kept;
  const std::string problem = kept.make();
  if (!problem.empty()) return problem;
  FileSystem& files = kept.data.files;
  if (!files.remove(snapshot_metadata_path("/data", 2))) return "damaging the newest snapshot";
  const auto start = examine(files, "/data");
  if (!start) return start.error().message;
  if (start->savepoint.snapshot != 1 || !start->snapshot || start->snapshot->id != 1) {
    return "the start is not from the older snapshot";
  }
  if (start->fallback.empty()) return "the start does not say so";
  if (start->recovery_epoch != 9) return "the start ends before the last commit";
  if (start->streams_to_read.size() != 1) return "no stream is read";
  return start->streams_to_read.front().stream.covered_epoch == 3 ? "" : "the log begins too late";
}

/// A backup of snapshot 1 is in progress, while the cluster takes another snapshot and deletes the
/// files that it does not need. All log after snapshot 1 must stay.
inline std::string backup_pins_keep_their_log() {
  DataDirectory data;
  std::string problem = data.begin({kFirst}, 8);
  if (!problem.empty()) return problem;
  data.write_all(1, 9);
  Savepoint& savepoint = data.start.savepoint;
  problem = make_snapshot(data.files, "/data", savepoint, 3);
  if (!problem.empty()) return problem;
  const std::string pin = std::string(kBackupPinPrefix) + "1";
  if (!pin_snapshot(data.files, "/data", savepoint, 1, pin)) return "pinning snapshot 1";
  problem = make_snapshot(data.files, "/data", savepoint, 9);
  if (!problem.empty()) return problem;
  const auto deleted = delete_unneeded(data.files, "/data", savepoint, {"/data"}, {});
  if (!deleted) return deleted.error().message;
  Savepoint older = savepoint;
  older.snapshot_epoch = 3;
  const auto scan = scan_incarnation(data.files, older, older.incarnations.front());
  if (!scan) return scan.error().message;
  if (scan->corruption) return scan->corruption_error().message;
  return scan->cut_epoch == 9 ? "" : "the log ends before the last commit";
}

/// A snapshot covers the whole log, and an archive has only the first log file. The other log files
/// must stay (R72).
inline std::string unarchived_log_stays() {
  DataDirectory data;
  std::string problem = data.begin({kFirst}, 8);
  if (!problem.empty()) return problem;
  data.write_all(1, 12);
  problem = make_snapshot(data.files, "/data", data.start.savepoint, 12);
  if (!problem.empty()) return problem;
  const auto count = [&] {
    const auto files = log_files_in(data.files, {"/data"});
    return files ? files->size() : 0;
  };
  const size_t before = count();
  if (before < 4) return "too few log files";
  const KeepLog keep_log = [](const LogFilePlace& place) { return place.name.ordinal >= 1; };
  const auto deleted = delete_unneeded(data.files, "/data", data.start.savepoint, {"/data"}, {},
                                       std::nullopt, keep_log);
  if (!deleted) return deleted.error().message;
  if (count() != before - 1) return "not exactly the archived file was deleted";
  const auto all = delete_unneeded(data.files, "/data", data.start.savepoint, {"/data"}, {});
  if (!all) return all.error().message;
  return count() == 1 ? "" : "archived files stay";
}

}  // namespace atolldb::test
