// Random transactions of appends, scans and array writes, checked for cycles (R17). A scan either
// sees an append or comes before it. The scan must agree with what the same transactions did to an
// array.
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdio>
#include <random>
#include <set>

#include "engine/array/array.h"
#include "engine/sequential/sequential.h"
#include "tests/engine/serializability/checker.h"
#include "tests/support/seed.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kArrayKeys = 4;
// Keys from this one on stand for appended records. Each such key is written once.
constexpr uint64_t kAppends = uint64_t{9} << 32;

struct Attempt {
  HistoryTransaction txn;
  bool scanned = false;
  std::set<uint64_t> seen;      // values that the scan returned
  std::vector<uint64_t> added;  // values appended
};

int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

class Appender {
 public:
  Appender(uint64_t seed, uint32_t self, TestWorker& worker, Sequential log, Array array)
      : random_(seed * 100 + self), self_(self), worker_(worker), log_(log), array_(array) {}

  void run(uint64_t attempts) {
    for (uint64_t i = 1; i <= attempts; ++i) {
      Attempt attempt;
      attempt.txn.name = make_value(self_ + 1, i, 0);
      Transaction& engine = *worker_.transaction;
      attempt.txn.begin_ns = now_ns();
      Status status = engine.begin();
      if (status == Status::ok) status = body(engine, attempt);
      if (status == Status::ok) {
        status = engine.commit();
      } else {
        engine.rollback(status);
      }
      attempt.txn.end_ns = now_ns();
      if (status != Status::ok && !is_retryable(status)) problem_ = to_string(status);
      if (status != Status::ok) continue;
      attempt.txn.committed = true;
      // The commit's VID orders the array's versions. An appended record has only one version.
      for (HistoryWrite& write : attempt.txn.writes) write.order = engine.last_vid().version();
      attempts_.push_back(std::move(attempt));
    }
  }

  std::vector<Attempt>& attempts() { return attempts_; }
  const std::string& problem() const { return problem_; }

 private:
  Status body(Transaction& engine, Attempt& attempt) {
    for (uint64_t left = 1 + random_() % 3; left > 0; --left) {
      const uint64_t kind = random_() % 4;
      const Status status = kind == 0   ? scan(engine, attempt)
                            : kind == 1 ? count_up(engine, attempt)
                                        : append(engine, attempt);
      if (status != Status::ok) return status;
      if (random_() % 4 == 0) sched_yield();
    }
    return Status::ok;
  }

  Status append(Transaction& engine, Attempt& attempt) {
    const uint64_t value = attempt.txn.name + 1000 + attempt.added.size();
    // Payloads are so long that the list needs several pages.
    std::vector<uint64_t> payload(1 + random_() % 60, value);
    attempt.added.push_back(value);
    return log_.append(engine, std::as_bytes(std::span(payload)));
  }

  Status scan(Transaction& engine, Attempt& attempt) {
    if (attempt.scanned) return Status::ok;
    SequentialCursor cursor(log_, engine);
    Status status = Status::ok;
    std::set<uint64_t> seen;
    while ((status = cursor.next()) == Status::ok) {
      uint64_t value = 0;
      std::memcpy(&value, cursor.payload().data(), sizeof(value));
      if (!seen.insert(value).second) problem_ = "a scan returned a record twice";
    }
    if (status != Status::end_of_scan) return status;
    for (const uint64_t own : attempt.added) {
      if (seen.erase(own) == 0) problem_ = "a scan missed an own append";
    }
    attempt.scanned = true;
    attempt.seen = std::move(seen);
    return Status::ok;
  }

  Status count_up(Transaction& engine, Attempt& attempt) {
    const uint64_t index = random_() % kArrayKeys;
    for (const HistoryWrite& write : attempt.txn.writes) {
      if (write.key == index) return Status::ok;
    }
    uint64_t seen = 0;
    Status status = array_.get(engine, index, &seen);
    if (status != Status::ok) return status;
    attempt.txn.reads.push_back({index, seen, 0});
    if (random_() % 2 == 0) return Status::ok;
    const uint64_t value = attempt.txn.name + 1 + attempt.txn.writes.size();
    attempt.txn.writes.push_back({index, value, 0, 0, 0});
    return array_.update(engine, index, 0, sizeof(value), &value);
  }

  std::mt19937_64 random_;
  uint64_t self_;
  TestWorker& worker_;
  Sequential log_;
  Array array_;
  std::vector<Attempt> attempts_;
  std::string problem_;
};

/// Turns each scan into reads of all records that were ever appended. A record that the scan did
/// not return is read as absent.
History expand(std::vector<Attempt>& attempts) {
  std::vector<std::pair<uint64_t, uint64_t>> records;  // {value, key}
  for (Attempt& attempt : attempts) {
    for (const uint64_t value : attempt.added) {
      const uint64_t key = kAppends | records.size();
      records.emplace_back(value, key);
      attempt.txn.writes.push_back({key, value, 0, 0, 1});
    }
  }
  History history;
  for (Attempt& attempt : attempts) {
    if (attempt.scanned) {
      for (const auto& [value, key] : records) {
        if (transaction_of(value) == attempt.txn.name) continue;
        attempt.txn.reads.push_back({key, attempt.seen.erase(value) != 0 ? value : kAbsent, 1});
      }
      // The other values are of aborted attempts, or no attempt wrote them. The checker reports
      // them.
      for (const uint64_t value : attempt.seen) attempt.txn.reads.push_back({kAppends, value, 1});
    }
    history.push_back(std::move(attempt.txn));
  }
  return history;
}

void append_and_scan(uint32_t nodes, uint32_t workers_per_node) {
  const uint64_t first_seed = seed();
  for (uint64_t round = 0; round < rounds(8, 400, 3); ++round) {
    TestCluster cluster(nodes, workers_per_node);
    const Sequential log(cluster.create("log", StorageType::sequential));
    const Array array(cluster.create("array", StorageType::array, 8, kArrayKeys));
    std::vector<Attempt> attempts;
    std::vector<std::vector<Attempt>> parts(cluster.worker_count());
    std::vector<std::string> problems(cluster.worker_count());
    cluster.run_threads([&](uint32_t self, TestWorker& worker) {
      Appender appender(first_seed + round, self, worker, log, array);
      appender.run(400);
      parts[self] = std::move(appender.attempts());
      problems[self] = appender.problem();
    });
    for (uint32_t i = 0; i < cluster.worker_count(); ++i) {
      EXPECT_EQ(problems[i], "");
      attempts.insert(attempts.end(), std::make_move_iterator(parts[i].begin()),
                      std::make_move_iterator(parts[i].end()));
    }
    const History history = expand(attempts);
    const Verdict verdict = check_history(history);
    ASSERT_EQ(verdict.anomaly, Anomaly::none) << "round " << round << ": " << verdict.text;
    if (round == 0) {
      std::printf("%zu transactions, %llu edges\n", history.size(),
                  static_cast<unsigned long long>(verdict.edges));
    }
    EXPECT_GT(history.size() * 10, uint64_t{400} * cluster.worker_count());
  }
}

TEST(SequentialHistory, ScansAndAppendsOfTwoNodesAreSerializable) { append_and_scan(2, 2); }

TEST(SequentialHistory, ScansAndAppendsOfFourNodesAreSerializable) { append_and_scan(4, 1); }

}  // namespace
}  // namespace atolldb::test
