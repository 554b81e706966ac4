// Bodies of tests of an archive whose state could not be stored, because the disk of data_dir was
// full (R72). A body returns an error text, or an empty text if all is right.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <set>
#include <string>

#include "coordinator/durability/durable_state.h"
#include "tests/coordinator/archive/made_archive.h"
#include "tests/engine/snapshot/made_snapshot.h"

namespace atolldb::test {

/// While `is_full`, no state of the archive can be stored. All other files can be written.
class FullForState : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override {
    if (is_full && path.starts_with(archive_state_path("/data"))) {
      ++refused;
      return make_error(ExitCode::disk_full, path + ": no space left");
    }
    return ForwardingFileSystem::create(path, bytes);
  }

  bool is_full = true;
  uint64_t refused = 0;
};

/// The state before the disk is full.
struct UnstoredCase {
  bool is_known = false;    // the state in data_dir has the first incarnation, without a cut
  bool is_covered = false;  // a snapshot has its commits: the next start forgets it
};

/// An incarnation writes the epochs 1 to 5, and is killed. The next start cannot store the state of
/// the archive, stores a snapshot of these commits, and is killed, too. The start after that must
/// still archive the whole log of the first incarnation, and know its cut.
inline std::string unstored_state_keeps_the_log(const UnstoredCase& shape) {
  constexpr uint64_t kLast = 5;
  DataDirectory data;
  Config config = archive_config();
  config.nodes.assign(2, NodeConfig{});
  config.nodes[1].directories = {"/fast"};
  if (!data.files.make_directory(kArchive)) return "making the directory";
  if (const auto problem = data.begin({kFirst, kSecond}); !problem.empty()) return problem;
  const uint64_t number = data.start.incarnation;
  FullForState full(data.files);
  if (shape.is_known) {
    ArchiveRun run(data.files, data.start.savepoint, config);
    data.write_all(1, kLast);
    if (const auto problem = run.work(); !problem.empty()) return problem;
  } else {
    const ArchiveRun run(full, data.start.savepoint, config);
    data.write_all(1, kLast);
    if (full.refused == 0) return "the state was stored";
  }
  if (shape.is_covered) {
    const auto problem = make_snapshot(data.files, "/data", data.start.savepoint, kLast);
    if (!problem.empty()) return problem;
  }
  const auto logs = log_files_in(data.files, {"/data", "/fast"});
  if (!logs || logs->size() < 4) return "too few log files";
  const auto open = [&](FileSystem& files) {
    return DurableState::open(config, 0, std::make_unique<ForwardingFileSystem>(files),
                              make_silent_logger("test"));
  };
  {
    const uint64_t before = full.refused;
    auto second = open(full);
    if (!second) return second.error().message;
    if (full.refused == before) return "the second start has stored the state";
    if (!shape.is_covered) {
      const auto id = (*second)->take_snapshot_id();
      if (!id) return id.error().message;
      const auto problem =
          make_snapshot_files(data.files, "/data", (*second)->data_uuid(), *id, kLast);
      if (!problem.empty()) return problem;
      const auto metadata = read_snapshot_metadata(data.files, "/data", *id);
      if (!metadata) return metadata.error().message;
      if (const auto stored = (*second)->store_snapshot(*metadata); !stored) {
        return stored.error().message;
      }
      if (const auto deleted = (*second)->delete_unneeded({*id}); !deleted) {
        return deleted.error().message;
      }
    }
  }
  auto third = open(data.files);
  if (!third) return third.error().message;
  LogArchiver archiver(
      ArchiveSource{(*third)->files(), "/data", (*third)->directories(), *(*third)->archive(),
                    [&] { return (*third)->ddl_record_count(); }},
      std::make_unique<ForwardingFileSystem>(data.files), config.archive,
      make_silent_logger("archive"));
  if (const auto worked = archiver.work(); !worked) return worked.error().message;
  const auto content = read_archive(data.files, kArchive);
  if (!content) return content.error().message;
  const auto archived = content->incarnations.find(number);
  if (archived == content->incarnations.end()) return "the archive lacks the incarnation";
  const uint64_t cut = archived->second.cut_epoch.value_or(0);
  if (cut != kLast) return fmt::format("the archive ends the incarnation at epoch {}", cut);
  for (const LogFilePlace& place : *logs) {
    const std::string name = archived_log_name(place.node, place.name);
    if (!content->files.contains(name)) return name + " is not archived";
  }
  return differing_file(data.files);
}

/// All cases, one after the other.
inline std::string unstored_states_keep_the_log() {
  for (const bool is_known : {false, true}) {
    for (const bool is_covered : {false, true}) {
      const std::string problem = unstored_state_keeps_the_log({is_known, is_covered});
      if (problem.empty()) continue;
      return fmt::format("known {}, covered {}: {}", is_known, is_covered, problem);
    }
  }
  return "";
}

}  // namespace atolldb::test
