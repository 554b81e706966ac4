// Bodies for the rules of checkpoints and their replay (R88 to R95, R100, R107). Each returns an
// empty text, or what went wrong.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/checkpoint_reader.h"
#include "tests/engine/checkpoint/checkpoint_stage.h"
#include "tests/engine/hooks/at_sync_point.h"
#include "tests/support/power_cut_file_system.h"

namespace atolldb::test {

/// Commits of worker 0, in epochs that the body chooses. Log files are so short that each epoch
/// begins another one.
class ReplayScenario {
 public:
  explicit ReplayScenario(uint64_t log_file_bytes = 3 * kLogBlockBytes)
      : stage(1, 2, log_file_bytes) {}

  std::string commit(const std::vector<Change>& changes) {
    const Status status = stage.worker(0).run([&](Transaction& txn) {
      Content after = content_;
      for (const Change& change : changes) {
        const Status one = execute_change(txn, stage.storages, change, after);
        if (one != Status::ok) return one;
        change.apply_to(after);
      }
      return Status::ok;
    });
    if (status != Status::ok) return "the commit ended with " + std::string(to_string(status));
    for (const Change& change : changes) change.apply_to(content_);
    committed_.push_back({stage.worker(0).transaction->commit_epoch(), changes});
    return {};
  }
  /// Commits each of the changes in an epoch of its own.
  std::string commit_in_epochs(const std::vector<Change>& changes) {
    for (const Change& change : changes) {
      const std::string problem = commit({change});
      if (!problem.empty()) return problem;
      stage.next_epoch();
    }
    return {};
  }
  /// Power fails. Compares what a recovery finds with the commits up to the cut.
  std::string recover() { return recover(stage.crash()); }
  std::string recover(const CrashImage& image, const RecoveryOptions& options = {}) {
    Content expected;
    for (const Committed& one : committed_) {
      if (one.epoch > image.cut_epoch) continue;
      for (const Change& change : one.changes) change.apply_to(expected);
    }
    return recover_and_compare(image, options, expected);
  }

  CheckpointStage stage;

