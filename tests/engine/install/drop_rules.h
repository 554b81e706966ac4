// Bodies of tests that drop pages of arrays and sequential storages onto an installed snapshot. A
// body returns an error text, or an empty text if all is right. Every run takes the same steps.
#pragma once

#include <string>
#include <vector>

#include "tests/engine/install/warm_cluster.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// An array of three levels with a few records that are far apart, two of them in one leaf. Epochs
/// advance when snapshots are taken.
class DropStage : public WarmArray {
 public:
  static constexpr uint32_t kPayload = 400;
  DropStage() : WarmArray(2, false, records(), kPayload) { CHECK(shape.levels == 3); }

  /// Returns the index of a record. `page` is the number of its page of level 1, `leaf` that of its
  /// leaf below this page, `slot` its place in the leaf.
  uint64_t index(uint64_t page, uint64_t leaf, uint64_t slot) const {
    return page * shape.records_below(1) + leaf * shape.records_per_leaf + slot;
  }
  /// Writes the number to records 0 and 1 of leaf 0, and to record 0 of leaf 1, all of page 0.
  void fill(uint32_t worker, int64_t value) {
    CHECK(write(worker, {{index(0, 0, 0), false, value},
                         {index(0, 0, 1), false, value},
                         {index(0, 1, 0), false, value}}) == Status::ok);
  }

 private:
  static uint64_t records() {
    const ArrayShape one(1, kPayload);
    return uint64_t{2} * kArrayFanout * one.records_per_leaf;
  }
};

/// Reads records in every available way, and compares them with `wanted`.
inline std::string reads_all(WarmArray& warm, uint32_t worker,
                             const std::map<uint64_t, int64_t>& wanted) {
  std::string problem;
  std::vector<uint64_t> indexes;
  for (const auto& [index, value] : wanted) indexes.push_back(index);
  const uint32_t width = warm.array.payload_bytes();
  std::vector<std::byte> many(indexes.size() * width);
  const auto compare = [&](const char* how, uint64_t index, const std::byte* bytes) {
    int64_t value = 0;
    std::memcpy(&value, bytes, sizeof value);
    const auto found = wanted.find(index);
    const int64_t right = found == wanted.end() ? 0 : found->second;
    if (value != right && problem.empty()) {
      problem = std::string(how) + " of record " + std::to_string(index) + ": " +
                std::to_string(value) + ", wanted " + std::to_string(right);
    }
  };
  // Each way of reading has a transaction of its own, because it registers every pointer to a leaf
  // when all pages are cold.
  Status status = warm.run_alone(worker, [&](Transaction& txn) {
    std::vector<std::byte> one(width);
    for (const uint64_t index : indexes) {
      Vid seen;
      Status got = warm.array.get(txn, index, 0, width, one.data());
      if (got == Status::ok) compare("get", index, one.data());
      if (got == Status::ok) got = warm.array.get(txn, index, one.data(), seen);
      if (got != Status::ok) return got;
      compare("get with version", index, one.data());
    }
    return Status::ok;
  });
  if (status != Status::ok) return "get: " + std::string(to_string(status));
  status = warm.run_alone(
      worker, [&](Transaction& txn) { return warm.array.get_many(txn, indexes, many.data()); });
  if (status != Status::ok) return "get_many: " + std::string(to_string(status));
  for (size_t i = 0; i < indexes.size(); ++i) {
    compare("get_many", indexes[i], many.data() + i * width);
  }
  status = warm.run_alone(worker, [&](Transaction& txn) {
    ArrayCursor cursor(warm.array, txn, 0, warm.array.record_count() - 1, true);
    std::vector<std::byte> record(width);
    uint64_t index = 0;
    Status next = Status::ok;
    while ((next = cursor.next(index, record.data())) == Status::ok) {
      compare("scan", index, record.data());
    }
    return next == Status::end_of_scan ? Status::ok : next;
  });
  return status == Status::ok ? problem : "scan: " + std::string(to_string(status));
}

