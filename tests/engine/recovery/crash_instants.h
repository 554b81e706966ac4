// Power cuts at named instants. A cluster with threads for workers, loggers and the clock loses its
// power in the middle of a commit or of a logger's work. The body then checks what a restart finds.
// Needs the engine with sync points (`ATOLL_MUTANTS`).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/format/log_block.h"
#include "engine/log/epoch_logger.h"
#include "engine/recovery/log_start.h"
#include "shared/file/forwarding_file_system.h"
#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/log/written_log.h"
#include "tests/engine/transaction/anomaly_stage.h"
#include "tests/support/power_cut_file_system.h"

namespace atolldb::test {

enum class Instant : uint32_t {
  after_locks,     // a commit holds its locks
  before_publish,  // a commit has its VID, and has not yet written anything
  after_publish,   // a commit has published its log records, and not cleared its in-commit epoch
  between_epochs,  // a logger waits for a commit that is under way
  after_write,     // a logger has written a batch, and not yet synced it
  after_marker,    // a logger has written a marker, and not yet synced it
  after_sync,      // a logger has synced the marker, and not yet reported it
  before_durable,  // a logger has reported the epoch, which is not yet published as durable
  count_,
};
inline const char* to_string(Instant instant) {
  constexpr const char* kNames[] = {"after_locks",    "before_publish", "after_publish",
                                    "between_epochs", "after_write",    "after_marker",
                                    "after_sync",     "before_durable"};
  return kNames[static_cast<uint32_t>(instant)];
}

/// Reports writes and syncs of log files to an observer.
class ObservedFileSystem : public ForwardingFileSystem {
 public:
  using Observer = std::function<void(Instant)>;
  ObservedFileSystem(FileSystem& below, Observer observer)
      : ForwardingFileSystem(below), observer_(std::move(observer)) {}

  bool skips_sync = false;  // sync returns without doing anything

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override {
    return observe(below().create(path, bytes));
  }
  Result<std::unique_ptr<File>> open(const std::string& path) override {
    return observe(below().open(path));
  }

 private:
  class ObservedFile : public ForwardingFile {
   public:
    ObservedFile(const ObservedFileSystem& owner, std::unique_ptr<File> below)
        : ForwardingFile(std::move(below)), owner_(owner) {}
    Result<void> write(uint64_t offset,
                       std::span<const std::span<const std::byte>> slices) override {
      LogBlockHeader last;
      const std::span<const std::byte> tail = slices.back().last(kLogBlockBytes);
      std::memcpy(&last, tail.data(), sizeof(last));
      Result<void> written = below().write(offset, slices);
      owner_.observer_(last.type == LogBlockType::marker ? Instant::after_marker
                                                         : Instant::after_write);
      return written;
    }
    Result<void> sync() override {
      Result<void> synced = owner_.skips_sync ? Result<void>() : below().sync();
      owner_.observer_(Instant::after_sync);
      return synced;
    }

   private:
    const ObservedFileSystem& owner_;
  };

  Result<std::unique_ptr<File>> observe(Result<std::unique_ptr<File>> file) {
    if (!file) return file;
    return std::make_unique<ObservedFile>(*this, *std::move(file));
  }

  const Observer observer_;
};

class CrashAtInstant {
 public:
  static constexpr uint32_t kNodes = 2;

  /// The power is lost when `instant` is passed for the n-th time; the seed determines n.
  CrashAtInstant(Instant instant, uint64_t seed)
      : instant_(instant),
        random_(seed),
        passes_left_(static_cast<int64_t>(random_() % (instant < Instant::after_write ? 300 : 30))),
        files_(disk_, [this](Instant reached) { pass(reached); }),
        cluster_(kNodes, 1, options()),
        table_(Kind::tree, cluster_.create("tree", StorageType::mastertree, 8)) {}

  void skip_syncs() { files_.skips_sync = true; }

  /// Runs until the crash. Returns the first error of a restart, or an empty text.
  std::string run() {
    begin();
    {
      const AtSyncPoints at_points([this](SyncPoint point) { at_sync_point(point); });
      std::vector<std::jthread> threads;
      for (uint32_t node = 0; node < kNodes; ++node) {
        const uint64_t seed = random_();
        threads.emplace_back([this, node, seed] { commit_all_the_time(node, seed); });
        threads.emplace_back([this, node] { close_all_the_time(node); });
      }
      // Commits and epochs race. The clock advances once per few commits.
      while (!has_crashed_.load(std::memory_order_acquire)) {
        const uint64_t before = commits_.load(std::memory_order_relaxed);
        while (!has_crashed_.load(std::memory_order_acquire) &&
               commits_.load(std::memory_order_relaxed) < before + 5) {
          std::this_thread::yield();
        }
        epochs().current.fetch_add(1, std::memory_order_seq_cst);
      }
    }
    return check();
  }

