// Epoch loggers and worker logs: when an epoch is closed, the log holds exactly what was committed.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "engine/format/log_block.h"
#include "engine/log/log_scan.h"
#include "engine/sequential/sequential.h"
#include "tests/engine/log/log_blocks.h"
#include "tests/engine/log/logged_cluster.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// Epoch and number of records of a committed transaction. A ledger has the commits of one worker,
/// by the token of the transaction.
struct Committed {
  uint64_t epoch = 0;
  uint64_t records = 0;
};
using Ledger = std::map<uint64_t, Committed>;

/// Transactions of one worker. Each puts its token into a few records of random sizes.
class Load {
 public:
  Load(TestWorker& worker, StorageControl& tree, StorageControl& list, uint64_t first_token,
       uint64_t seed)
      : worker_(worker), tree_(tree), list_(list), token_(first_token), random_(seed) {}

  /// Runs one attempt. `before_commit` runs after all operations and before the commit.
  template <typename Before>
  Status attempt(Before&& before_commit) {
    Transaction& txn = *worker_.transaction;
    ++token_;
    const Status begun = txn.begin();
    if (begun != Status::ok) return begun;
    const uint64_t puts = random_() % 30;
    const uint64_t appends = random_() % 3;
    std::set<uint64_t> keys;
    Status status = Status::ok;
    for (uint64_t i = 0; i < puts && status == Status::ok; ++i) {
      const uint64_t key = random_() % 1000;
      keys.insert(key);
      status = MasterTree(tree_).upsert(txn, ordered_key(key), payload());
    }
    for (uint64_t i = 0; i < appends && status == Status::ok; ++i) {
      status = Sequential(list_).append(txn, payload());
    }
    before_commit();
    if (status == Status::ok && random_() % 8 == 0) status = Status::user_abort;
    if (status == Status::ok) {
      status = txn.commit();
    } else {
      txn.rollback(status);
    }
    if (status == Status::ok && keys.size() + appends != 0) {
      ledger_[token_] = {txn.commit_epoch(), keys.size() + appends};
    }
    return status;
  }
  const Ledger& ledger() const { return ledger_; }

 private:
  std::vector<std::byte> payload() {
    // Small payloads fill blocks to the last byte. Large ones leave much of a block free.
    std::vector<std::byte> bytes(8 + random_() % (random_() % 4 == 0 ? 2000 : 100));
    std::memcpy(bytes.data(), &token_, sizeof(token_));
    return bytes;
  }

  TestWorker& worker_;
  StorageControl& tree_;
  StorageControl& list_;
  uint64_t token_;
  std::mt19937_64 random_;
  Ledger ledger_;
};

uint64_t token_of(const LoggedRecord& record) {
  uint64_t token = 0;
  std::memcpy(&token, record.payload.data(), sizeof(token));
  return token;
}

void expect_exactly(LoggedCluster& cluster, const Ledger& committed) {
  const LogContent content = read_logs(cluster.files());
  EXPECT_EQ(content.defect, "");
  Ledger logged;
  std::map<uint64_t, std::set<uint16_t>> appends;
  for (const LoggedRecord& record : content.records) {
    Committed& entry = logged[token_of(record)];
    entry.epoch = record.block_epoch;
    ++entry.records;
    if (record.type == LogType::append) {
      EXPECT_TRUE(appends[token_of(record)].insert(record.payload_offset).second)
          << "two appends of one number";
    }
  }
  EXPECT_EQ(logged.size(), committed.size());
  for (const auto& [token, entry] : committed) {
    ASSERT_TRUE(logged.contains(token)) << "transaction " << token << " is not in the log";
    EXPECT_EQ(logged[token].epoch, entry.epoch);
    EXPECT_EQ(logged[token].records, entry.records) << "a part of transaction " << token;
  }
}

