// Tests of a node's installer, which gets the requests of a coordinator. The changes to pages are
// fakes.
#include "soc/installer/installer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <set>

#include "tests/engine/log/memory_file_system.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

/// Receives an answer, and waits for it.
class Answer {
 public:
  ControlReply reply() const {
    return [promise = promise_](Result<Json> result) { promise->set_value(std::move(result)); };
  }
  Result<Json> get() { return future_.get(); }

 private:
  std::shared_ptr<std::promise<Result<Json>>> promise_ =
      std::make_shared<std::promise<Result<Json>>>();
  std::future<Result<Json>> future_ = promise_->get_future();
};

class InstallerTest : public testing::Test {
 protected:
  InstallerTest() : cluster_(1, 1) {
    for (const char* name : {"one", "two", "three"}) {
      storages_.push_back(&cluster_.create(name, StorageType::mastertree));
    }
    PageVisitorSettings settings;
    settings.view = &cluster_.view();
    settings.pool = &cluster_.pool(0);
    settings.metrics = &cluster_.metrics(0, 1);
    settings.snapshots = &cache_;
    settings.slot = 1;
    settings.write_set = TestClusterOptions().limits.write_set;
    visitor_ = std::make_unique<PageVisitor>(settings);
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

  std::unique_ptr<Installer> start() {
    auto installer = std::make_unique<Installer>(cluster_.view(), *visitor_,
                                                 make_silent_logger("install"), actions_);
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
    Answer answer;
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
  SnapshotCache cache_{frames_.get(), 16 * kPageBytes, 4, snapshot_files_, [](const Error&) {}};
  TestCluster cluster_;
  std::vector<StorageControl*> storages_;
  std::unique_ptr<PageVisitor> visitor_;
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
  Answer last;
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
  Answer waits;
  installer->handle({ControlOperation::snapshot_install, request(60'000)}, waits.reply());
  installer->stop();
  EXPECT_FALSE(waits.get());
  EXPECT_FALSE(ask(*installer, ControlOperation::snapshot_install, request(0)));
  EXPECT_FALSE(ask(*installer, ControlOperation::snapshot_align, {{"storage", 1}, {"keys", {1}}}));
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