  uint64_t acknowledged() const { return acknowledged_; }

 private:
  struct Committed {
    uint64_t epoch;
    std::vector<uint64_t> keys;
  };

  static TestClusterOptions options() {
    TestClusterOptions options;
    options.clock = false;
    options.limits.log_buffer = uint64_t{1} << 20;
    options.limits.is_logged = true;
    return options;
  }

  EpochBlock& epochs() { return cluster_.view().control->epochs; }

  /// Starts an incarnation, as a coordinator and its loggers do (engine/recovery/log_start.h).
  void begin() {
    auto start = examine(disk_, "/data");
    CHECK(start.has_value());
    CHECK(store_cut(disk_, "/data", *start).has_value());
    create_storages(disk_, start->savepoint.cluster_uuid);
    std::vector<LoggerPlace> places;
    const TransactionLimits limits = options().limits;
    for (uint16_t node = 0; node < kNodes; ++node) {
      places.push_back({node, 0, "/data"});
      auto writer =
          LogWriter::create(files_, {"/data", node, 0, start->incarnation, start->start_epoch,
                                     start->savepoint.cluster_uuid, 16 * kLogBlockBytes});
      CHECK(writer.has_value());
      const auto ring = WorkerLogRing::at(cluster_.worker(node).local.get() + limits.log_offset(),
                                          limits.log_buffer);
      loggers_.push_back(std::make_unique<EpochLogger>(
          cluster_.view(), *std::move(writer),
          std::vector<EpochLogger::Source>{{&cluster_.view().shared[node]->slot(0), ring}}));
      closed_[node].store(start->start_epoch - 1, std::memory_order_relaxed);
    }
    CHECK(begin_incarnation(disk_, "/data", *start, places).has_value());
    epochs().current.store(start->start_epoch, std::memory_order_seq_cst);
    epochs().durable.store(start->start_epoch - 1, std::memory_order_release);
    start_epoch_ = start->start_epoch;
    runs_.store(true, std::memory_order_release);
  }

  void at_sync_point(SyncPoint point) {
    if (point == SyncPoint::locked_writes) pass(Instant::after_locks);
    if (point == SyncPoint::verified) pass(Instant::before_publish);
    if (point == SyncPoint::applied) pass(Instant::after_publish);
    if (point == SyncPoint::awaiting_closed) pass(Instant::between_epochs);
    // Yields at these two points, so that other threads run in the middle of a commit.
    if (point == SyncPoint::verified || point == SyncPoint::applied) std::this_thread::yield();
  }

  /// The first thread that reaches the instant cuts the power for all threads. A restart finds the
  /// state of this moment.
  void pass(Instant reached) {
    if (reached != instant_ || !runs_.load(std::memory_order_acquire)) return;
    // The first epochs are skipped, so that there is durable data to lose.
    if (epochs().durable.load(std::memory_order_acquire) < start_epoch_ + 2) return;
    if (passes_left_.fetch_sub(1, std::memory_order_acq_rel) != 0) return;
    // Loaded before the cut, so at least the epochs up to this one were promised as durable.
    promised_ = epochs().durable.load(std::memory_order_acquire);
    image_ = disk_.cut(static_cast<uint64_t>(promised_) * 31 + static_cast<uint64_t>(reached));
    has_crashed_.store(true, std::memory_order_release);
    // Ends the wait of a worker for log space: its logger no longer runs.
    cluster_.view().control->state.store(static_cast<uint32_t>(ClusterState::stopped),
                                         std::memory_order_release);
  }

  void commit_all_the_time(uint32_t node, uint64_t seed) {
    std::mt19937_64 random(seed);
    TestWorker& worker = cluster_.worker(node);
    // Workers of both nodes commit until the crash, so that both nodes pass the instant.
    for (uint64_t i = 1; !has_crashed_.load(std::memory_order_acquire); ++i) {
      const uint64_t number = (uint64_t{node} + 1) << 32 | i;
      std::set<uint64_t> keys;
      while (keys.size() < 1 + i % 3) keys.insert(random() % 60);
      const Status status = worker.run([&](Transaction& txn) {
        Status put = Status::ok;
        for (const uint64_t key : keys) {
          if (put == Status::ok) put = table_.put(txn, key, number);
        }
        return put;
      });
      if (status == Status::cluster_failed) break;  // the log has nothing of the transaction
      CHECK(status == Status::ok);
      const std::lock_guard lock(mutex_);
      committed_[number] = {worker.transaction->commit_epoch(), {keys.begin(), keys.end()}};
      commits_.fetch_add(1, std::memory_order_relaxed);
    }
    worker.context->leave();
  }

