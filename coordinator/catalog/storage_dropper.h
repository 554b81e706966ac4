// Drops of storages, from the moment their names are hidden (rules R34, R60).
//
// A drop goes through four phases, in this order:
//  1. transactions: every thread of the cluster has begun later than the name was hidden, so no
//     transaction can still use the storage;
//  2. durability: everything that had committed by then is durable. Else "copy old to new, commit,
//     drop old" followed by a crash would lose both: the drop is durable, the copy is not;
//  3. log: the drop's record is in the DDL log, synced. From here on a start leaves it out;
//  4. pages: a node has released its volatile pages, and its slot is free.
//
// A drop is never taken back, and never given up while the cluster runs: what fails is tried again.
// The client is told after kDropPatience at the latest. A cluster that ends before phase 3 is over
// has the storage again after the next start; one that ends later does not.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "shared/error.h"
#include "shared/logging/logger.h"

namespace atolldb {

/// After this time the client is told that the drop goes on by itself.
inline constexpr std::chrono::milliseconds kDropPatience{60'000};

struct StorageDropperHooks {
  /// Waits for so long at most. True: every thread has begun later than `epoch`.
  std::function<bool(uint64_t epoch, std::chrono::milliseconds patience)> have_begun_after;
  /// The latest epoch with commits.
  std::function<uint64_t()> latest_commit_epoch;
  /// Waits for so long at most. True: the epoch is durable.
  std::function<bool(uint64_t epoch, std::chrono::milliseconds patience)> is_durable;
  /// Logs the drop of this storage, durably. An error ends the cluster.
  std::function<Result<void>(uint32_t id)> log;
  /// Returns the number of pages that were released.
  std::function<Result<uint64_t>(uint32_t id)> release;
  std::function<void(uint32_t id)> free_slot;
};

class StorageDropper {
 public:
  using Clock = std::chrono::steady_clock;
  /// Pages that were released; an error: the drop is not complete, and why. Called once.
  using Reply = std::function<void(Result<uint64_t> pages)>;

  StorageDropper(StorageDropperHooks hooks, Logger logger,
                 std::chrono::milliseconds patience = kDropPatience)
      : hooks_(std::move(hooks)), logger_(std::move(logger)), patience_(patience) {}
  StorageDropper(const StorageDropper&) = delete;
  StorageDropper& operator=(const StorageDropper&) = delete;
  ~StorageDropper() { stop(); }

  void start();
  /// Ends all waits. Clients whose drop is logged are told that it is done, the others that it is
  /// not.
  void stop();

  /// REQUIRES: the name is hidden, and `hidden_at` was the current epoch afterwards.
  void drop(uint32_t id, std::string name, uint64_t hidden_at, Reply reply);

  /// What the drop of this storage waits for; nothing: there is none under way. Any thread.
  std::optional<std::string> progress(uint32_t id) const;
  /// A storage of this name is hidden, and a start would bring it back: no other one may get the
  /// name yet. Any thread.
  bool is_unlogged(std::string_view name) const;

 private:
  enum class Phase : uint8_t { transactions, durability, log, pages, done };
  struct Drop {
    uint32_t id = 0;
    std::string name;
    uint64_t hidden_at = 0;
    Reply reply;  // null: it was told
    Clock::time_point tell_at;
    Phase phase = Phase::transactions;
    std::optional<uint64_t> durable_at;  // the epoch to wait for, once it is known
    std::string failure;                 // of the last attempt to release its pages
    Clock::time_point retry_at;
    Clock::duration pause{0};
    bool is_logged = false;
  };

  void run();
  /// One step of a drop; true: it has got further.
  bool advance(Drop& drop);
  bool log(Drop& drop);
  bool release(Drop& drop);
  void enter(Drop& drop, Phase phase);
  void tell_late(Drop& drop);
  static void tell_stopped(Drop& drop);
  static std::string text_of(const Drop& drop);

  const StorageDropperHooks hooks_;
  Logger logger_;
  const std::chrono::milliseconds patience_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  /// Guarded by mutex_; all members of a Drop change under it, and only by the thread.
  std::vector<std::unique_ptr<Drop>> drops_;
  bool ends_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace atolldb