TEST(EpochLogger, TheLogHoldsWhatWasCommittedWhateverTheEpochsDo) {
  const uint64_t first_seed = seed();
  std::mt19937_64 random(first_seed);
  // The log buffer is small, so that it is filled and emptied many times.
  LoggedCluster cluster(1, 1, logged_options(10 * kLogBlockBytes));
  StorageControl& tree = cluster.cluster().create("tree", StorageType::mastertree, 0);
  StorageControl& list = cluster.cluster().create("list", StorageType::sequential, 0);
  Load load(cluster.worker(0), tree, list, 0, first_seed);
  const auto let_time_pass = [&] {
    const uint64_t choice = random() % 4;
    if (choice == 0) cluster.tick();
    if (choice == 1 && cluster.epoch() - 1 > cluster.logger(0).durable_epoch()) {
      cluster.close(cluster.epoch() - 1);
    }
  };
  const WorkerLogControl& log = cluster.log_control(0);
  uint64_t full = 0;
  for (int round = 0; round < 4000; ++round) {
    let_time_pass();
    // Closes an epoch if the buffer is nearly full. Otherwise `begin` would wait for the logger,
    // which runs on this thread.
    const uint64_t committed = log.committed.load(std::memory_order_relaxed) / kLogBlockBytes;
    if (committed - log.durable.load(std::memory_order_relaxed) >= 6) {
      cluster.tick();
      cluster.close(cluster.epoch() - 1);
    }
    const Status status = load.attempt(let_time_pass);
    if (status != Status::log_buffer_full) continue;
    ++full;
    cluster.tick();
    cluster.close(cluster.epoch() - 1);
  }
  EXPECT_GT(full, 10U) << "the buffer was hardly ever full";
  cluster.tick();
  cluster.close(cluster.epoch() - 1);
  EXPECT_GT(load.ledger().size(), 1000U);
  expect_exactly(cluster, load.ledger());
}

TEST(EpochLogger, WorkersAndLoggersRunSideBySide) {
  const uint64_t first_seed = seed();
  constexpr uint32_t kNodes = 2;
  constexpr uint32_t kWorkers = 2;
  constexpr size_t kCommits = 2500;  // commits of each worker that have at least one record
  LoggedCluster cluster(kNodes, kWorkers, logged_options(uint64_t{128} << 10));
  StorageControl& tree = cluster.cluster().create("tree", StorageType::mastertree, 0);
  StorageControl& list = cluster.cluster().create("list", StorageType::sequential, 0);
  std::vector<std::unique_ptr<Load>> loads;
  for (uint32_t i = 0; i < kNodes * kWorkers; ++i) {
    loads.push_back(std::make_unique<Load>(cluster.worker(i), tree, list,
                                           uint64_t{i + 1} * 1'000'000, first_seed + i));
  }
  std::atomic<bool> done{false};
  std::thread time([&] {
    while (!done.load(std::memory_order_acquire)) {
      cluster.cluster().tick();
      cluster.close(cluster.epoch() - 1);
    }
  });
  cluster.cluster().run_threads([&](uint32_t index, TestWorker&) {
    // Conflicts, full buffers and a full pool are normal outcomes. They leave nothing in the log. A
    // thread that is not scheduled holds an old epoch, and others then find the pool full for a
    // while. So the test counts commits, not attempts.
    while (loads[index]->ledger().size() < kCommits) {
      if (loads[index]->attempt([] {}) != Status::ok) std::this_thread::yield();
    }
  });
  done.store(true, std::memory_order_release);
  time.join();
  cluster.tick();
  cluster.close(cluster.epoch() - 1);
  Ledger all;
  for (const auto& load : loads) all.insert(load->ledger().begin(), load->ledger().end());
  expect_exactly(cluster, all);
}

TEST(EpochLogger, ATransactionThatFillsTheBufferWaitsAndFits) {
  LoggedCluster cluster(1, 1, logged_options(8 * kLogBlockBytes));
  StorageControl& tree = cluster.cluster().create("tree", StorageType::mastertree, 0);
  Transaction& txn = *cluster.worker(0).transaction;
  const std::vector<std::byte> payload(2000);
  const auto put = [&](uint64_t count) {
    Status status = txn.begin();
    for (uint64_t i = 0; i < count && status == Status::ok; ++i) {
      status = MasterTree(tree).upsert(txn, ordered_key(i), payload);
    }
    if (status == Status::ok) return txn.commit();
    txn.rollback(status);
    return status;
  };
  // A block holds one such record. One of the eight blocks is shared with the previous transaction,
  // and one is spare.
  EXPECT_EQ(put(3), Status::ok);
  EXPECT_EQ(put(5), Status::log_buffer_full);
  std::thread logger([&] {
    while (cluster.log_control(0).waits.load(std::memory_order_acquire) == 0) {
      std::this_thread::yield();
    }
    cluster.tick();
    cluster.close(cluster.epoch() - 1);
  });
  EXPECT_EQ(put(6), Status::ok) << "an empty buffer holds it";
  logger.join();
  cluster.tick();
  cluster.close(cluster.epoch() - 1);
  EXPECT_EQ(put(8), Status::transaction_too_large);
  cluster.tick();
  EXPECT_EQ(put(6), Status::ok) << "one that is too large leaves the buffer as it was";
  EXPECT_EQ(cluster.cluster().metrics(0, 0).log_stalls.get(), 1U);
}

