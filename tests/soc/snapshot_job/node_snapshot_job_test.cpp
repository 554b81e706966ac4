// A node's part of a snapshot job: its end, with and without errors; its counters.
#include "soc/snapshot_job/node_snapshot_job.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/compose/capture.h"
#include "engine/compose/tree_builder.h"
#include "engine/gleaner/snapshot_plan.h"
#include "shared/file/forwarding_file_system.h"
#include "soc/snapshot_job/snapshot_job_service.h"
#include "tests/engine/compose/gleaned_log.h"
#include "tests/soc/snapshot_job/snapshot_job_rules.h"
#include "tests/soc/snapshot_job/two_node_job.h"

namespace atolldb {
namespace {

using Clock = NodeSnapshotJob::Clock;

using test::ControlAnswer;

/// A file system whose syncs of snapshot files wait until the test allows them (`allow_sync`).
class SlowFileSystem : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  /// Waits up to half a minute for a sync to begin. Returns false if none has begun.
  bool await_sync() {
    return has_begun_.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  }
  void allow_sync() { may_go_on_.set_value(); }

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override {
    auto file = below().create(path, bytes);
    if (!file || !path.ends_with(".atsnap")) return file;
    return std::make_unique<SlowFile>(*this, *std::move(file));
  }

 private:
  class SlowFile : public ForwardingFile {
   public:
    SlowFile(SlowFileSystem& owner, std::unique_ptr<File> below)
        : ForwardingFile(std::move(below)), owner_(owner) {}
    Result<void> sync() override {
      if (!std::exchange(owner_.is_syncing_, true)) owner_.has_begun_.set_value();
      owner_.allowed_.wait();
      return below().sync();
    }

   private:
    SlowFileSystem& owner_;
  };

  bool is_syncing_ = false;  // used only by the thread that ends the job
  std::promise<void> has_begun_;
  std::promise<void> may_go_on_;
  std::shared_future<void> allowed_ = may_go_on_.get_future().share();
};

class NodeSnapshotJobTest : public testing::Test, protected test::TwoNodeJob {};

TEST_F(NodeSnapshotJobTest, ARunWithoutRecordsEndsOnAllNodesAndMakesNoFile) {
  const auto first = start(0, false);
  const auto second = start(1, false);
  ControlAnswer early;
  second->wait(Clock::now(), early.reply());
  const auto going = early.get();
  ASSERT_TRUE(going) << going.error().message;
  EXPECT_FALSE(going->at("done").get<bool>());
  first->map(0, {});
  second->map(0, {});
  for (NodeSnapshotJob* job : {first.get(), second.get()}) {
    const auto ended = outcome(*job);
    ASSERT_TRUE(ended) << ended.error().message;
    EXPECT_TRUE(ended->at("done").get<bool>());
    EXPECT_EQ(ended->at("page_count"), 1);
    const auto partitions = find_binary(*ended, "partitions");
    ASSERT_TRUE(partitions);
    EXPECT_TRUE(decode_composed(*partitions));
  }
  EXPECT_FALSE(has_file(0));
  EXPECT_FALSE(has_file(1));
}

TEST_F(NodeSnapshotJobTest, TheThreadsOfAJobHaveTheOrdinaryPolicyAndPriority) {
  const int normal = getpriority(PRIO_PROCESS, 0);
  // A thread of the job calls `has_failed` while it waits for records.
  std::promise<std::pair<int, int>> seen;
  std::atomic<bool> is_seen{false};
  resources_[1].has_failed = [&] {
    if (!is_seen.exchange(true, std::memory_order_relaxed)) {
      const auto thread = static_cast<id_t>(gettid());
      seen.set_value({sched_getscheduler(0), getpriority(PRIO_PROCESS, thread)});
    }
    return false;
  };
  const auto job = start(1, false);
  const auto [policy, priority] = seen.get_future().get();
  EXPECT_EQ(policy, SCHED_OTHER);
  EXPECT_EQ(priority, normal);
  ControlAnswer discarded;
  job->discard(discarded.reply());
  EXPECT_TRUE(discarded.get());
}

TEST_F(NodeSnapshotJobTest, TheThreadsOfAJobStayOnTheirProcessors) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &all)) --last;
  resources_[1].cpus = {last};
  std::promise<cpu_set_t> seen;
  std::atomic<bool> is_seen{false};
  resources_[1].has_failed = [&] {
    cpu_set_t allowed;
    if (!is_seen.exchange(true, std::memory_order_relaxed)) {
      sched_getaffinity(0, sizeof allowed, &allowed);
      seen.set_value(allowed);
    }
    return false;
  };
  const auto job = start(1, false);
  const cpu_set_t allowed = seen.get_future().get();
  EXPECT_EQ(CPU_COUNT(&allowed), 1);
  EXPECT_TRUE(CPU_ISSET(last, &allowed));
  ControlAnswer discarded;
  job->discard(discarded.reply());
  EXPECT_TRUE(discarded.get());
}

