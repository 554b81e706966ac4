// Leftovers of start-ups that were given up, in a data directory (R54). For tests, and for a row of
// kRules in tests/engine/rules_mutant_test.cpp.
#pragma once

#include <fmt/format.h>

#include <set>
#include <string>

#include "engine/gleaner/sorted_run.h"
#include "engine/log/log_files.h"
#include "engine/recovery/leftovers.h"
#include "engine/snapshot/stored_snapshots.h"
#include "tests/engine/log/written_log.h"
#include "tests/engine/snapshot/made_snapshot.h"

namespace atolldb::test {

inline const std::set<std::string> kLeftoverDirectories = {"/data", "/fast"};

/// Makes an incarnation with commits in epochs 1 to 9, which no snapshot covers.
inline void fill_directory(FileSystem& files) {
  std::mt19937_64 random(1);
  auto start = examine(files, "/data");
  CHECK(start && store_cut(files, "/data", *start));
  create_storages(files, start->savepoint.cluster_uuid);
  LogWriter writer =
      make_writer(files, kFirst, start->incarnation, 1, 8, start->savepoint.cluster_uuid);
  CHECK(begin_incarnation(files, "/data", *start, {kFirst}).has_value());
  for (uint64_t epoch = 1; epoch < 10; ++epoch) write_epoch(writer, epoch, 2, epoch - 1, random);
}

/// Runs a start-up that is given up after it has created all files of a start-up. Returns an error
/// text, or an empty text. `cleans`: removes leftovers first, as a real start does.
inline std::string give_up_a_start(FileSystem& files, bool cleans = true) {
  auto start = examine(files, "/data", {"/fast"});
  if (!start) return start.error().message;
  if (start->recovery_epoch != 9) return "what was committed is not found any more";
  if (auto stored = store_cut(files, "/data", *start); !stored) return stored.error().message;
  if (cleans) {
    auto removed = remove_leftovers(files, "/data", start->savepoint, kLeftoverDirectories,
                                    start->incarnation);
    if (!removed) return removed.error().message;
  }
  const ClusterUuid& own = start->savepoint.cluster_uuid;
  auto id = take_snapshot_id(files, "/data", start->savepoint);
  if (!id) return id.error().message;
  std::string problem = make_snapshot_files(files, "/data", own, *id, 9);
  if (!problem.empty()) return problem;
  const std::string metadata = snapshot_metadata_path("/data", *id) + ".new";
  for (const std::string& path :
       {metadata, "/data/node0/" + to_string(SortedRunName{*id, 0, 0}),
        "/data/node0/" + to_string(LogFileName{start->incarnation, 1, 0})}) {
    if (auto made = files.create(path, kIoBlockBytes); !made) return made.error().message;
  }
  auto begun = LogWriter::create(
      files, {"/fast", 1, 0, start->incarnation, start->start_epoch, own, 8 * kLogBlockBytes});
  return begun ? "" : begun.error().message;
}

/// Counts the files of logs, snapshots and sorted runs.
inline size_t count_files(FileSystem& files) {
  auto logs = log_files_in(files, kLeftoverDirectories);
  auto snapshots = snapshot_files_in(files, "/data", kLeftoverDirectories);
  auto runs = list_sorted_runs(files, "/data", 0);
  CHECK(logs && snapshots && runs);
  return logs->size() + snapshots->size() + runs->size();
}

/// Ten start-ups that are given up leave as many files as one. Returns an error text, or an empty
/// text if all is right.
inline std::string ten_given_up_starts_leave_what_one_does() {
  MemoryFileSystem files;
  fill_directory(files);
  if (std::string problem = give_up_a_start(files); !problem.empty()) return problem;
  const size_t first = count_files(files);
  for (int i = 0; i < 9; ++i) {
    if (std::string problem = give_up_a_start(files); !problem.empty()) return problem;
  }
  const size_t last = count_files(files);
  return last == first ? "" : fmt::format("{} files after one start, {} after ten", first, last);
}

}  // namespace atolldb::test