  void close_all_the_time(uint32_t node) {
    while (!has_crashed_.load(std::memory_order_acquire)) {
      const uint64_t epoch = epochs().current.load(std::memory_order_seq_cst) - 1;
      if (epoch <= loggers_[node]->durable_epoch()) {
        std::this_thread::yield();
        continue;
      }
      CHECK(loggers_[node]->close(epoch).has_value());
      closed_[node].store(epoch, std::memory_order_release);
      pass(Instant::before_durable);
      publish_durable();
    }
  }

  /// Publishes the minimum over all loggers, as the coordinator does. Thread: the logger that
  /// closed last.
  void publish_durable() {
    const std::lock_guard lock(durable_mutex_);
    uint64_t least = closed_[0].load(std::memory_order_acquire);
    for (const auto& closed : closed_) {
      least = std::min(least, closed.load(std::memory_order_acquire));
    }
    if (least > epochs().durable.load(std::memory_order_relaxed)) {
      epochs().durable.store(least, std::memory_order_release);
    }
  }

  std::string check() {
    auto start = examine(*image_, "/data");
    if (!start) return start.error().message;
    if (start->last.size() != 1) return "the incarnation is not the one to be cut";
    const uint64_t cut = start->last[0].cut_epoch;
    if (cut < promised_) return fmt::format("cut at {}, but {} was durable", cut, promised_);
    std::map<uint64_t, std::set<uint64_t>> found;
    for (const LogScan& log : start->last[0].logs) {
      auto scan = scan_log(*image_, log.stream, [&](const LogBlock& block, const auto&, uint64_t) {
        if (block.header.type != LogBlockType::records || block.header.epoch > cut) return;
        for_each_record(block, [&](const LogRecord& record) {
          if (record.type == LogType::filler) return;
          uint64_t key = 0;
          uint64_t number = 0;
          std::memcpy(&key, record.key(), sizeof(key));
          std::memcpy(&number, record.payload(), sizeof(number));
          found[number].insert(__builtin_bswap64(key));
        });
      });
      if (!scan) return scan.error().message;
    }
    for (const auto& [number, transaction] : committed_) {
      const bool counts = transaction.epoch <= cut;
      acknowledged_ += transaction.epoch <= promised_ ? 1 : 0;
      const size_t expected = counts ? transaction.keys.size() : 0;
      const auto records = found.find(number);
      const size_t has = records == found.end() ? 0 : records->second.size();
      if (has != expected) {
        return fmt::format("transaction {:x} of epoch {}: {} of {} records; cut at {}, durable {}",
                           number, transaction.epoch, has, expected, cut, promised_);
      }
      if (records != found.end()) found.erase(records);
    }
    return found.empty() ? "" : "the log has a transaction that no worker committed";
  }

  const Instant instant_;
  std::mt19937_64 random_;
  std::atomic<int64_t> passes_left_;
  std::atomic<bool> runs_{false};
  std::atomic<bool> has_crashed_{false};
  std::atomic<uint64_t> commits_{0};
  uint64_t start_epoch_ = 0;
  uint64_t promised_ = 0;                      // written by the thread that cuts the power
  std::unique_ptr<PowerCutFileSystem> image_;  // written by the thread that cuts the power
  uint64_t acknowledged_ = 0;

  PowerCutFileSystem disk_;
  ObservedFileSystem files_;
  TestCluster cluster_;
  Table table_;
  std::vector<std::unique_ptr<EpochLogger>> loggers_;
  std::atomic<uint64_t> closed_[kNodes] = {};
  std::mutex durable_mutex_;
  std::mutex mutex_;
  std::map<uint64_t, Committed> committed_;  // guarded by mutex_
};

/// Runs `rounds` rounds with seeds from `seed` on. Returns the first error with its seed, or an
/// empty text.
inline std::string crash_at(Instant instant, uint64_t seed, uint64_t rounds,
                            bool skips_sync = false) {
  uint64_t acknowledged = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    CrashAtInstant crash(instant, seed + round);
    if (skips_sync) crash.skip_syncs();
    const std::string problem = crash.run();
    if (!problem.empty()) {
      return fmt::format("{}, ATOLL_SEED={}: {}", to_string(instant), seed + round, problem);
    }
    acknowledged += crash.acknowledged();
  }
  return acknowledged < rounds ? "next to nothing was acknowledged: this has shown nothing" : "";
}

}  // namespace atolldb::test