TEST_F(NodeSnapshotJobTest, OneWarningNamesTheKeyOfProcessorsThatDoNotExist) {
  std::ostringstream log;
  resources_[1].cpus = {kMaxCpus - 1};
  {
    ControlAnswer prepared;
    NodeSnapshotJob job(plan(false), resources_[1], 0, prepared.reply(),
                        std::make_shared<spdlog::logger>(
                            "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
    ASSERT_TRUE(prepared.get());
    job.map(0, {});  // starts a second thread
    ControlAnswer discarded;
    job.discard(discarded.reply());
    EXPECT_TRUE(discarded.get());
  }
  const std::string text = log.str();
  const size_t warning = text.find("a thread cannot be pinned");
  ASSERT_NE(warning, std::string::npos) << text;
  EXPECT_NE(text.find("change `gleaner_cpus` of the node", warning), std::string::npos) << text;
  EXPECT_EQ(text.find("a thread cannot be pinned", warning + 1), std::string::npos) << text;
}

/// Two nodes with a paced job. The mapper of the first node reads a log of 3 MiB, which is more
/// than its goal allows. Only the event that a test is about can end its pause in time.
class PacedNodeSnapshotJobTest : public NodeSnapshotJobTest {
 protected:
  void SetUp() override {
    constexpr size_t kBlocks = (size_t{3} << 20) / kLogBlockBytes;
    ASSERT_TRUE(write_log(kBlocks));
    for (SnapshotJobResources& resources : resources_) {
      resources.throttle = {.goal_life = std::chrono::hours(24),
                            .max_sleep = std::chrono::hours(24)};
    }
    first_ = start(0, true);
    second_ = start(1, true);
    first_->set_goal(0.1);
    first_->map(kBlocks * kLogBlockBytes, {});
    second_->map(0, {});
  }
  /// Waits until the mapper pauses.
  void await_pause() {
    const auto limit = Clock::now() + std::chrono::seconds(30);
    while (first_->progress().paused_us == 0) {
      ASSERT_LT(Clock::now(), limit) << "the mapper does not pause";
      ASSERT_FALSE(first_->has_ended());
      std::this_thread::yield();
    }
    EXPECT_LT(first_->progress().records_read, 600u);
  }

  std::unique_ptr<NodeSnapshotJob> first_;
  std::unique_ptr<NodeSnapshotJob> second_;
};

TEST_F(PacedNodeSnapshotJobTest, PausesUntilTheGoalRises) {
  ASSERT_NO_FATAL_FAILURE(await_pause());
  first_->set_goal(0.15);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LT(first_->progress().records_read, 600u) << "more than that is done";
  first_->set_goal(1);
  ControlAnswer answer;
  first_->wait(Clock::time_point::max(), answer.reply());
  ASSERT_TRUE(answer.is_there_soon());
  const auto ended = answer.get();
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_GT(ended->at("paused_us").get<uint64_t>(), 0u);
  const auto other = outcome(*second_);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(ended->at("records_read"), 768);
  EXPECT_GE(other->at("records_composed"), 100) << "one for each record of the array";
  const auto count = [&](const char* name) { return other->at(name).get<uint64_t>(); };
  EXPECT_EQ(count("records_composed") + count("records_elided"), count("records_received"));
}

TEST_F(PacedNodeSnapshotJobTest, ADiscardedJobEndsItsPauses) {
  ASSERT_NO_FATAL_FAILURE(await_pause());
  for (NodeSnapshotJob* job : {first_.get(), second_.get()}) {
    job->set_goal(0);
    ControlAnswer discarded;
    job->discard(discarded.reply());
    if (!discarded.is_there_soon()) {
      ADD_FAILURE() << "the job still pauses";
      job->set_goal(1);
    }
    EXPECT_TRUE(discarded.get());
  }
}

TEST(SnapshotJobRules, AJobThatHoldsComposesOnlyAfterTheFirstWait) {
  EXPECT_EQ(test::a_job_that_holds_composes_after_the_first_wait(), "");
}

TEST_F(NodeSnapshotJobTest, AJobThatHoldsCanBeDiscarded) {
  ASSERT_TRUE(write_log(1));
  for (const uint32_t node : {0u, 1u}) {
    const auto job = start(node, true);
    job->map(0, {}, true);
    ControlAnswer discarded;
    job->discard(discarded.reply());
    ASSERT_TRUE(discarded.is_there_soon());
    EXPECT_FALSE(has_file(node));
  }
}

TEST_F(NodeSnapshotJobTest, AMapperThatFailsEndsTheRunOnAllNodesAndLeavesNoFile) {
  const auto first = start(0, true);
  const auto second = start(1, true);
  first->map(0, {});
  second->map(0, {});
  const auto failed = outcome(*first);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ExitCode::corruption) << failed.error().message;
  const auto given_up = outcome(*second);
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().code, ExitCode::failed) << given_up.error().message;
  for (NodeSnapshotJob* job : {first.get(), second.get()}) {
    ControlAnswer discarded;
    job->discard(discarded.reply());
    EXPECT_TRUE(discarded.get());
  }
  EXPECT_FALSE(has_file(0));
  EXPECT_FALSE(has_file(1));
}

