// Tests of a node's installer, which gets the requests of a coordinator. The changes to pages are
// fakes.
#include "soc/installer/installer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "tests/engine/log/memory_file_system.h"
#include "tests/soc/control_answer.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

class InstallerTest : public testing::Test {
 protected:
  InstallerTest() : cluster_(1, 1) {
    for (const char* name : {"one", "two", "three"}) {
      storages_.push_back(&cluster_.create(name, StorageType::mastertree));
    }
    for (uint32_t slot = 1; slot <= kThreads; ++slot) {
      PageVisitorSettings settings;
      settings.view = &cluster_.view();
      settings.pool = &cluster_.pool(0);
      settings.metrics = &cluster_.metrics(0, slot);
      settings.snapshots = &cache_;
      settings.slot = slot;
      settings.write_set = TestClusterOptions().limits.write_set;
      settings.keeps_reserve = slot == 1;
      visitors_.push_back(std::make_unique<PageVisitor>(settings));
    }
    actions_.divide = [](WorkerContext&, StorageControl&, uint32_t) {
      return std::vector<uint64_t>();
    };
    actions_.install_seams = [](WorkerContext&, StorageControl&, const InstallTask&,
                                std::span<const uint64_t>, const InstallReport&, InstallReport&) {
      ADD_FAILURE() << "a storage of one part has no seams";
      return Status::ok;
    };
    actions_.drain = [](WorkerContext&, StorageControl&, const InstallTask&, InstallReport&) {
      return Status::ok;
    };
    actions_.install = [this](WorkerContext& context, StorageControl& storage,
                              const InstallTask& task, InstallReport& report) {
      return install(context, storage, task, report);
    };
    actions_.cut = [](WorkerContext&, StorageControl&, uint64_t slice) { return slice / 10 * 10; };
  }

  virtual Status install(WorkerContext& context, StorageControl& storage, const InstallTask& task,
                         InstallReport& report) {
    EXPECT_NE(context.slot().begin_epoch.load(std::memory_order_seq_cst), kIdleEpoch);
    EXPECT_EQ(task.snapshot, 7u);
    EXPECT_EQ(task.epoch, 40u);
    seen_.insert(storage.id);
    report.installed = storage.id;
    report.dropped = 1;
    while (holds_.load(std::memory_order_acquire)) {
      if (task.cancelled()) return Status::unavailable;
      std::this_thread::yield();
    }
    if (storage.id == failing_) return Status::snapshot_unreadable;
    if (storage.id == 2) report.oldest_left = 5;
    return Status::ok;
  }

  /// Fakes an install that asks the drop policy about one hot page in each pass over each storage.
  void judge_one_hot_page_of_each() {
    actions_.install = [this](WorkerContext&, StorageControl& storage, const InstallTask& task,
                              InstallReport& report) {
      PageHeader page{};
      page.self = VolatilePointer::make(0, 0, 1).word();
      page.reference_bit = 1;
      ++passes_[storage.id];
      report.installed = 1;
      if (may_drop(task, page, report)) ++report.dropped;
      return Status::ok;
    };
  }

  std::unique_ptr<Installer> start(uint32_t threads = 1) {
    InstallerSettings settings;
    settings.view = &cluster_.view();
    for (uint32_t i = 0; i < threads; ++i) settings.visitors.push_back(visitors_[i].get());
    settings.times = &times_;
    auto installer =
        std::make_unique<Installer>(std::move(settings), make_silent_logger("install"), actions_);
    installer->start();
    return installer;
  }
  static Json request(uint64_t timeout_ms, uint32_t snapshot = 7) {
    Json storages = Json::array();
    for (const uint32_t id : {1u, 2u, 3u, 900u}) storages.push_back({{"id", id}, {"root", 0}});
    return {
        {"snapshot", snapshot}, {"epoch", 40}, {"storages", storages}, {"timeout_ms", timeout_ms}};
  }
  static Result<Json> ask(Installer& installer, ControlOperation operation, const Json& body) {
    ControlAnswer answer;
    installer.handle({operation, body}, answer.reply());
    return answer.get();
  }

