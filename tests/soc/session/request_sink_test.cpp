// Tests of the queue between sessions and a worker: one task of the worker runs many calls.
#include "soc/session/request_sink.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shared/sync/wait_word.h"
#include "tests/soc/worker_thread.h"
#include "tests/support/eventually.h"
#include "tests/support/test_cluster.h"

namespace atolldb {
namespace {

std::atomic<uint32_t> sink_gate_is_open{0};
std::atomic<uint32_t> sink_gate_is_reached{0};

Status pass(ProcedureContext&) { return Status::ok; }
Status wait_at_gate(ProcedureContext&) {
  sink_gate_is_reached.store(1, std::memory_order_release);
  while (sink_gate_is_open.load(std::memory_order_acquire) == 0)
    wait_on(sink_gate_is_open, 0, kMaxSleep);
  return Status::ok;
}

std::atomic<uint32_t> prefetched{0};
void count_prefetch(PrefetchContext&) { prefetched.fetch_add(1, std::memory_order_relaxed); }

/// Records the order in which calls end.
class Owner final : public CallOwner {
 public:
  void leave_queue() override { left_.fetch_add(1, std::memory_order_relaxed); }
  void finish(SessionCall& call) override {
    order_.push_back(call.id);  // one worker runs all calls
    finished_.fetch_add(1, std::memory_order_release);
  }
  uint32_t left() const { return left_.load(std::memory_order_relaxed); }
  uint32_t finished() const { return finished_.load(std::memory_order_acquire); }
  const std::vector<uint64_t>& order() const { return order_; }

 private:
  std::vector<uint64_t> order_;
  std::atomic<uint32_t> left_{0};
  std::atomic<uint32_t> finished_{0};
};

class RequestSinkTest : public ::testing::Test {
 protected:
  using Submitted = RequestSink::Submitted;

  RequestSinkTest() : cluster_(1, 1), answers_(*cluster_.view().control) {
    sink_gate_is_open.store(0, std::memory_order_release);
    sink_gate_is_reached.store(0, std::memory_order_release);
    const ProcedureEntry entries[] = {
        {"pass", pass},
        {"gate", wait_at_gate},
        {"ahead", pass, nullptr, Isolation::serializable, count_prefetch}};
    EXPECT_TRUE(registry_.add_library({kProcedureApiVersion, 3, entries}, "test"));
    SessionServices services;
    services.procedures = &registry_;
    services.workers = {&worker_.get()};
    services.answers = &answers_;
    services.metrics = &metrics_;
    services.refusal = [](Isolation) { return std::optional<Refusal>(); };
    services.deadline_epoch = [] { return kMaxEpoch; };
    sink_ = std::make_unique<RequestSink>(std::move(services));
  }
  ~RequestSinkTest() override {
    open_gate();
    worker_.get().stop();
  }

  Submitted submit(const std::string& procedure) {
    calls_.push_back(std::make_unique<SessionCall>());
    SessionCall& call = *calls_.back();
    call.id = calls_.size();
    call.procedure = procedure;
    call.answer_at = AnswerAt::precommitted;
    EXPECT_FALSE(sink_->admit(call));
    return sink_->submit(call, owner_);
  }
  /// Submits a call that keeps the worker busy until `open_gate`.
  void hold_worker() {
    ASSERT_EQ(submit("gate"), Submitted::yes);
    ASSERT_TRUE(
        test::eventually([] { return sink_gate_is_reached.load(std::memory_order_acquire) == 1; }));
  }
  static void open_gate() {
    sink_gate_is_open.store(1, std::memory_order_release);
    wake(sink_gate_is_open, kWakeAll);
  }
  bool all_finish() {
    return test::eventually([this] { return owner_.finished() == accepted_; });
  }
  void submit_many(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(submit("pass"), Submitted::yes) << i;
  }

