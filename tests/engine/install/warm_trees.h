// Bodies of tests that install snapshots beside the volatile pages of a Master-tree, and drop these
// pages, while transactions run. A body returns an error text, or an empty text if all is right.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/install/install.h"
#include "engine/mastertree/inspect.h"
#include "tests/engine/compose/snapshot_stage.h"
#include "tests/engine/install/warm_cluster.h"
#include "tests/engine/mastertree/oracle.h"
#include "tests/engine/snapshot/cold_storages.h"
#include "tests/engine/snapshot/lent_rules.h"
#include "tests/support/seed.h"

namespace atolldb::test {

/// A cluster with one tree. A thread beside its workers takes and installs snapshots.
class WarmTree : public FenceMapSource {
 public:
  /// `installers`: threads that install together. Without a clock, only `settle` advances the
  /// epoch, so that the pages of one worker do not depend on its speed. `lends`: the pool lends
  /// pages to the cache, and a thread returns them all the time.
  explicit WarmTree(uint32_t workers, uint32_t frames = 32, uint32_t installers = 1,
                    bool has_clock = true, bool lends = false,
                    StorageType type = StorageType::mastertree)
      : stage(type),
        cluster(1, workers, {.clock = has_clock}),
        storage(cluster.create("warm", type)),
        has_clock_(has_clock),
        cache_(stage.reader, frames, workers + installers, lends ? &cluster.pool(0) : nullptr) {
    if (lends) returner_.emplace(cluster.pool(0), cache_.cache, true);
    CHECK(installers >= 1 && installers <= kMaxInstallers);
    stage.storage.id = storage.id;
    cluster.use_snapshots(cache_.cache);
    for (uint32_t i = 0; i < installers; ++i) {
      const uint32_t slot = workers + i;
      readers_.push_back(std::make_unique<SnapshotReader>(cache_.cache, slot));
      installers_.push_back(std::make_unique<WorkerContext>(cluster.view(), cluster.pool(0), 0,
                                                            slot, cluster.metrics(0, slot),
                                                            TestClusterOptions{}.limits.write_set));
      installers_.back()->use_snapshots(*readers_.back());
    }
  }

  /// Waits until no transaction can commit in the current epoch any more. Returns that epoch.
  uint64_t settle() {
    const EpochBlock& epochs = cluster.view().control->epochs;
    const uint64_t epoch = epochs.current.load(std::memory_order_seq_cst);
    while (epochs.settled.load(std::memory_order_acquire) < epoch) {
      has_clock_ ? std::this_thread::yield() : cluster.tick();
    }
    return epoch;
  }

  /// Takes a snapshot of these changes, which are all changes since the previous one up to `epoch`.
  /// `cut`: where a second partition may begin.
  std::string take(std::vector<GleanedLog> logs, uint64_t epoch, uint64_t cut) {
    sort_gleaned(logs);
    std::vector<std::string> lows = {""};
    cut = cut_at_or_before(*installers_[0], storage, cut);
    if (cut != 0) lows.push_back(big_endian(cut));
    const auto combined = stage.round(logs, lows, epoch, this);
    return combined ? "" : combined.error().message;
  }

  std::string install(const std::function<DropVerdict(PageHeader&)>& policy) {
    InstallTask task;
    task.root = stage.storage.base_root;
    task.snapshot = stage.snapshot;
    task.epoch = stage.epoch;
    task.drop_policy = policy;
    task.cancelled = cancelled;
    task.next_bounds = next_bounds;
    report = {};
    const Status status = installers_.size() == 1
                              ? install_snapshot(*installers_[0], storage, task, report)
                              : install_parts(task);
    if (status != Status::ok) return "install ended with " + std::string(to_string(status));
    if (is_complete(report) && !skips_drain) {
      const Status drained = drain_delta(*installers_[0], storage, task, report);
      if (drained != Status::ok) return "drain ended with " + std::string(to_string(drained));
    }
    totals.add(report);
    return {};
  }

  /// Returns a slice, at or before `slice`, where partitions of a snapshot may begin.
  uint64_t cut(uint64_t slice) { return cut_at_or_before(*installers_[0], storage, slice); }