  MemoryFileSystem files_;
  SnapshotFiles snapshot_files_{files_, ClusterUuid{}};
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> frames_{
      static_cast<std::byte*>(std::aligned_alloc(kPageBytes, 16 * kPageBytes))};
  SnapshotCache cache_{frames_.get(), 16 * kPageBytes, 1 + kThreads, snapshot_files_,
                       [](const Error&) {}};
  TestCluster cluster_;
  std::vector<StorageControl*> storages_;
  static constexpr uint32_t kThreads = 3;
  std::vector<std::unique_ptr<PageVisitor>> visitors_;
  SnapshotWorkTimes times_{};
  InstallerActions actions_;
  std::set<uint32_t> seen_;
  std::atomic<bool> holds_{false};
  uint32_t failing_ = 0;
  std::map<uint32_t, int> passes_;  // number of passes over each storage, by id
};

TEST_F(InstallerTest, InstallsInAllStoragesThatAreThereAndSumsUp) {
  const auto installer = start();
  const auto done = ask(*installer, ControlOperation::snapshot_install, request(60'000));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->at("done"), true);
  EXPECT_EQ(done->at("installed"), 1 + 2 + 3);
  EXPECT_EQ(done->at("dropped"), 3);
  EXPECT_EQ(done->at("oldest_left"), 5);
  EXPECT_EQ(seen_, (std::set<uint32_t>{1, 2, 3}));
  EXPECT_EQ(cluster_.view().shared[0]->slot(1).begin_epoch.load(std::memory_order_seq_cst),
            kIdleEpoch);
  const auto again = ask(*installer, ControlOperation::snapshot_install, request(0));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->at("installed"), 6) << "the same snapshot is installed once";
}

TEST_F(InstallerTest, HotPagesAreSparedOrDroppedAsTheRequestSaysInAPassOfItsOwn) {
  judge_one_hot_page_of_each();
  PagePool& pool = cluster_.pool(0);
  uint32_t page = 0;
  while (pool.free_count() * 100 > pool.page_count() * 10) ASSERT_EQ(pool.grab(&page, 1), 1u);
  const auto installer = start();
  Json body = request(60'000);
  body.update({{"free_percent", 40}, {"spares_hot", true}});
  for (int i = 0; i < 2; ++i) {
    const auto first = ask(*installer, ControlOperation::snapshot_install, body);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(first->at("dropped"), 0);
    EXPECT_EQ(first->at("kept_hot"), 3);
  }
  EXPECT_EQ(passes_, (std::map<uint32_t, int>{{1, 1}, {2, 1}, {3, 1}})) << "asked twice";
  body["spares_hot"] = false;
  const auto second = ask(*installer, ControlOperation::snapshot_install, body);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->at("dropped"), 3);
  EXPECT_EQ(second->at("kept_hot"), 0);
  EXPECT_EQ(passes_, (std::map<uint32_t, int>{{1, 2}, {2, 2}, {3, 2}}));
  body["spares_hot"] = 1;
  EXPECT_FALSE(ask(*installer, ControlOperation::snapshot_install, body));
  body["spares_hot"] = true;
  body["free_percent"] = 101;
  EXPECT_FALSE(ask(*installer, ControlOperation::snapshot_install, body));
  body["free_percent"] = 100;
  EXPECT_TRUE(ask(*installer, ControlOperation::snapshot_install, body));
  body["storages"][0]["root"] = SnapshotPointer::make(8, 0, 1).word();
  EXPECT_FALSE(ask(*installer, ControlOperation::snapshot_install, body))
      << "a page of a later snapshot";
}

TEST_F(InstallerTest, LearnsWherePartitionsOfTheNextSnapshotBegin) {
  std::map<uint32_t, std::vector<uint64_t>> bounds;
  actions_.install = [&](WorkerContext&, StorageControl& storage, const InstallTask& task,
                         InstallReport&) {
    bounds[storage.id] = {task.next_bounds.begin(), task.next_bounds.end()};
    return Status::ok;
  };
  const auto installer = start();
  Json body = request(60'000);
  body["storages"][1]["next_bounds"] = {7u, 1ULL << 63};
  const auto done = ask(*installer, ControlOperation::snapshot_install, body);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(bounds, (decltype(bounds){{1, {}}, {2, {7, 1ULL << 63}}, {3, {}}}));
  body["storages"][1]["next_bounds"] = {7u, 6u};
  EXPECT_FALSE(ask(*installer, ControlOperation::snapshot_install, body)) << "not ascending";
  body["storages"][1]["next_bounds"] = {"7"};
  EXPECT_FALSE(ask(*installer, ControlOperation::snapshot_install, body)) << "a text";
}

TEST_F(InstallerTest, ADrainIsAPassOfItsOwnThatInstallsNothing) {
  std::mutex mutex;  // threads drain storages at the same time
  std::set<uint32_t> drained;
  actions_.drain = [&](WorkerContext&, StorageControl& storage, const InstallTask& task,
                       InstallReport& report) {
    EXPECT_EQ(task.epoch, 40u);
    EXPECT_TRUE(task.part.high_is_end) << "a drain is not divided";
    const std::lock_guard guard(mutex);
    drained.insert(storage.id);
    report.drained = 4;
    return Status::ok;
  };
  const auto installer = start(kThreads);
  Json body = request(60'000);
  body.update({{"drains", true}, {"threads", kThreads}});
  const auto done = ask(*installer, ControlOperation::snapshot_install, body);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->at("drained"), 12);
  EXPECT_EQ(done->at("installed"), 0);
  EXPECT_EQ(drained, (std::set<uint32_t>{1, 2, 3}));
  EXPECT_TRUE(seen_.empty());
  body["drains"] = false;
  const auto next = ask(*installer, ControlOperation::snapshot_install, body);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->at("installed"), 6) << "the install of the same snapshot is another pass";
  EXPECT_EQ(next->at("drained"), 0);
  body["drains"] = 1;
  EXPECT_FALSE(ask(*installer, ControlOperation::snapshot_install, body)) << "not a boolean";
}

TEST_F(InstallerTest, AnyPageIsSparedIfEnoughPagesAreFree) {
  judge_one_hot_page_of_each();
  const auto installer = start();
  Json body = request(60'000);
  body["free_percent"] = 40;
  const auto done = ask(*installer, ControlOperation::snapshot_install, body);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->at("dropped"), 0);
  EXPECT_EQ(done->at("kept"), 3);
  EXPECT_EQ(done->at("kept_hot"), 0);
}

TEST_F(InstallerTest, TellsHowFarItIsAtTheDeadlineAndDoesNotBeginAnother) {
  holds_.store(true, std::memory_order_release);
  const auto installer = start();
  const auto going = ask(*installer, ControlOperation::snapshot_install, request(0));
  ASSERT_TRUE(going) << going.error().message;
  EXPECT_EQ(going->at("done"), false);
  EXPECT_EQ(going->at("installed"), 1);
  const auto other = ask(*installer, ControlOperation::snapshot_install, request(0, 8));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("snapshot 7 is being installed"), std::string::npos);
  holds_.store(false, std::memory_order_release);
  EXPECT_EQ(ask(*installer, ControlOperation::snapshot_install, request(60'000))->at("done"), true);
}

TEST_F(InstallerTest, AStorageThatIsDroppedMeanwhileIsLeftAloneAndTheOthersAreInstalled) {
  holds_.store(true, std::memory_order_release);
  const auto installer = start();
  ASSERT_TRUE(ask(*installer, ControlOperation::snapshot_install, request(0)));
  storages_[0]->state.store(static_cast<uint32_t>(StorageState::dropping),
                            std::memory_order_seq_cst);
  storages_[1]->state.store(static_cast<uint32_t>(StorageState::dropping),
                            std::memory_order_seq_cst);
  // Only the third storage is still installed. Its install is not given up.
  ControlAnswer last;
  installer->handle({ControlOperation::snapshot_install, request(60'000)}, last.reply());
  holds_.store(false, std::memory_order_release);
  const auto done = last.get();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->at("done"), true);
  EXPECT_EQ(done->at("installed"), 3);
  EXPECT_FALSE(done->contains("oldest_left"));
}

TEST_F(InstallerTest, AFailureIsTheAnswerAndTheNextSnapshotMayCome) {
  failing_ = 2;
  const auto installer = start();
  const auto failed = ask(*installer, ControlOperation::snapshot_install, request(60'000));
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("storage 2"), std::string::npos) << failed.error().message;
  EXPECT_FALSE(seen_.contains(3));
  failing_ = 0;
  Json next = request(60'000, 8);
  next["storages"] = Json::array();
  const auto done = ask(*installer, ControlOperation::snapshot_install, next);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->at("installed"), 0);
}

TEST_F(InstallerTest, GivesUpWhenTheNodeStops) {
  holds_.store(true, std::memory_order_release);
  const auto installer = start();
  ASSERT_TRUE(ask(*installer, ControlOperation::snapshot_install, request(0)));
  ControlAnswer waits;
  installer->handle({ControlOperation::snapshot_install, request(60'000)}, waits.reply());
  installer->stop();
  EXPECT_FALSE(waits.get());
  EXPECT_FALSE(ask(*installer, ControlOperation::snapshot_install, request(0)));
  EXPECT_FALSE(ask(*installer, ControlOperation::snapshot_align, {{"storage", 1}, {"keys", {1}}}));
}

/// An installer that divides storage 1 into four parts, and installs other storages whole.
class DividedInstallerTest : public InstallerTest {
 protected:
  DividedInstallerTest() {
    actions_.divide = [](WorkerContext&, StorageControl& storage, uint32_t parts) {
      EXPECT_EQ(parts, kThreads * 4);
      return storage.id == 1 ? std::vector<uint64_t>{10, 20, 30} : std::vector<uint64_t>();
    };
    actions_.install_seams = [this](WorkerContext&, StorageControl& storage, const InstallTask&,
                                    std::span<const uint64_t> bounds, const InstallReport& parts,
                                    InstallReport& report) {
      EXPECT_EQ(storage.id, 1u);
      EXPECT_EQ(bounds.size(), 3u);
      EXPECT_EQ(parts.installed, 4u) << "the parts of this storage only";
      EXPECT_EQ(working_, 0u) << "all parts have ended";
      report.dropped = 100;
      ++seams_;
      return Status::ok;
    };
  }
  Status install(WorkerContext&, StorageControl& storage, const InstallTask& task,
                 InstallReport& report) override {
    const std::lock_guard guard(mutex_);
    parts_[storage.id].insert(task.part.low);
    EXPECT_EQ(task.part.high_is_end, storage.id != 1 || task.part.low == 30);
    report.installed = 1;
    report.dropped = 1;
    return Status::ok;
  }
  /// Waits until `threads` threads have entered this function.
  void meet(uint32_t threads, const InstallTask& task) {
    working_.fetch_add(1, std::memory_order_seq_cst);
    // Counts arrivals, because a thread may have left again before another one looks.
    arrived_.fetch_add(1, std::memory_order_seq_cst);
    while (arrived_.load(std::memory_order_seq_cst) < threads && !task.cancelled()) {
      std::this_thread::yield();
    }
    const std::lock_guard guard(mutex_);
    most_ = std::max(most_, working_.load(std::memory_order_seq_cst));
  }

  std::mutex mutex_;
  std::map<uint32_t, std::set<uint64_t>> parts_;  // begins, by storage; guarded by mutex_
  std::atomic<uint32_t> working_{0};
  std::atomic<uint32_t> arrived_{0};
  uint32_t most_ = 0;  // most threads in `meet`; guarded by mutex_
  int seams_ = 0;
};

TEST_F(DividedInstallerTest, EachPartIsInstalledOnceAndTheSeamsLast) {
  for (const uint64_t threads : {1u, 3u, 100u}) {
    parts_.clear();
    seams_ = 0;
    const auto installer = start(kThreads);
    Json body = request(60'000);
    body["threads"] = threads;
    const auto done = ask(*installer, ControlOperation::snapshot_install, body);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->at("installed"), 4 + 2);
    EXPECT_EQ(done->at("dropped"), 4 + 2 + 100);
    EXPECT_EQ(seams_, 1);
    EXPECT_EQ(parts_[1], (std::set<uint64_t>{0, 10, 20, 30}));
    EXPECT_EQ(parts_[2], std::set<uint64_t>{0});
  }
}

TEST_F(DividedInstallerTest, AsManyThreadsWorkAsARequestPermitsAlsoALaterOne) {
  std::atomic<bool> holds{true};
  actions_.install = [&](WorkerContext& context, StorageControl& storage, const InstallTask& task,
                         InstallReport& report) {
    if (storage.id == 1 && task.part.low < 30) meet(3, task);
    const Status status = install(context, storage, task, report);
    if (storage.id == 1 && task.part.low < 30) {
      while (holds.load(std::memory_order_seq_cst) && !task.cancelled()) std::this_thread::yield();
      working_.fetch_sub(1, std::memory_order_seq_cst);
    }
    return status;
  };
  const auto installer = start(kThreads);
  ASSERT_TRUE(ask(*installer, ControlOperation::snapshot_install, request(0)));
  EXPECT_LE(working_.load(std::memory_order_seq_cst), 1u) << "one thread is permitted";
  Json body = request(0);
  body["threads"] = 3;
  ASSERT_TRUE(ask(*installer, ControlOperation::snapshot_install, body));
  while (working_.load(std::memory_order_seq_cst) < 3) std::this_thread::yield();
  holds.store(false, std::memory_order_seq_cst);
  body["timeout_ms"] = 60'000;
  const auto done = ask(*installer, ControlOperation::snapshot_install, body);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->at("installed"), 6);
  EXPECT_EQ(most_, 3u);
}

TEST_F(DividedInstallerTest, AFailedPartEndsTheOthers) {
  actions_.install = [&](WorkerContext&, StorageControl&, const InstallTask& task, InstallReport&) {
    if (task.part.low == 10) return Status::snapshot_unreadable;
    while (!task.cancelled()) std::this_thread::yield();
    return Status::unavailable;
  };
  const auto installer = start(kThreads);
  Json body = request(60'000);
  body["threads"] = 3;
  const auto done = ask(*installer, ControlOperation::snapshot_install, body);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("storage 1"), std::string::npos) << done.error().message;
  EXPECT_EQ(seams_, 0);
}

TEST_F(DividedInstallerTest, TheProcessorTimeOfItsThreadsIsCounted) {
  actions_.install = [](WorkerContext&, StorageControl&, const InstallTask& task, InstallReport&) {
    rusage usage{};
    const auto spent_us = [&] {
      getrusage(RUSAGE_THREAD, &usage);
      return usage.ru_utime.tv_sec * 1'000'000 + usage.ru_utime.tv_usec;
    };
    const auto before = spent_us();
    while (spent_us() < before + 20'000 && !task.cancelled()) {
    }
    return Status::ok;
  };
  actions_.install_seams = [](WorkerContext&, StorageControl&, const InstallTask&,
                              std::span<const uint64_t>, const InstallReport&,
                              InstallReport&) { return Status::ok; };
  const auto installer = start(kThreads);
  Json body = request(60'000);
  body["threads"] = 3;
  ASSERT_TRUE(ask(*installer, ControlOperation::snapshot_install, body));
  const auto index = static_cast<uint32_t>(SnapshotWork::install);
  EXPECT_GE(times_.user_us[index].load(std::memory_order_relaxed), 6u * 20'000);
  for (uint32_t other = 0; other < kSnapshotWorkCount; ++other) {
    EXPECT_TRUE(other == index || times_.user_us[other].load(std::memory_order_relaxed) == 0);
  }
}

TEST_F(InstallerTest, SaysWhereATreeMayBeCut) {
  const auto installer = start();
  const uint64_t large = 0xffff'ffff'ffff'ffff;
  const auto cuts = ask(*installer, ControlOperation::snapshot_align,
                        {{"storage", 1}, {"keys", {5u, 19u, large}}});
  ASSERT_TRUE(cuts) << cuts.error().message;
  EXPECT_EQ(cuts->at("keys"), (Json{0, 10, large / 10 * 10}));
  EXPECT_FALSE(ask(*installer, ControlOperation::snapshot_align, {{"storage", 1}, {"keys", {-5}}}));
  EXPECT_FALSE(
      ask(*installer, ControlOperation::snapshot_install, {{"snapshot", 7}, {"epoch", 1}}));
}

TEST_F(InstallerTest, PagesThatItRetiredAreReclaimedWhenItIsIdle) {
  const uint64_t before = cluster_.pool(0).free_count();
  actions_.install = [](WorkerContext& context, StorageControl&, const InstallTask&,
                        InstallReport&) {
    for (int i = 0; i < 10; ++i) context.pages().retire(context.pages().take());
    return Status::ok;
  };
  const auto installer = start();
  ASSERT_TRUE(ask(*installer, ControlOperation::snapshot_install, request(60'000)));
  while (cluster_.pool(0).free_count() != before) std::this_thread::yield();
}

}  // namespace
}  // namespace atolldb::test
