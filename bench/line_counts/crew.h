// Runs the workers of a cluster in one thread, in turns. Equal seeds give equal turns.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/common/random.h"
#include "bench/line_counts/line_counter.h"

namespace atolldb::bench {

/// What the workers do.
class CountedLoad {
 public:
  virtual ~CountedLoad() = default;
  /// Populates the database. Calls `become` of the crew before the part of each worker.
  virtual void populate() = 0;
  /// Runs the next transaction of this worker. Returns whether it has committed.
  virtual bool run_one(uint32_t worker) = 0;
  /// Does the coordinator's work of one epoch.
  virtual void tick() = 0;
  /// Returns how many attempts conflicts have ended.
  uint64_t aborts() const { return aborts_; }

 protected:
  uint64_t aborts_ = 0;
};

/// Each worker is a coroutine with a stack of its own. The crew changes from one to the next when
/// a transaction has ended, or also within transactions. A worker that would sleep or yield passes
/// its turn. The time is the number of accesses to memory: epochs have equal numbers of them.
class Crew {
 public:
  struct Options {
    /// Maximum accesses of a turn, which is random; 0: a turn is one transaction.
    uint32_t longest_turn = 0;
    /// Accesses of each worker in an epoch.
    uint64_t epoch_accesses = 25'000'000;
    uint64_t seed = 1;
  };

  Crew(LineCounter& counter, CountedLoad& load, const Options& options);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew();

  /// Populates the database. `become` names the worker of each part.
  void populate();
  /// Runs until each worker has committed `transactions`. Returns the number of all commits.
  uint64_t run(uint64_t transactions);
  uint64_t ticks() const { return ticks_; }

  // For the code of the workers.
  /// While the database is loaded: the next accesses are those of this worker.
  void become(uint32_t worker) { current_ = worker; }
  /// Gives the turn to the next worker.
  void pass();
  /// Returns whether a worker of `run` executes.
  bool is_running() const { return is_running_; }
  /// Counts an access of the current worker, and ends its turn if it is over.
  void access(const void* address, uint64_t bytes, bool is_write);

 private:
  static constexpr size_t kStackBytes = size_t{1} << 20;
  static constexpr uint32_t kNone = ~uint32_t{0};

  struct Member {
    ucontext_t context{};
    std::unique_ptr<std::byte[]> stack{};
    uint64_t commits = 0;
    bool has_ended = false;
  };

  static void enter();
  void work(uint32_t worker);
  uint32_t next_after(uint32_t worker) const;
  void begin_turn();
  void tick();

  LineCounter& counter_;
  CountedLoad& load_;
  Options options_;
  Random random_;
  std::vector<Member> members_;
  ucontext_t main_{};
  uint32_t current_ = kNone;  // worker whose accesses are counted
  bool is_running_ = false;
  bool is_inside_ = false;  // the counter or the clock executes: no turn may end
  uint64_t wanted_ = 0;     // commits of each worker
  uint32_t short_of_ = 0;   // workers with fewer commits
  uint64_t left_ = 0;       // accesses until the turn ends
  uint64_t until_tick_ = 0;
  uint64_t ticks_ = 0;
};

/// The crew whose workers execute; null: accesses are not counted.
extern Crew* active_crew;

}  // namespace atolldb::bench
