// Bodies of tests of dropping storages (R34, R60). A body returns an error text, or an empty text
// if all is right.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "coordinator/catalog/storage_dropper.h"

namespace atolldb::test {

/// A storage dropper whose cluster is simulated by the test.
class DropStage {
 public:
  explicit DropStage(std::chrono::milliseconds patience = kDropPatience)
      : dropper_(hooks(), make_silent_logger("drops"), patience) {
    dropper_.start();
  }

  std::future<Result<uint64_t>> drop(uint32_t id) {
    auto told = std::make_shared<std::promise<Result<uint64_t>>>();
    auto answer = told->get_future();
    dropper_.drop(id, "storage", 5, [told](Result<uint64_t> pages) { told->set_value(pages); });
    return answer;
  }
  /// Waits until the dropper has asked three more times about this condition, or has continued
  /// without it. Any action that the dropper takes too early has then happened.
  void await_questions(const std::string& about) {
    std::unique_lock lock(mutex_);
    const size_t before = count(about);
    changed_.wait(lock, [&] {
      // The dropper asks for the latest commit when it continues with the next phase.
      const bool goes_on = about == "begun" && count("commits") != 0;
      return goes_on || count(about) >= before + 3 || count("log") + count("release") != 0;
    });
  }
  void await(const std::string& event, size_t times = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count(event) >= times; });
  }
  void set_begun() { set(&DropStage::have_begun_); }
  void set_durable() { set(&DropStage::is_durable_); }
  void set_releasable(bool is_releasable) {
    const std::lock_guard guard(mutex_);
    is_releasable_ = is_releasable;
  }
  void set_loggable(bool is_loggable) {
    const std::lock_guard guard(mutex_);
    is_loggable_ = is_loggable;
  }
  bool has(const std::string& event) {
    const std::lock_guard guard(mutex_);
    return count(event) != 0;
  }
  /// Returns the first event of each kind, in order.
  std::vector<std::string> events() {
    const std::lock_guard guard(mutex_);
    std::vector<std::string> first;
    for (const std::string& event : events_) {
      if (std::ranges::find(first, event) == first.end()) first.push_back(event);
    }
    return first;
  }
  StorageDropper& dropper() { return dropper_; }

 private:
  StorageDropperHooks hooks() {
    StorageDropperHooks hooks;
    hooks.have_begun_after = [this](uint64_t epoch, std::chrono::milliseconds) {
      return note(epoch == 5 ? "begun" : "begun after a wrong epoch", &DropStage::have_begun_);
    };
    hooks.latest_commit_epoch = [this] {
      note("commits", &DropStage::is_releasable_);
      return uint64_t{7};
    };
    hooks.is_durable = [this](uint64_t epoch, std::chrono::milliseconds) {
      return note(epoch == 7 ? "durable" : "a wrong epoch is durable", &DropStage::is_durable_);
    };
    hooks.log = [this](uint32_t) -> Result<void> {
      if (note("log", &DropStage::is_loggable_)) return {};
      return make_error(ExitCode::durability, "ddl log: no device");
    };
    hooks.release = [this](uint32_t) -> Result<uint64_t> {
      if (note("release", &DropStage::is_releasable_)) return uint64_t{3};
      return make_error(ExitCode::failed, "node 0: no answer");
    };
    hooks.free_slot = [this](uint32_t) { note("free", &DropStage::is_releasable_); };
    return hooks;
  }
  bool note(const char* event, bool DropStage::* flag) {
    const std::lock_guard guard(mutex_);
    events_.emplace_back(event);
    changed_.notify_all();
    return this->*flag;
  }
  void set(bool DropStage::* flag) {
    const std::lock_guard guard(mutex_);
    this->*flag = true;
  }
  size_t count(const std::string& event) const {
    return static_cast<size_t>(std::ranges::count(events_, event));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> events_;
  bool have_begun_ = false;
  bool is_durable_ = false;
  bool is_loggable_ = true;
  bool is_releasable_ = true;
  StorageDropper dropper_;  // declared last, because its thread uses all members above
};

/// Phases of a drop, in order: the name is hidden, users have ended, their commits are durable.
/// Then the drop is logged, pages are released, and the slot is free.
inline std::string a_drop_goes_through_its_phases_in_their_order() {
  DropStage stage;
  auto answer = stage.drop(1);
  stage.await_questions("begun");
  if (stage.has("commits")) return "it goes on while a transaction may still use the storage";
  if (stage.has("release")) return "its pages go while a transaction may still use them";
  if (!stage.dropper().is_unlogged("storage")) return "the name is free before the drop is logged";
  stage.set_begun();
  stage.await_questions("durable");
  if (stage.has("log")) return "it is logged while commits before it are not durable";
  if (stage.has("release")) return "its pages go before it is logged";
  stage.set_durable();
  const Result<uint64_t> pages = answer.get();
  if (!pages || *pages != 3) return "it does not answer how many pages it has released";
  const std::vector<std::string> expected = {"begun", "commits", "durable",
                                             "log",   "release", "free"};
  if (stage.events() != expected) {
    std::string text = "the order is";
    for (const std::string& event : stage.events()) text += " " + event;
    return text;
  }
  return stage.dropper().is_unlogged("storage") ? "the name stays taken" : "";
}

}  // namespace atolldb::test