/// Drops all pages except the root. All reads return the same as before. A write copies up its
/// pages, and the next snapshot lets the installer drop these pages, too.
inline std::string arrays_read_the_same_without_pages(uint64_t records, uint32_t payload_bytes) {
  WarmArray warm(2, false, records, payload_bytes);
  std::map<uint64_t, int64_t> wanted;
  std::vector<WarmArray::Change> changes;
  for (uint64_t index = 0; index < records; ++index) {
    // Some leaves are never written.
    if (index % (5 * warm.shape.records_per_leaf) < warm.shape.records_per_leaf) continue;
    const auto value = static_cast<int64_t>(index * 7 + 1);
    wanted[index] = value;
    changes.push_back({index, index % 3 == 0, value});
    if (changes.size() < 1000 && index + 1 < records) continue;
    if (warm.write(index / 1000 % 2, changes) != Status::ok) return "writing";
    changes.clear();
  }
  if (!changes.empty() && warm.write(0, changes) != Status::ok) return "writing";
  const WarmArray::Pages before = warm.pages();
  InstallReport report;
  std::string problem = warm.snapshot_and_install(report);
  if (!problem.empty()) return problem;
  WarmArray::Pages after = warm.pages();
  if (after.leaves != 0 || after.interiors != 0) {
    return std::to_string(after.leaves) + " leaves and " + std::to_string(after.interiors) +
           " other pages are left";
  }
  if (report.dropped != before.leaves + before.interiors || report.busy != 0 || report.kept != 0) {
    return "the report says " + std::to_string(report.dropped) + " dropped";
  }
  if (report.oldest_left != InstallReport::kNoSnapshot) return "a pointer is said to be left";
  problem = reads_all(warm, 0, wanted);
  if (!problem.empty()) return problem;
  if (warm.write(1, {{records / 2, true, 5}, {0, false, 3}}) != Status::ok) return "writing again";
  wanted[records / 2] += 5;
  wanted[0] = 3;
  after = warm.pages();
  if (after.leaves == 0 || after.leaves > 2) {
    return std::to_string(after.leaves) + " leaves were copied up";
  }
  problem = reads_all(warm, 0, wanted);
  if (problem.empty()) problem = warm.snapshot_and_install(report);
  if (problem.empty()) problem = reads_all(warm, 1, wanted);
  if (!problem.empty()) return problem + " after the second snapshot";
  return warm.pages().leaves == 0 ? "" : "leaves are left after the second snapshot";
}

/// A page with a write after the snapshot's epoch is kept. The other pages are dropped.
inline std::string later_changes_keep_their_page() {
  DropStage stage;
  stage.fill(0, 1);
  stage.cluster.tick();
  std::string problem = stage.snapshot(stage.settled());
  if (!problem.empty()) return problem;
  if (stage.write(1, {{stage.index(0, 0, 1), false, 2}}) != Status::ok) return "writing";
  InstallReport report;
  problem = stage.install(report);
  if (!problem.empty()) return problem;
  if (stage.read(0, stage.index(0, 0, 1)) != 2) return "a later change was dropped";
  if (stage.pages().leaves != 1) return "another leaf was not dropped";
  return stage.read(0, stage.index(0, 1, 0)) == 1 ? "" : "a dropped record has changed";
}

/// A transaction finds a record. Then its page is dropped, and another transaction writes to the
/// copy of the page. The first transaction must not read the dropped page.
inline std::string found_records_are_not_read_in_dropped_pages() {
  DropStage stage;
  stage.fill(0, 1);
  Problem problem;
  Transaction& txn = *stage.cluster.worker(0).transaction;
  const uint64_t index = stage.index(0, 0, 0);
  RecordRef ref;
  int64_t value = 0;
  problem.expect(txn.begin(), Status::ok, "begin");
  problem.expect(stage.array.find_many(txn, {&index, 1}, {&ref, 1}), Status::ok, "find");
  InstallReport report;
  const std::string installed = stage.snapshot_and_install(report);
  problem.expect(installed.empty(), installed);
  stage.fill(1, 2);
  problem.expect(stage.array.get(txn, ref, 0, sizeof value, &value), Status::read_conflict,
                 "reading a record in a dropped page");
  txn.rollback(Status::read_conflict);
  problem.expect(stage.read(0, index) == 2, "the next attempt reads something else");
  return problem.text();
}

/// A transaction reads a record. Then its page is dropped, and another transaction writes to the
/// copy of the page. The commit of the first transaction must detect the write.
inline std::string what_was_read_before_a_drop_is_verified() {
  DropStage stage;
  stage.fill(0, 1);
  Problem problem;
  Transaction& txn = *stage.cluster.worker(0).transaction;
  int64_t value = 0;
  problem.expect(txn.begin(), Status::ok, "begin");
  problem.expect(stage.get(txn, stage.index(0, 0, 0), value), Status::ok, "read");
  problem.expect(stage.change(txn, {stage.index(1, 0, 0), false, 1}), Status::ok, "write");
  InstallReport report;
  const std::string installed = stage.snapshot_and_install(report);
  problem.expect(installed.empty(), installed);
  stage.fill(1, 2);
  problem.expect(txn.commit(), Status::read_conflict, "commit");
  return problem.text();
}