TEST(EpochLogger, AWaitForRoomEndsWithItsDeadlineAndWithTheCluster) {
  LoggedCluster cluster(1, 1, logged_options(8 * kLogBlockBytes));
  StorageControl& tree = cluster.cluster().create("tree", StorageType::mastertree, 0);
  Transaction& txn = *cluster.worker(0).transaction;
  const std::vector<std::byte> payload(2000);
  // Fills seven of the eight blocks, with one record per block. Less than a quarter of the blocks
  // is then free, and no logger writes and frees the others.
  for (uint64_t i = 0; i < 7; ++i) {
    ASSERT_EQ(txn.begin(), Status::ok);
    ASSERT_EQ(MasterTree(tree).upsert(txn, ordered_key(i), payload), Status::ok);
    ASSERT_EQ(txn.commit(), Status::ok);
  }
  const WorkerLogControl& log = cluster.log_control(0);
  const auto when_it_waits = [&](auto&& action) {
    return std::thread([&log, action] {
      while (log.waits.load(std::memory_order_acquire) == 0) std::this_thread::yield();
      action();
    });
  };
  std::thread time = when_it_waits([&] { cluster.tick(); });
  EXPECT_EQ(txn.begin(cluster.epoch() + 1), Status::deadline_exceeded);
  time.join();
  std::thread end = when_it_waits([&] {
    cluster.cluster().view().control->state.store(static_cast<uint32_t>(ClusterState::stopped),
                                                  std::memory_order_release);
  });
  EXPECT_EQ(txn.begin(), Status::cluster_failed);
  end.join();
}

/// Returns the defect that LogReader finds in the log of node 0, or an empty text.
std::string defect_of_log(LoggedCluster& cluster) {
  LogStream stream;
  stream.directory = "/data";
  stream.incarnation = 1;
  const auto scan = scan_log(cluster.files(), stream);
  if (!scan) return scan.error().message;
  return scan->end.is_defect ? scan->end.reason : "";
}

TEST(EpochLogger, TheReaderAcceptsWhateverATransactionDoesToItsRecords) {
  const uint64_t first_seed = seed();
  std::mt19937_64 random(first_seed);
  LoggedCluster cluster(1, 1, logged_options());
  StorageControl& storage = cluster.cluster().create("tree", StorageType::mastertree, 16);
  const MasterTree tree(storage);
  const std::vector<std::byte> payload(16);
  const uint64_t one = 1;
  for (int round = 0; round < 500; ++round) {
    const Status status = cluster.worker(0).run([&](Transaction& txn) {
      for (uint64_t i = random() % 20; i != 0; --i) {
        const auto key = ordered_key(random() % 4);
        Status done = Status::ok;
        switch (random() % 5) {
          case 0:
            done = tree.insert(txn, key, payload);
            break;
          case 1:
            done = tree.upsert(txn, key, std::span(payload).first(random() % 2 == 0 ? 16 : 9));
            break;
          case 2:
            done = tree.update_range(txn, key, static_cast<uint32_t>(random() % 8),
                                     std::span(payload).first(1));
            break;
          case 3:
            done = tree.increment(txn, key, 0, IncrementType::u64, &one);
            break;
          default:
            done = tree.erase(txn, key);
        }
        if (is_abort(done)) return done;
      }
      return Status::ok;
    });
    ASSERT_EQ(status, Status::ok);
    if (random() % 8 != 0) continue;
    cluster.tick();
    cluster.close(cluster.epoch() - 1);
  }
  EXPECT_EQ(defect_of_log(cluster), "");
}