/// A source of volatile pages that captures one page of the first storage, or fails.
class OnePage : public FenceMapSource {
 public:
  Status fence_map_of(uint32_t, std::span<const std::byte>, const SliceRange&,
                      FenceMap& fence_map) override {
    fence_map.clear();
    return Status::ok;
  }
  Result<void> capture_pages_of(uint32_t, const CaptureTask& task,
                                std::vector<CapturedPage>& captured) override {
    if (fails) return make_error(ExitCode::disk_full, "no room");
    max_ranges = task.max_ranges;
    const SliceRange range{10, 20, false};
    PageBuffer image;
    format_border(image, 0, 1, TreeRecord::bytes_with(8, 8) + kSlotBytes, range);
    write_slot(image.as<BorderPage>(), 0, 15, 8, nullptr, 8, Vid::make(5, 1));
    ATOLL_ASSIGN(const SnapshotPointer page, task.write(image));
    captured.push_back({range, page});
    return {};
  }

  bool fails = false;
  size_t max_ranges = 0;  // bound of the last request
};

/// A job in which node 1 composes a tree, and captures pages from `source_`.
class CapturingJobTest : public NodeSnapshotJobTest {
 protected:
  CapturingJobTest() {
    resources_[1].fence_maps = [this] { return &source_; };
    plan_ = plan(false);
    plan_.storages[0].type = StorageType::mastertree;
  }
  std::unique_ptr<NodeSnapshotJob> start_tree(uint32_t node) {
    ControlAnswer prepared;
    auto job = std::make_unique<NodeSnapshotJob>(plan_, resources_[node], 0, prepared.reply(),
                                                 make_silent_logger("test"));
    EXPECT_TRUE(prepared.get());
    return job;
  }
  static Result<Json> capture(NodeSnapshotJob& job) {
    ControlAnswer answer;
    job.capture(answer.reply());
    return answer.get();
  }

  OnePage source_;
  SnapshotPlan plan_;
};

