// The error that a procedure reports is true of a state of the database (R20).
#include "soc/procedure/execute.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/array/array.h"
#include "tests/engine/snapshot/cold_storages.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

constexpr int64_t kSum = 100;

/// Data of the procedure below, which is a plain function.
struct Scene {
  StorageControl* storage = nullptr;
  std::function<void()> between;  // runs between the procedure's two reads
  bool always_throws = false;
  int attempts = 0;
  std::vector<std::string> prefetches;  // inputs of the prefetch function
  bool prefetch_throws = false;
};
Scene scene;

void prefetch_pair(PrefetchContext& context) {
  scene.prefetches.emplace_back(reinterpret_cast<const char*>(context.input().data()),
                                context.input().size());
  const uint64_t indexes[] = {0, 1, 2};  // the last one does not exist
  StorageControl* const storage = context.storage("pair", StorageType::array);
  if (storage != nullptr) context.records(Array(*storage), indexes);
  if (scene.prefetch_throws) throw std::runtime_error("no hint");
}

Status check_sum(ProcedureContext& context) {
  ++scene.attempts;
  const Array array(*scene.storage);
  int64_t values[2] = {};
  for (uint64_t i = 0; i < 2; ++i) {
    if (i == 1 && scene.between) scene.between();
    const Status status = array.get(context.transaction(), i, &values[i]);
    if (status != Status::ok) return status;
  }
  if (values[0] + values[1] != kSum || scene.always_throws) throw std::runtime_error("broken sum");
  return Status::ok;
}

class ExecuteTest : public ::testing::Test {
 protected:
  ExecuteTest() : cluster_(1, 2, {.clock = false}) {
    scene = {};
    scene.storage = &cluster_.create("pair", StorageType::array, sizeof(int64_t), 2);
    EXPECT_EQ(cluster_.worker(1).run([](Transaction& transaction) {
      const int64_t half = kSum / 2;
      const Array array(*scene.storage);
      const Status status = array.update(transaction, 0, 0, sizeof(half), &half);
      return status == Status::ok ? array.update(transaction, 1, 0, sizeof(half), &half) : status;
    }),
              Status::ok);
  }
  /// The other worker moves an amount from the second record to the first. The sum stays the same.
  void move_some() {
    EXPECT_EQ(cluster_.worker(1).run([](Transaction& transaction) {
      const Array array(*scene.storage);
      int64_t values[2] = {};
      for (uint64_t i = 0; i < 2; ++i) {
        const Status status = array.get(transaction, i, &values[i]);
        if (status != Status::ok) return status;
      }
      values[0] += 7;
      values[1] -= 7;
      for (uint64_t i = 0; i < 2; ++i) {
        const Status status = array.update(transaction, i, 0, sizeof(values[i]), &values[i]);
        if (status != Status::ok) return status;
      }
      return Status::ok;
    }),
              Status::ok);
  }
  ProcedureOutcome execute(const NextCall& next = {}) {
    TestWorker& worker = cluster_.worker(0);
    WorkerEnvironment environment{*worker.transaction, worker.backoff, 0};
    return execute_procedure(environment, check_sum, {}, kMaxEpoch, {}, {}, next);
  }

  TestCluster cluster_;
};

TEST_F(ExecuteTest, AProcedureThatThrowsOverAStateThatNeverWasIsRunAgain) {
  scene.between = [this] {
    if (scene.attempts <= 3) move_some();
  };
  const ProcedureOutcome outcome = execute();
  EXPECT_EQ(outcome.status, Status::ok) << to_string(outcome.status) << ": " << outcome.message;
  EXPECT_EQ(outcome.message, "");
  EXPECT_EQ(scene.attempts, 4);
  EXPECT_EQ(outcome.retries, 3u);
  EXPECT_GT(outcome.execution_ns, 0u);
}

/// The first attempt has a long output. The second one sets a long output, then a short one.
Status shorten_output(ProcedureContext& context) {
  const std::vector<std::byte> bytes(1u << 20);
  context.set_output(bytes);
  if (++scene.attempts == 1) return Status::read_conflict;
  context.set_output(std::span(bytes).first(10));
  return Status::ok;
}

TEST_F(ExecuteTest, AShortOutputKeepsNoMemoryOfALongerOne) {
  TestWorker& worker = cluster_.worker(0);
  WorkerEnvironment environment{*worker.transaction, worker.backoff, 0};
  PayloadMemory memory(4u << 20);
  const ProcedureOutcome outcome = execute_procedure(environment, shorten_output, {}, kMaxEpoch,
                                                     {.max_bytes = 1u << 20, .memory = &memory});
  EXPECT_EQ(outcome.status, Status::ok) << outcome.message;
  EXPECT_EQ(scene.attempts, 2);
  EXPECT_EQ(outcome.output.size(), 10u);
  EXPECT_LE(outcome.output.capacity(), kSessionPartBytes);
  EXPECT_EQ(memory.used(), 0u);
}