  /// Installs the parts between `bounds` with all installers at the same time, then the seams.
  /// Without `bounds` the parts are those of `divide_storage`.
  Status install_parts(InstallTask task) {
    std::vector<uint64_t> begins = bounds;
    if (begins.empty()) {
      installers_[0]->enter();
      begins = divide_storage(*installers_[0], storage, 8, 1);
      installers_[0]->leave();
    }
    std::vector<SliceRange> parts(begins.size() + 1);
    for (size_t i = 0; i < begins.size(); ++i) {
      parts[i].high = parts[i + 1].low = begins[i];
      parts[i].high_is_end = false;
    }
    std::atomic<size_t> next{0};
    std::vector<InstallReport> reports(parts.size());
    std::vector<Status> ends(parts.size(), Status::ok);
    std::vector<std::thread> threads;
    for (const auto& installer : installers_) {
      threads.emplace_back([&, context = installer.get()] {
        for (size_t i = 0; (i = next.fetch_add(1, std::memory_order_relaxed)) < parts.size();) {
          InstallTask part = task;
          part.part = parts[i];
          ends[i] = install_snapshot(*context, storage, part, reports[i]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < parts.size(); ++i) {
      if (ends[i] != Status::ok) return ends[i];
      report.add(reports[i]);
    }
    InstallReport seams;
    const Status status =
        skips_seams ? Status::ok
                    : install_seams(*installers_[0], storage, task, begins, report, seams);
    report.add(seams);
    return status;
  }

  /// R38: closes the files that no pointer leads to any more. First waits for the end of all
  /// transactions that began before this call.
  std::string close_unneeded() {
    if (report.oldest_left != InstallReport::kNoSnapshot) return {};
    ++closings;
    const EpochBlock& epochs = cluster.view().control->epochs;
    const uint64_t epoch = epochs.current.load(std::memory_order_seq_cst);
    while (epochs.oldest_begin.load(std::memory_order_acquire) <= epoch) {
      std::this_thread::yield();
    }
    const auto closed = stage.close_unneeded();
    return closed ? "" : closed.error().message;
  }

  Status fence_map_of(uint32_t, std::span<const std::byte> prefix, const SliceRange& range,
                      FenceMap& fence_map) override {
    return collect_fence_map(*installers_[0], storage, prefix, range, fence_map);
  }

  Result<void> capture_pages_of(uint32_t, const CaptureTask& task,
                                std::vector<CapturedPage>& captured) override {
    if (!captures) return {};
    CaptureTask any = task;
    any.least_bytes = 0;
    return capture_pages(*installers_[0], storage, any, captured);
  }

  SnapshotCache& cache() { return cache_.cache; }
  /// Returns the number of lent pages that were returned.
  uint64_t returned() const { return returner_ ? returner_->returned() : 0; }

  /// Checks that the tree is sound, and counts its volatile pages.
  std::string check(TreeStatistics& statistics) {
    return check_tree(cluster.view(), storage, statistics);
  }

  SnapshotStage stage;
  TestCluster cluster;
  StorageControl& storage;
  InstallReport report;  // report of the last installation
  InstallReport totals;
  uint64_t closings = 0;  // number of calls that closed files
  bool captures = false;  // snapshots capture volatile pages
  /// Returns true if the installer shall stop. Null: the installer never stops.
  std::function<bool()> cancelled;
  std::vector<uint64_t> bounds;       // begins of the parts except the first
  std::vector<uint64_t> next_bounds;  // InstallTask::next_bounds
  bool skips_seams = false;
  bool skips_drain = false;  // leaves the records of the delta tree that the snapshot has

 private:
  const bool has_clock_;
  TestCache cache_;
  std::vector<std::unique_ptr<SnapshotReader>> readers_;
  std::vector<std::unique_ptr<WorkerContext>> installers_;
  std::optional<LentPagesReturner> returner_;
};

/// Random transactions of several workers. In each round a snapshot of all earlier rounds is
/// composed and installed, and volatile pages are dropped, while the transactions run. In every
/// fourth round the transactions only read, so that pages are certainly dropped under readers.
/// `has_delta`: in most rounds, writes to cold records go to the delta tree. `lends`: as for
/// WarmTree.
inline std::string warm_tree_oracle(KeyShape shape, uint32_t workers, uint64_t rounds,
                                    uint64_t transactions, uint32_t installers = 1,
                                    bool has_delta = false, bool lends = false) {
  OracleOptions options{.shape = shape, .transactions = transactions, .seed = seed()};
  options.workers = workers;
  options.keys_per_worker = 600;
  std::vector<OracleWorker> oracles;
  for (uint32_t i = 0; i < workers; ++i) oracles.emplace_back(options, i);
  std::mt19937_64 random(seed());
  WarmTree warm(workers, 32, installers, true, lends, storage_type_of(shape));
  OracleWorker::Model before;
  std::vector<GleanedLog> logs;
  uint64_t epoch = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    std::string unsound;
    const uint64_t cut = random();
    const bool is_calm = round % 4 == 3;
    const bool drops = random() % 4 != 0 || is_calm;
    const OracleMix mix = is_calm ? OracleMix::reads : OracleMix::reads_and_writes;
    const uint64_t dropped_before = warm.totals.dropped;
    warm.storage.uses_delta.store(has_delta && random() % 8 != 0, std::memory_order_relaxed);
    warm.stage.choose_victims(random());
    warm.captures = is_calm || random() % 4 != 0;
    std::thread gleaner([&] {
      if (epoch == 0) return;
      unsound = warm.take(std::move(logs), epoch, shape == KeyShape::integers ? cut % 2000 : cut);
      if (unsound.empty()) unsound = warm.install(drops ? drop_all : keep_all);
      if (unsound.empty()) unsound = warm.close_unneeded();
    });
    std::vector<std::string> problems(workers);
    warm.cluster.run_threads([&](uint32_t index, TestWorker& worker) {
      problems[index] = oracles[index].run(worker, MasterTree(warm.storage), mix);
    });
    gleaner.join();
    if (!unsound.empty()) return unsound + " in round " + std::to_string(round);
    if (is_calm && !has_delta && warm.totals.dropped == dropped_before) {
      return "no page was dropped in round " + std::to_string(round) + " of readers only";
    }
    OracleWorker::Model now;
    for (uint32_t i = 0; i < workers; ++i) {
      if (!problems[i].empty()) return problems[i] + " in round " + std::to_string(round);
      now.insert(oracles[i].model().begin(), oracles[i].model().end());
    }
    TreeStatistics statistics;
    unsound = warm.check(statistics);
    if (!unsound.empty()) return unsound + " after round " + std::to_string(round);
    epoch = warm.settle();
    logs = changes_between(before, now, epoch);
    before = std::move(now);
  }
  if (lends && warm.returned() == 0) return "no lent page was returned";
  if (warm.closings < rounds / 4) return "old snapshots are needed most of the time";
  // Pages with layers are not captured.
  if (!has_delta && warm.stage.captured_pages == 0 && shape == KeyShape::integers)
    return "no page was captured";
  return {};
}

/// Without running transactions, the installer drops all pages with living records, except the
/// root. The tree reads the same as before, and a write copies up only its own path.
inline std::string all_pages_are_dropped(KeyShape shape, bool captures = false,
                                         uint32_t installers = 1) {
  OracleOptions options{.shape = shape, .transactions = rounds(3000, 3000, 1000), .seed = seed()};
  options.keys_per_worker = 3000;
  OracleWorker oracle(options, 0);
  WarmTree warm(1, 32, installers, true, false, storage_type_of(shape));
  warm.captures = captures;
  for (int round = 0; round < 3; ++round) {
    const OracleWorker::Model before = oracle.model();
    std::string problem = oracle.run(warm.cluster.worker(0), MasterTree(warm.storage));
    warm.cluster.worker(0).context->leave();
    if (!problem.empty()) return problem;
    const uint64_t epoch = warm.settle();
    problem = warm.take(changes_between(before, oracle.model(), epoch), epoch, 0);
    if (problem.empty()) problem = warm.install(drop_all);
    if (!problem.empty()) return problem;
    if (warm.report.busy != 0) return "a lock was held";
    TreeStatistics statistics;
    problem = warm.check(statistics);
    if (!problem.empty()) return problem;
    const uint64_t left = statistics.border_pages + statistics.interior_pages;
    if (warm.report.dropped == 0) return "no page was dropped";
    // The installer may keep a layer without living records, and then also the page that leads to
    // it.
    if (shape == KeyShape::integers && left > 1 && statistics.records != 0) {
      return std::to_string(left) + " volatile pages are left with " +
             std::to_string(statistics.records) + " records, " +
             std::to_string(warm.report.dropped) + " were dropped, " +
             std::to_string(warm.report.unmatched) + " have no snapshot page";
    }
    if (warm.report.oldest_left != InstallReport::kNoSnapshot) return "an older snapshot is needed";
  }
  if (captures && shape == KeyShape::integers && warm.stage.captured_pages == 0) {
    return "no page was captured";
  }
  // The installers of further snapshots reclaim and drop the rest (R70, R71), although nothing is
  // committed. The third snapshot has pages of the ranges that the first two have merged.
  for (int round = 0; round < 4; ++round) {
    std::string problem = warm.take({}, warm.settle(), 0);
    if (problem.empty()) problem = warm.install(drop_all);
    if (!problem.empty()) return problem;
  }
  TreeStatistics statistics;
  const std::string problem = warm.check(statistics);
  if (!problem.empty()) return problem;
  constexpr uint64_t kFewPages = 3;  // the root, and pages that had a volatile neighbour
  if (statistics.pages() > kFewPages) {
    return std::to_string(statistics.pages()) + " volatile pages of an idle tree are left";
  }
  return {};
}

}  // namespace atolldb::test