  test::TestCluster cluster_;
  SessionMetrics metrics_{};
  ProcedureRegistry registry_;
  DurableAnswers answers_;
  test::WorkerThread worker_{cluster_, make_silent_logger("test")};
  std::unique_ptr<RequestSink> sink_;
  std::vector<std::unique_ptr<SessionCall>> calls_;
  Owner owner_;
  uint32_t accepted_ = 0;
};

TEST_F(RequestSinkTest, AWorkerThatSleepsIsNotIdleFromTheMomentThatItGetsACall) {
  const WorkerSlot& slot = cluster_.view().shared[0]->slot(0);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(
        test::eventually([&] { return slot.is_idle.load(std::memory_order_seq_cst) == 1; }));
    sink_gate_is_open.store(0, std::memory_order_release);
    ASSERT_EQ(submit("gate"), Submitted::yes);
    // The call waits at the gate, so the worker cannot be idle again.
    ASSERT_EQ(slot.is_idle.load(std::memory_order_seq_cst), 0u) << i;
    open_gate();
    ++accepted_;
    ASSERT_TRUE(all_finish());
  }
}

TEST_F(RequestSinkTest, CallsOfABusyWorkerRunInTheirOrder) {
  hold_worker();
  submit_many(1000);
  EXPECT_EQ(owner_.finished(), 0u);
  open_gate();
  accepted_ = 1001;
  ASSERT_TRUE(all_finish());
  for (uint64_t i = 0; i < owner_.order().size(); ++i) ASSERT_EQ(owner_.order()[i], i + 1);
  EXPECT_EQ(owner_.left(), 1001u) << "each call leaves the queue once";
  submit_many(1);
  accepted_ = 1002;
  EXPECT_TRUE(all_finish()) << "the worker gets a new task after it has run all calls";
}

TEST_F(RequestSinkTest, TheWorkerPrefetchesForTheCallThatWaitsNext) {
  prefetched.store(0, std::memory_order_relaxed);
  hold_worker();
  for (const char* procedure : {"ahead", "pass", "ahead", "ahead", "pass"}) {
    ASSERT_EQ(submit(procedure), Submitted::yes);
  }
  open_gate();
  accepted_ = 6;
  ASSERT_TRUE(all_finish());
  // The first one is not known while the gate runs: the worker takes the waiting calls afterwards.
  EXPECT_EQ(prefetched.load(std::memory_order_relaxed), 2u);
}

TEST_F(RequestSinkTest, OtherTasksOfTheWorkerRunAfterALimitedNumberOfCalls) {
  hold_worker();
  submit_many(3 * RequestSink::kCallsPerTask);
  std::atomic<uint32_t> finished_before{0};
  ASSERT_TRUE(worker_.get().submit([&](WorkerEnvironment&) {
    finished_before.store(owner_.finished(), std::memory_order_release);
  }));
  open_gate();
  accepted_ = 1 + 3 * RequestSink::kCallsPerTask;
  ASSERT_TRUE(all_finish());
  EXPECT_EQ(finished_before.load(std::memory_order_acquire), RequestSink::kCallsPerTask);
}

TEST_F(RequestSinkTest, AQueueIsFullAtItsLimitAndHasRoomAfterACall) {
  hold_worker();
  submit_many(RequestSink::kMaxQueuedPerWorker - 1);
  EXPECT_EQ(submit("pass"), Submitted::full);
  open_gate();
  accepted_ = RequestSink::kMaxQueuedPerWorker;
  ASSERT_TRUE(all_finish());
  EXPECT_EQ(submit("pass"), Submitted::yes);
  ++accepted_;
  EXPECT_TRUE(all_finish());
}

TEST_F(RequestSinkTest, AWorkerThatEndsRunsTheCallsThatItHasAndGetsNoMore) {
  hold_worker();
  submit_many(2 * RequestSink::kCallsPerTask);
  worker_.get().close();
  submit_many(1);  // the worker still has a task for its calls
  open_gate();
  worker_.get().stop();
  EXPECT_EQ(owner_.finished(), 2 + 2 * RequestSink::kCallsPerTask);
  EXPECT_EQ(submit("pass"), Submitted::no);
  EXPECT_EQ(calls_.back()->outcome.status, Status::unavailable);
  EXPECT_NE(calls_.back()->outcome.message.find("has ended"), std::string::npos)
      << calls_.back()->outcome.message;
}

/// Finds work three times, and then no more.
class ThreeTimes final : public IdleWork {
 public:
  bool help(uint32_t ordinal, const std::function<bool()>& is_wanted) override {
    EXPECT_EQ(ordinal, 0u);
    EXPECT_FALSE(is_wanted());
    return calls_.fetch_add(1, std::memory_order_acq_rel) % 4 != 3;
  }
  uint32_t calls() const { return calls_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint32_t> calls_{0};
};

TEST_F(RequestSinkTest, AnIdleWorkerHelpsBeforeItSleepsUntilItFindsNoMoreWork) {
  ThreeTimes work;
  hold_worker();
  worker_.get().help_with(work);
  open_gate();
  ASSERT_TRUE(test::eventually([&] { return work.calls() == 4; }));
  accepted_ = 1;
  for (uint32_t round = 2; round <= 20; ++round) {
    submit_many(1);
    ++accepted_;
    ASSERT_TRUE(all_finish());
    ASSERT_TRUE(test::eventually([&] { return work.calls() == 4 * round; })) << round;
  }
  worker_.get().stop();
  EXPECT_EQ(work.calls(), 80u) << "a worker that sleeps or ends does not help";
}

TEST_F(RequestSinkTest, AnIdleWorkerRunsTheCallsThatNameNoOtherWorker) {
  SessionCall call;
  call.procedure = "pass";
  EXPECT_FALSE(sink_->admit(call, 0));
  EXPECT_EQ(call.worker, 0u);
  call.worker = 1;
  const auto refusal = sink_->admit(call, 0);
  ASSERT_TRUE(refusal) << "the named worker counts, and this node has only one";
  EXPECT_EQ(refusal->status, Status::invalid_argument);
}

TEST_F(RequestSinkTest, CallsRunAlthoughTheQueueOfTheWorkerIsFullOfOtherTasks) {
  hold_worker();
  submit_many(2 * RequestSink::kCallsPerTask);
  std::atomic<uint32_t> others{0};
  uint32_t queued = 0;
  while (worker_.get().submit(
      [&](WorkerEnvironment&) { others.fetch_add(1, std::memory_order_relaxed); })) {
    ++queued;
  }
  EXPECT_EQ(queued, Worker::kMaxQueuedTasks);
  open_gate();
  accepted_ = 1 + 2 * RequestSink::kCallsPerTask;
  EXPECT_TRUE(all_finish());
  EXPECT_TRUE(test::eventually(
      [&] { return others.load(std::memory_order_relaxed) == Worker::kMaxQueuedTasks; }));
}

TEST(PayloadLimits, ASessionStallsAfterTheTransferTimeout) {
  const PayloadLimits limits{.transfer_timeout = std::chrono::milliseconds(3)};
  EXPECT_EQ(limits.stalled_before_ns(3'000'001), 1u);
  EXPECT_EQ(limits.stalled_before_ns(3'000'000), 0u);
  EXPECT_EQ(limits.stalled_before_ns(1), 0u) << "soon after the machine has started";
}

}  // namespace
}  // namespace atolldb