TEST(EpochLogger, AProcedureThatSwallowsAFullSetCannotCommit) {
  TestClusterOptions options = logged_options();
  options.limits.write_set = 4;
  LoggedCluster cluster(1, 1, options);
  const MasterTree tree(cluster.cluster().create("tree", StorageType::mastertree, 8));
  const Sequential list(cluster.cluster().create("list", StorageType::sequential, 8));
  const std::vector<std::byte> payload(8);
  const auto full_writes = [&](Transaction& txn) {
    Status status = Status::ok;
    for (uint64_t i = 0; status == Status::ok; ++i) {
      status = tree.upsert(txn, ordered_key(i), payload);
    }
    return Status::ok;
  };
  const auto full_appends = [&](Transaction& txn) {
    while (list.append(txn, payload) == Status::ok) {
    }
    return Status::ok;
  };
  EXPECT_EQ(cluster.worker(0).run(full_writes), Status::transaction_too_large);
  EXPECT_EQ(cluster.worker(0).run(full_appends), Status::transaction_too_large);
  EXPECT_EQ(cluster.worker(0).run(
                [&](Transaction& txn) { return tree.upsert(txn, ordered_key(1), payload); }),
            Status::ok);
  cluster.tick();
  cluster.close(cluster.epoch() - 1);
  EXPECT_EQ(defect_of_log(cluster), "");
}

/// A worker log of kBlocks blocks, without a logger.
class WorkerLogTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBlocks = 6;

  LogRecord* put(uint32_t length) {
    LogRecord* record = log.allocate(length);
    if (record != nullptr) record->length = length;
    return record;
  }
  bool is_sealed(uint64_t number) const {
    const LogBlock& block = ring.block(number);
    return block.header.crc == payload_crc_of(block);
  }
  uint64_t committed() { return log.control().committed.load(std::memory_order_relaxed); }

  BlockBuffer memory{kBlocks + 1};
  WorkerLogRing ring =
      WorkerLogRing::at(reinterpret_cast<std::byte*>(memory.all().data()), kBlocks* kLogBlockBytes);
  WorkerLog log{reinterpret_cast<std::byte*>(memory.all().data()), kBlocks* kLogBlockBytes, 0,
                true};
};

TEST_F(WorkerLogTest, ARunningTransactionKeepsTheBlockThatItHasBegunIn) {
  log.begin(1);
  ASSERT_NE(put(64), nullptr);
  log.publish(1);
  log.begin(1);
  const uint32_t first = log.offset_of(put(3000));
  // The logger closes epoch 1. The block that both transactions share is then durable up to the
  // records of the second transaction.
  log.control().durable.store(1, std::memory_order_seq_cst);
  std::vector<uint32_t> records;
  while (const LogRecord* record = put(4000)) records.push_back(log.offset_of(record));
  EXPECT_EQ(records.size(), kBlocks - 2) << "one block is shared, one is spare";
  log.publish(2);
  EXPECT_EQ(log.at(first).length, 3000U) << "the commit still looks at its records";
  for (const uint32_t record : records) EXPECT_EQ(log.at(record).length, 4000U);
  for (uint64_t number = 0; number < kBlocks - 1; ++number) EXPECT_TRUE(is_sealed(number));
}

TEST_F(WorkerLogTest, ABlockThatIsFilledToTheLastByteIsSealedAndLeft) {
  log.begin(1);
  ASSERT_NE(put(kLogBlockPayload - 64), nullptr);
  log.publish(1);
  EXPECT_EQ(committed() / kLogBlockBytes, 0U) << "the logger copies it";
  log.begin(1);
  ASSERT_NE(put(64), nullptr);
  log.publish(1);
  // The logger takes this block without a copy, and stamps it. The worker must not change the block
  // from now on.
  EXPECT_EQ(committed() / kLogBlockBytes, 1U);
  EXPECT_EQ(ring.block(0).header.length, kLogBlockPayload);
  EXPECT_TRUE(is_sealed(0));
  ring.block(0).header.crc ^= 1;
  ring.block(0).header.magic = kLogBlockMagic;
  const LogBlock stamped = ring.block(0);
  log.begin(1);
  ASSERT_NE(put(64), nullptr);
  log.publish(1);
  EXPECT_EQ(committed(), kLogBlockBytes + sizeof(LogBlockHeader) + 64);
  EXPECT_EQ(std::memcmp(&stamped, &ring.block(0), sizeof stamped), 0);
}

TEST_F(WorkerLogTest, ABlockIsSealedWhenItsEpochIsOver) {
  log.begin(1);
  ASSERT_NE(put(64), nullptr);
  log.publish(1);
  log.begin(2);
  EXPECT_TRUE(is_sealed(0)) << "begins in the next block";
  ASSERT_NE(put(64), nullptr);
  log.publish(3);
  EXPECT_EQ(committed() / kLogBlockBytes, 1U);
  // The epoch advances between begin and commit. The records move to the next block, and the shared
  // block ends before them.
  log.begin(3);
  ASSERT_NE(put(128), nullptr);
  log.publish(4);
  EXPECT_EQ(committed() / kLogBlockBytes, 2U);
  EXPECT_TRUE(is_sealed(1));
  EXPECT_EQ(ring.block(1).header.length, 64U);
  EXPECT_EQ(ring.block(2).header.length, 128U);
}