TEST_F(ExecuteTest, AFailureThatIsTrueIsToldWhenWhatItReadIsDurable) {
  scene.always_throws = true;
  cluster_.tick();
  move_some();
  const uint64_t written_in =
      cluster_.view().control->epochs.current.load(std::memory_order_relaxed);
  const ProcedureOutcome outcome = execute();
  EXPECT_EQ(outcome.status, Status::procedure_failed) << to_string(outcome.status);
  EXPECT_EQ(outcome.message, "it threw: broken sum");
  EXPECT_EQ(scene.attempts, 1);
  EXPECT_EQ(outcome.retries, 0u);
  EXPECT_EQ(outcome.commit_epoch, written_in);
  EXPECT_EQ(outcome.commit_version, 0u);
}

TEST_F(ExecuteTest, ThePrefetchFunctionOfTheNextCallRunsOnceAndChangesNothing) {
  ProcedureCode code(check_sum);
  code.prefetch = prefetch_pair;
  const std::string_view input = "next";
  const NextCall next{&code, std::as_bytes(std::span(input))};
  // The first two attempts fail, because the other worker changes the pair between their reads.
  scene.between = [this] {
    if (scene.attempts <= 2) move_some();
  };
  for (const bool throws : {false, true}) {
    scene.prefetches.clear();
    scene.attempts = 0;
    scene.prefetch_throws = throws;
    const ProcedureOutcome outcome = execute(next);
    EXPECT_EQ(outcome.status, Status::ok) << to_string(outcome.status) << ": " << outcome.message;
    EXPECT_EQ(scene.attempts, 3);
    EXPECT_EQ(scene.prefetches.size(), 1u) << "only the last attempt has ended with ok";
  }
  scene.between = nullptr;
  scene.prefetches.clear();
  EXPECT_EQ(execute(next).status, Status::ok);
  EXPECT_EQ(scene.prefetches, std::vector<std::string>{"next"});
  EXPECT_EQ(execute({&code, {}}).status, Status::ok);
  EXPECT_EQ(scene.prefetches, (std::vector<std::string>{"next", ""}));
}

TEST_F(ExecuteTest, AProcedureThatFailsPrefetchesNothing) {
  ProcedureCode code(check_sum);
  code.prefetch = prefetch_pair;
  scene.always_throws = true;
  EXPECT_EQ(execute({&code, {}}).status, Status::procedure_failed);
  EXPECT_TRUE(scene.prefetches.empty());
  EXPECT_EQ(execute({}).status, Status::procedure_failed);
}

/// A wait for the device would delay the commit of the running transaction.
TEST(PrefetchContext, ReadsNoPageOfColdRecords) {
  constexpr uint64_t kRecords = 3'000;
  constexpr uint32_t kPayload = 200;
  SnapshotStage stage(StorageType::array, kRecords, kPayload);
  {
    ColdCluster cold(stage, 1);
    std::vector<GleanedLog> logs;
    for (uint64_t i = 0; i < kRecords; ++i) {
      logs.push_back(
          {LogType::update, big_endian(i), 0, "payload", Vid::make(cold.next_epoch(), 1)});
    }
    ASSERT_EQ(cold.take(std::move(logs)), "");
  }
  ColdCluster cold(stage, 1, true, 1'000);
  const Array array(cold.storage);
  std::array<std::byte, kPayload> payload;
  // Then the cache has the pages above the leaves, and the last leaves.
  ASSERT_EQ(cold.cluster.worker(0).run(
                [&](Transaction& txn) { return array.get(txn, kRecords - 1, payload.data()); }),
            Status::ok);
  const auto misses = [&] { return cold.cache().statistics().misses; };
  const uint64_t before = misses();
  Transaction& txn = *cold.cluster.worker(0).transaction;
  ASSERT_EQ(txn.begin(), Status::ok);
  const uint64_t indexes[] = {kRecords / 4, kRecords / 2, kRecords * 3 / 4};
  PrefetchContext(txn, {}).records(array, indexes);
  EXPECT_EQ(misses(), before);
  array.prefetch(txn, indexes);
  EXPECT_EQ(misses(), before + 3) << "the pages were in the cache already";
  EXPECT_EQ(txn.pointer_set_size() + txn.read_set_size(), 0u);
  EXPECT_EQ(txn.commit(), Status::ok);
}

}  // namespace
}  // namespace atolldb::test