TEST_F(CapturingJobTest, AnswersWithItsRangesAndComposesItsPages) {
  const auto first = start_tree(0);
  const auto second = start_tree(1);
  const auto none = capture(*first);
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(decode_captured(*find_binary(*none, "captured"))->empty());
  const auto one = capture(*second);
  ASSERT_TRUE(one) << one.error().message;
  const std::vector<CapturedRange> ranges = {{1, 10, 20, false}};
  EXPECT_EQ(*decode_captured(*find_binary(*one, "captured")), ranges);
  first->map(0, ranges);
  second->map(0, ranges);
  EXPECT_TRUE(outcome(*first));
  const auto ended = outcome(*second);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->at("pages_captured"), 1);
  const auto composed = decode_composed(*find_binary(*ended, "partitions"));
  ASSERT_TRUE(composed);
  ASSERT_EQ(composed->size(), 1u);
  EXPECT_FALSE(composed->at(0).pages.empty());
  EXPECT_TRUE(has_file(1));
}

/// The encoded ranges of all partitions of the plan take at most half of a message.
TEST_F(CapturingJobTest, TheRangesOfAllPartitionsFitInOneMessage) {
  const auto bound = [this] {
    ++plan_.snapshot;  // an inbox accepts each job once
    const auto job = start_tree(1);
    EXPECT_TRUE(capture(*job));
    ControlAnswer discarded;
    job->discard(discarded.reply());
    EXPECT_TRUE(discarded.get());
    return source_.max_ranges;
  };
  EXPECT_EQ(bound(), kMaxCapturedRanges) << "few partitions";

  constexpr size_t kPartitions = 1000;
  PlannedStorage many = plan_.storages[0];
  many.id = 2;
  many.partitions.clear();
  for (uint32_t i = 0; i < kPartitions; ++i) {
    many.partitions.push_back({i == 0 ? "" : test::big_endian(i), {0, 0}});
  }
  plan_.storages.push_back(many);
  const size_t ranges = bound();
  EXPECT_GT(ranges, 0u);
  EXPECT_LT(ranges, kMaxCapturedRanges);
  EXPECT_LE(ranges * kPartitions * kCapturedRangeBytes, kMaxControlBytes / 2);
}

TEST_F(CapturingJobTest, ACaptureThatFailsEndsTheJobAndLeavesNoFile) {
  source_.fails = true;
  const auto job = start_tree(1);
  const auto failed = capture(*job);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ExitCode::disk_full);
  const auto ended = outcome(*job);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ExitCode::disk_full);
  EXPECT_FALSE(has_file(1));
}

TEST_F(CapturingJobTest, CapturesAreRefusedOnceTheMappersHaveStartedOrTheJobHasEnded) {
  const auto job = start_tree(1);
  ControlAnswer discarded;
  job->map(0, {});
  EXPECT_FALSE(capture(*job));
  job->discard(discarded.reply());
  EXPECT_TRUE(discarded.get());
  EXPECT_FALSE(capture(*job));
}

TEST_F(NodeSnapshotJobTest, WaitersAreAnsweredInTimeWhileTheFileIsSynced) {
  ASSERT_TRUE(write_log(1));
  SlowFileSystem slow(files_);
  resources_[1].file_system = &slow;
  const auto first = start(0, true);
  const auto second = start(1, true);
  first->map(0, {});
  second->map(0, {});
  if (!slow.await_sync()) {
    slow.allow_sync();
    const auto ended = outcome(*second);
    FAIL() << "no file was synced: " << (ended ? ended->dump() : ended.error().message) << ", "
           << outcome(*first).error().message;
  }
  ControlAnswer waiting;
  second->wait(Clock::now(), waiting.reply());
  const bool is_in_time = waiting.is_there_soon();
  slow.allow_sync();
  ASSERT_TRUE(is_in_time) << "the answer waits for the device";
  const auto going = waiting.get();
  ASSERT_TRUE(going) << going.error().message;
  EXPECT_FALSE(going->at("done").get<bool>());
  const auto ended = outcome(*second);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_TRUE(ended->at("done").get<bool>());
  EXPECT_GT(ended->at("page_count"), 1);
  EXPECT_TRUE(has_file(1));
}