/// A worker log of `block_count` blocks, whose logger is simulated: it checks, stamps and frees the
/// blocks.
class StampedLog {
 public:
  StampedLog(uint64_t block_count, uint64_t seed)
      : memory_(block_count + 1),
        ring_(WorkerLogRing::at(reinterpret_cast<std::byte*>(memory_.all().data()),
                                block_count * kLogBlockBytes)),
        log_(reinterpret_cast<std::byte*>(memory_.all().data()), block_count * kLogBlockBytes, 0,
             true),
        random_(seed) {}

  /// Runs one transaction. If the log has no room, the simulated logger frees all blocks instead.
  void step() {
    if (random_() % 4 == 0) ++epoch_;
    if (random_() % 3 == 0) free_blocks();
    if (!log_.has_room()) {
      ++waits_;
      ++epoch_;
      next_ = (committed() + kLogBlockBytes - 1) / kLogBlockBytes;  // includes the partial block
      taken_.clear();
      log_.control().durable.store(next_, std::memory_order_seq_cst);
      return;
    }
    log_.begin(epoch_);
    bool fits = true;
    for (uint64_t puts = 1 + random_() % 4; fits && puts > 0; --puts) fits = put();
    if (random_() % 4 == 0) ++epoch_;
    if (fits && random_() % 8 != 0) log_.publish(epoch_);
    if (!fits) log_.is_too_large();
    take_blocks();
  }
  uint64_t waits() const { return waits_; }
  uint64_t exact() const { return exact_; }
  std::string problem() const { return problem_; }

 private:
  bool put() {
    const uint64_t kind = random_() % 4;
    const auto length = static_cast<uint32_t>(
        kind == 0 ? kLogBlockPayload : 8 * (1 + random_() % (kind == 1 ? 504 : 60)));
    LogRecord* record = log_.allocate(length);
    if (record != nullptr)
      std::memset(static_cast<void*>(record), static_cast<int>(random_()), length);
    return record != nullptr;
  }
  uint64_t committed() { return log_.control().committed.load(std::memory_order_relaxed); }
  void take_blocks() {
    for (const auto& [number, block] : taken_) {
      if (std::memcmp(&block, &ring_.block(number), sizeof block) != 0) {
        problem_ = "block " + std::to_string(number) + " was touched behind the logger's back";
      }
    }
    if (committed() % kLogBlockBytes == 0) ++exact_;
    for (; next_ < committed() / kLogBlockBytes; ++next_) {
      LogBlock& block = ring_.block(next_);
      if (block.header.crc != payload_crc_of(block)) {
        problem_ = "block " + std::to_string(next_) + " is not sealed";
      }
      block.header.crc ^= 1;
      block.header.magic = kLogBlockMagic;
      taken_[next_] = block;
    }
  }
  void free_blocks() {
    const uint64_t durable = next_ - random_() % (taken_.size() + 1);
    taken_.erase(taken_.begin(), taken_.lower_bound(durable));
    if (durable > log_.control().durable.load(std::memory_order_relaxed)) {
      log_.control().durable.store(durable, std::memory_order_seq_cst);
    }
  }

  BlockBuffer memory_;
  WorkerLogRing ring_;
  WorkerLog log_;
  std::mt19937_64 random_;
  uint64_t epoch_ = 1;
  uint64_t next_ = 0;  // the first block that is not stamped
  std::map<uint64_t, LogBlock> taken_;
  uint64_t waits_ = 0;
  uint64_t exact_ = 0;
  std::string problem_;
};

TEST(WorkerLog, NoBlockIsTouchedFromItsSealToItsRelease) {
  const uint64_t first_seed = seed();
  for (uint64_t blocks = WorkerLog::kMinBlocks; blocks < 12; ++blocks) {
    StampedLog log(blocks, first_seed + blocks);
    for (uint64_t i = 0; i < rounds(20'000, 1'000'000) && log.problem().empty(); ++i) log.step();
    EXPECT_EQ(log.problem(), "") << blocks << " blocks";
    EXPECT_GT(log.waits(), 100U);
    EXPECT_GT(log.exact(), 100U);
  }
}

}  // namespace
}  // namespace atolldb::test
