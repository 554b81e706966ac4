// The phases of a storage drop, from the moment its name is hidden (R34, R60).
//
// A drop goes through four phases, in this order:
//  1. transactions: wait until all begin epochs are later than the epoch in which the name was
//     hidden. Then no transaction can use the storage.
//  2. durability: wait until everything that had committed by then is durable. Without this phase,
//     a crash after "copy old to new, commit, drop old" could lose both storages: the drop would be
//     durable, and the copy would not.
//  3. log: write the drop's record to the DDL log and sync it. From then on a start-up skips the
//     storage.
//  4. pages: let a node release the volatile pages, then free the slot.
//
// A drop is never undone. As long as the cluster runs, the dropper retries to release the pages.
// The client gets its answer after kDropPatience at the latest. If the cluster ends before phase 3
// is over, the storage exists again after the next start-up. If it ends later, the storage is gone.
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

#include "shared/base/error.h"
#include "shared/logging/logger.h"

namespace atolldb {

/// After this time the client gets the answer that the drop continues in the background.
inline constexpr std::chrono::milliseconds kDropPatience{60'000};

struct StorageDropperHooks {
  /// Waits up to `patience`. Returns true if all begin epochs are later than `epoch`.
  std::function<bool(uint64_t epoch, std::chrono::milliseconds patience)> have_begun_after;
  /// Returns the latest epoch with commits.
  std::function<uint64_t()> latest_commit_epoch;
  /// Waits up to `patience`. Returns true if the epoch is durable.
  std::function<bool(uint64_t epoch, std::chrono::milliseconds patience)> is_durable;
  /// Logs the drop of this storage durably. An error ends the cluster.
  std::function<Result<void>(uint32_t id)> log;
  /// Releases the volatile pages of the storage. Returns their number.
  std::function<Result<uint64_t>(uint32_t id)> release;
  std::function<void(uint32_t id)> free_slot;
};

class StorageDropper {
 public:
  using Clock = std::chrono::steady_clock;
  /// Receives the number of released pages, or an error that says why the drop is not complete.
  /// Called once.
  using Reply = std::function<void(Result<uint64_t> pages)>;

  StorageDropper(StorageDropperHooks hooks, Logger logger,
                 std::chrono::milliseconds patience = kDropPatience)
      : hooks_(std::move(hooks)), logger_(std::move(logger)), patience_(patience) {}
  StorageDropper(const StorageDropper&) = delete;
  StorageDropper& operator=(const StorageDropper&) = delete;
  ~StorageDropper() { stop(); }

  void start();
  /// Ends all waits. Clients whose drop is logged get a success. All other clients get an error.
  void stop();

  /// Starts a drop. `hidden_at`: the current epoch, loaded after the name was hidden. REQUIRES: the
  /// name is hidden.
  void drop(uint32_t id, std::string name, uint64_t hidden_at, Reply reply);

  /// Returns what the drop of this storage waits for, or nothing if no drop is under way. Thread:
  /// any.
  std::optional<std::string> progress(uint32_t id) const;
  /// Returns whether a storage of this name is hidden but its drop is not logged. A start-up would
  /// restore that storage, so no other storage may get the name yet. Thread: any.
  bool is_unlogged(std::string_view name) const;
  /// Returns whether any drop is not logged yet. Thread: any.
  bool has_unlogged() const;

 private:
  enum class Phase : uint8_t { transactions, durability, log, pages, done };
  struct Drop {
    uint32_t id = 0;
    std::string name;
    uint64_t hidden_at = 0;
    Reply reply;  // null after the answer
    Clock::time_point tell_at;
    Phase phase = Phase::transactions;
    std::optional<uint64_t> durable_at;  // epoch that must be durable, once it is known
    std::string failure;                 // error of the last attempt to release its pages
    Clock::time_point retry_at;
    Clock::duration pause{0};
    bool is_logged = false;
  };

  void run();
  /// Does one step of a drop. Returns true if the drop has made progress.
  bool advance(Drop& drop);
  void log(Drop& drop);
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
  /// The vector is guarded by mutex_. Only the dropper's thread changes an added Drop. It holds
  /// mutex_ when it changes a member that other threads read (phase, failure, is_logged).
  std::vector<std::unique_ptr<Drop>> drops_;
  bool ends_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace atolldb