TEST_F(NodeSnapshotJobTest, ARunThatIsDiscardedBeforeItsMappersStartEnds) {
  const auto job = start(1, false);
  ControlAnswer waiting;
  job->wait(Clock::time_point::max(), waiting.reply());
  ControlAnswer discarded;
  job->discard(discarded.reply());
  EXPECT_TRUE(discarded.get());
  EXPECT_FALSE(waiting.get());
  EXPECT_TRUE(job->has_ended());
  EXPECT_FALSE(has_file(1));
}

TEST(SnapshotJobProgressTest, EveryCounterIsSummedAndReportedOnce) {
  SnapshotJobProgress one;
  uint64_t value = 0;
  for (const SnapshotJobCounter& each : kSnapshotJobCounters) one.*each.progress = ++value;
  SnapshotJobProgress sum = one;
  sum += one;
  const Json json = to_json(sum);
  EXPECT_EQ(json.size(), std::size(kSnapshotJobCounters));
  value = 0;
  for (const SnapshotJobCounter& each : kSnapshotJobCounters) {
    EXPECT_EQ(one.*each.progress, ++value) << each.name << ": two rows have the same counter";
    EXPECT_EQ(json.at(each.name), 2 * value) << each.name;
  }
}

TEST_F(NodeSnapshotJobTest, TheServiceRunsOneAtATimeAndEndsItWhenTheNodeStops) {
  SnapshotJobService service(resources_[1], make_silent_logger("test"));
  const auto ask = [&](ControlOperation operation, const Json& body) {
    ControlAnswer answer;
    service.handle({operation, body}, answer.reply());
    return answer.get();
  };
  EXPECT_FALSE(ask(ControlOperation::glean_prepare, {{"plan", "no bytes"}}));
  EXPECT_FALSE(ask(ControlOperation::glean_prepare, {{"plan", to_binary({})}}));
  EXPECT_FALSE(ask(ControlOperation::glean_map, {{"run", kSnapshot}}));
  const Json prepare = {{"plan", to_binary(encode_plan(plan(false)))}};
  ASSERT_TRUE(ask(ControlOperation::glean_prepare, prepare));
  const auto second = ask(ControlOperation::glean_prepare, prepare);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("snapshot 7 is under way"), std::string::npos)
      << second.error().message;
  EXPECT_FALSE(ask(ControlOperation::glean_end, {{"run", kSnapshot}, {"keep", true}}))
      << "it has not ended";
  EXPECT_EQ(service.phase(), SnapshotJobPhase::preparing);
  EXPECT_TRUE(ask(ControlOperation::glean_end, {{"run", kSnapshot}, {"keep", false}}));
  EXPECT_EQ(service.phase(), SnapshotJobPhase::idle);
  EXPECT_TRUE(ask(ControlOperation::glean_end, {{"run", 99}, {"keep", false}}))
      << "there is nothing to end";
  EXPECT_FALSE(ask(ControlOperation::glean_prepare, prepare)) << "a request that comes late";
  ControlAnswer waiting;
  SnapshotPlan next = plan(false);
  next.snapshot = kSnapshot + 1;
  SnapshotPlan wrong = next;
  wrong.reducers.push_back(wrong.reducers.back());
  EXPECT_FALSE(ask(ControlOperation::glean_prepare, {{"plan", to_binary(encode_plan(wrong))}}));
  ASSERT_TRUE(ask(ControlOperation::glean_prepare, {{"plan", to_binary(encode_plan(next))}}));
  service.handle({ControlOperation::glean_wait, {{"run", next.snapshot}, {"timeout_ms", 60'000}}},
                 waiting.reply());
  service.stop();
  EXPECT_FALSE(waiting.get());
  EXPECT_FALSE(ask(ControlOperation::glean_prepare, prepare)) << "the node stops";
}

}  // namespace
}  // namespace atolldb