 private:
  Content content_;
  std::vector<Committed> committed_;
};

inline Change put(const std::string& key, const std::string& payload) {
  return {Change::Kind::put, StorageType::mastertree, key, 0, payload};
}
inline Change erase(const std::string& key) {
  return {Change::Kind::erase, StorageType::mastertree, key, 0, {}};
}
inline Change put_range(const std::string& key, uint32_t offset, const std::string& bytes) {
  return {Change::Kind::range, StorageType::mastertree, key, offset, bytes};
}
inline Change append(const std::string& payload) {
  return {Change::Kind::append, StorageType::sequential, {}, 0, payload};
}

/// A commit is verified and about to write when the next epoch and a checkpoint begin (R88).
inline std::string checkpoints_begin_after_commits() {
  ReplayScenario scenario;
  CheckpointStage& stage = scenario.stage;
  std::string problem = scenario.commit_in_epochs({put("old", "1")});
  if (!problem.empty()) return problem;
  std::unique_ptr<StagedCheckpoint> checkpoint;
  {
    const AtFirst at(SyncPoint::verified, [&] {
      stage.logged().tick();
      checkpoint = std::make_unique<StagedCheckpoint>(stage.checkpoints(), stage.worker(1),
                                                      stage.storages, CheckpointOptions{});
      problem = checkpoint->copy(stage.worker(1), 0);
    });
    const std::string committed = scenario.commit({put("new", "2")});
    if (!committed.empty() || !at.was_reached()) return "the commit: " + committed;
  }
  if (problem.empty()) problem = stage.install(checkpoint->finish());
  return problem.empty() ? scenario.recover() : problem;
}

/// A checkpoint has records of an epoch that is not durable when power fails (R89).
inline std::string checkpoints_wait_for_their_end_epoch() {
  ReplayScenario scenario;
  CheckpointStage& stage = scenario.stage;
  std::string problem = scenario.commit_in_epochs({put("a", "1"), put("b", "1")});
  if (problem.empty()) problem = scenario.commit({put("a", "2"), put("b", "2")});
  if (!problem.empty()) return problem;
  StagedCheckpoint checkpoint(stage.checkpoints(), stage.worker(1), stage.storages, {});
  problem = checkpoint.copy(stage.worker(1), 0);
  if (!problem.empty()) return problem;
  const CheckpointMetadata& metadata = checkpoint.finish();
  if (is_end_durable(metadata, stage.durable_epoch())) problem = stage.install(metadata);
  return problem.empty() ? scenario.recover() : problem;
}

/// The log from the replay epoch on has only a part of a record (R90).
inline std::string checkpoints_copy_what_the_log_has_in_part() {
  ReplayScenario scenario;
  std::string problem = scenario.commit_in_epochs({put("a", "0123456789")});
  if (problem.empty()) problem = scenario.commit({put_range("a", 3, "xyz"), append("h")});
  if (problem.empty()) problem = scenario.stage.take_checkpoint({});
  return problem.empty() ? scenario.recover() : problem;
}

/// Power fails after the installation of a checkpoint (R91).
inline std::string files_are_durable_before_the_metadata() {
  ReplayScenario scenario;
  CheckpointStage& stage = scenario.stage;
  std::string problem = scenario.commit_in_epochs({put("a", "1"), append("2")});
  if (!problem.empty()) return problem;
  PowerCutFileSystem files;
  StagedCheckpoint checkpoint(files, stage.worker(1), stage.storages, {});
  problem = checkpoint.copy(stage.worker(1), 0);
  if (!problem.empty()) return problem;
  const CheckpointMetadata& metadata = checkpoint.finish();
  const auto installed = install_checkpoint(files, "/data", metadata, metadata.end_epoch);
  if (!installed) return installed.error().message;
  const auto image = files.cut_losing_all();
  const auto newest = newest_checkpoint(*image, "/data");
  if (!newest) return newest.error().message;
  if (!newest->has_value()) return "the checkpoint is lost";
  uint64_t records = 0;
  for (size_t file = 0; file < (*newest)->files.size(); ++file) {
    auto reader = CheckpointReader::open(*image, **newest, file);
    if (!reader) return reader.error().message;
    for (;;) {
      const auto block = reader->next();
      if (!block) return block.error().message;
      if (*block == nullptr) break;
      records += (*block)->records;
    }
  }
  return records == 2 ? "" : "records are lost";
}

/// Versions of a key in several log files, which are replayed from the newest one on (R92).
inline std::string the_newest_version_wins() {
  ReplayScenario scenario;
  const std::string problem = scenario.commit_in_epochs(
      {put("a", "1"), put("b", "1"), put("a", "2"), put("b", "2"), put("a", "3"), put("b", "3")});
  return problem.empty() ? scenario.recover() : problem;
}

/// The deletion of a key is replayed before its insertion (R93).
inline std::string tombstones_beat_older_versions() {
  ReplayScenario scenario;
  const std::string problem = scenario.commit_in_epochs(
      {put("a", "1"), put("b", "1"), put("c", "1"), put("d", "1"), erase("a"), erase("b")});
  return problem.empty() ? scenario.recover() : problem;
}

/// Updates of parts of a record are replayed before what they change (R94).
inline std::string updates_wait_for_their_record() {
  ReplayScenario scenario;
  const std::string problem =
      scenario.commit_in_epochs({put("a", "0123456789"), put_range("a", 0, "xx"),
                                 put_range("a", 1, "yy"), put("b", "1"), put_range("a", 5, "z")});
  return problem.empty() ? scenario.recover() : problem;
}

/// Updates begin at the first byte of a record, and mostly do not reach its end (R107).
inline std::string updates_of_parts_keep_the_rest() {
  ReplayScenario scenario;
  const std::string problem =
      scenario.commit_in_epochs({put("a", "0123456789"), put_range("a", 0, "ABCDEFGHIJ"),
                                 put_range("a", 0, "xx"), put_range("a", 4, "y")});
  return problem.empty() ? scenario.recover() : problem;
}

/// Several processes replay records that have updates of several epochs (R100).
inline std::string versions_of_a_record_have_one_share() {
  ReplayScenario scenario;
  std::string problem;
  for (const char* key : {"a", "b", "c", "d"}) {
    if (!problem.empty()) return problem;
    problem = scenario.commit_in_epochs({put(key, "0123456789"), put_range(key, 0, "x"),
                                         put_range(key, 3, "y"), put_range(key, 5, "z"),
                                         put_range(key, 8, "w")});
  }
  return problem.empty() ? scenario.recover(scenario.stage.crash(), {.shares = 3}) : problem;
}

/// Several processes replay together. The first one reads the checkpoint and the newest log files.
/// These have updates of records. The newest whole versions of the records are in the log files of
/// the other processes (R100).
inline std::string updates_wait_for_the_files_of_all_processes() {
  ReplayScenario scenario;
  std::string problem;
  // Keys that differ in their last two bytes only would have the same share.
  const std::vector<const char*> keys = {"a-key", "b-key", "c-key", "d-key"};
  for (const char* key : keys) {
    if (problem.empty()) problem = scenario.commit_in_epochs({put(key, "0123456789")});
  }
  if (problem.empty()) problem = scenario.stage.take_checkpoint({});
  for (const char* key : keys) {
    if (problem.empty()) problem = scenario.commit_in_epochs({put(key, "ABCDEFGHIJ")});
  }
  for (const char* key : keys) {
    if (!problem.empty()) return problem;
    problem = scenario.commit_in_epochs({put_range(key, 0, "x"), put_range(key, 5, "z")});
  }
  const CrashImage image = scenario.stage.crash();
  for (const uint32_t shares : {2u, 3u}) {
    if (problem.empty()) problem = scenario.recover(image, {.shares = shares});
  }
  return problem;
}

/// The log has epochs after the cut (R95).
inline std::string epochs_after_the_cut_do_not_count() {
  ReplayScenario scenario;
  const std::string problem =
      scenario.commit_in_epochs({put("a", "1"), put("a", "2"), put("b", "2"), erase("a")});
  CrashImage image = scenario.stage.crash();
  image.cut_epoch -= 2;
  return problem.empty() ? scenario.recover(image) : problem;
}

/// A log file has epochs that the checkpoint covers (R95).
inline std::string covered_epochs_do_not_count() {
  ReplayScenario scenario(uint64_t{1} << 20);
  std::string problem = scenario.commit_in_epochs({append("1"), append("2")});
  if (problem.empty()) problem = scenario.stage.take_checkpoint({});
  if (problem.empty()) problem = scenario.commit_in_epochs({append("3")});
  return problem.empty() ? scenario.recover() : problem;
}

}  // namespace atolldb::test