/// A transaction plans a blind write, or with `adds` an increment, of a record. Then the page of
/// the record is dropped. The commit must not write into the dropped page.
inline std::string nothing_is_written_into_dropped_pages(bool adds) {
  DropStage stage;
  stage.fill(0, 1);
  Problem problem;
  Transaction& txn = *stage.cluster.worker(0).transaction;
  const WarmArray::Change change{stage.index(0, 0, 0), adds, 5};
  problem.expect(txn.begin(), Status::ok, "begin");
  problem.expect(stage.change(txn, change), Status::ok, "write");
  InstallReport report;
  const std::string installed = stage.snapshot_and_install(report);
  problem.expect(installed.empty(), installed);
  problem.expect(txn.commit(), Status::write_conflict, "commit of a write to a dropped page");
  problem.expect(stage.write(0, {change}), Status::ok, "the next attempt");
  problem.expect(stage.read(1, change.index) == (adds ? 6 : 5), "the write was lost");
  return problem.text();
}

/// R43: a drop raises the newest removed version of the page above to the latest change in the
/// dropped page.
inline std::string drops_raise_the_removed_version_above() {
  DropStage stage;
  stage.fill(0, 1);
  const Vid last = stage.cluster.worker(0).transaction->last_vid();
  InstallReport report;
  const std::string problem = stage.snapshot_and_install(report);
  if (!problem.empty()) return problem;
  const PageHeader* root = stage.cluster.view().resolve(stage.storage.root.load_acquire());
  const Vid removed_vid(root->max_removed_vid.load(std::memory_order_relaxed));
  return removed_vid.version() >= last.version()
             ? ""
             : "the root's newest removed version is below the dropped page";
}

/// With a drop policy that keeps all pages, an installation changes only the snapshot words.
inline std::string pages_are_kept_when_asked() {
  DropStage stage;
  stage.fill(0, 1);
  stage.drop_policy = keep_all;
  InstallReport report;
  const std::string problem = stage.snapshot_and_install(report);
  if (!problem.empty()) return problem;
  if (report.dropped != 0 || report.kept != 2) return "kept " + std::to_string(report.kept);
  return stage.pages().leaves == 2 ? "" : "a leaf was dropped";
}

// -- Sequential storages --------------------------------------------------------------------------

/// The newest page of each list is kept, all others are dropped. Scans find all records.
inline std::string heaps_scan_the_same_without_pages() {
  WarmHeap warm(2, false);
  InstallReport report;
  uint64_t total = 0;
  for (uint32_t round = 0; round < 3; ++round) {
    for (int i = 0; i < 30; ++i) {
      for (uint32_t worker = 0; worker < warm.writers(); ++worker) {
        if (warm.append(worker, 4) != Status::ok) return "appending";
        total += 4;
      }
      if (i % 7 == 0) warm.cluster.tick();
    }
    std::string problem = warm.snapshot_and_install(report);
    uint64_t found = 0;
    if (problem.empty()) problem = warm.scan(round % 3, found);
    if (!problem.empty()) return problem;
    if (found != total) return std::to_string(found) + " of " + std::to_string(total) + " records";
    if (warm.pages() != warm.writers()) return std::to_string(warm.pages()) + " pages are left";
  }
  return report.dropped > 0 ? "" : "nothing was dropped";
}

/// Pages with appends newer than the snapshot are kept.
inline std::string later_appends_are_kept() {
  WarmHeap warm(2, false);
  for (int i = 0; i < 30; ++i) {
    if (warm.append(0, 4) != Status::ok) return "appending";
  }
  warm.cluster.tick();
  std::string problem = warm.snapshot(warm.settled());
  if (!problem.empty()) return problem;
  for (int i = 0; i < 30; ++i) {
    if (warm.append(0, 4) != Status::ok) return "appending";
  }
  InstallReport report;
  problem = warm.install(report);
  uint64_t found = 0;
  return problem.empty() ? warm.scan(1, found) : problem;
}

}  // namespace atolldb::test
