#include "bench/line_counts/crew.h"

#include <utility>

#include "shared/base/check.h"

namespace atolldb::bench {

Crew* active_crew = nullptr;

Crew::Crew(LineCounter& counter, CountedLoad& load, const Options& options)
    : counter_(counter),
      load_(load),
      options_(options),
      random_(options.seed),
      members_(counter.workers()),
      until_tick_(options.epoch_accesses * counter.workers()) {
  CHECK(active_crew == nullptr);
  active_crew = this;
}

Crew::~Crew() { active_crew = nullptr; }

void Crew::populate() {
  load_.populate();
  current_ = kNone;
}

uint64_t Crew::run(uint64_t transactions) {
  CHECK(!is_running_ && transactions != 0);
  wanted_ = transactions;
  short_of_ = counter_.workers();
  for (Member& member : members_) {
    member.commits = 0;
    member.has_ended = false;
    if (member.stack == nullptr) {
      member.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
    }
    CHECK(getcontext(&member.context) == 0);
    member.context.uc_stack.ss_sp = member.stack.get();
    member.context.uc_stack.ss_size = kStackBytes;
    member.context.uc_link = &main_;
    makecontext(&member.context, enter, 0);
  }
  current_ = 0;
  is_running_ = true;
  begin_turn();
  CHECK(swapcontext(&main_, &members_[0].context) == 0);
  is_running_ = false;
  current_ = kNone;
  uint64_t commits = 0;
  for (const Member& member : members_) commits += member.commits;
  return commits;
}

void Crew::enter() {
  Crew& crew = *active_crew;
  crew.work(crew.current_);
}

void Crew::work(uint32_t worker) {
  Member& self = members_[worker];
  while (short_of_ != 0) {
    counter_.begin_transaction(worker);
    if (load_.run_one(worker) && ++self.commits == wanted_) --short_of_;
    if (options_.longest_turn == 0 && short_of_ != 0) pass();
  }
  self.has_ended = true;
  current_ = next_after(worker);
  if (current_ == worker) return;  // the last one: to `run`
  begin_turn();
  CHECK(setcontext(&members_[current_].context) == 0);
}

/// Returns the next worker that has not ended, or `worker` if there is none.
uint32_t Crew::next_after(uint32_t worker) const {
  uint32_t next = worker;
  do {
    next = (next + 1) % counter_.workers();
  } while (next != worker && members_[next].has_ended);
  return next;
}

void Crew::begin_turn() {
  const bool ends = options_.longest_turn != 0;
  left_ = ends ? random_.uniform(1, options_.longest_turn) : ~uint64_t{0};
}

void Crew::pass() {
  CHECK(is_running_);
  const uint32_t from = current_;
  current_ = next_after(from);
  begin_turn();
  if (current_ != from) {
    CHECK(swapcontext(&members_[from].context, &members_[current_].context) == 0);
  }
}

void Crew::access(const void* address, uint64_t bytes, bool is_write) {
  if (current_ == kNone) return;
  if (is_inside_) {
    // The clock's own accesses. The counter itself is not instrumented.
    if (current_ == counter_.clock()) counter_.access(current_, address, bytes, is_write);
    return;
  }
  is_inside_ = true;
  counter_.access(current_, address, bytes, is_write);
  if (--until_tick_ == 0) tick();
  is_inside_ = false;
  if (is_running_ && --left_ == 0) pass();
}

void Crew::tick() {
  until_tick_ = options_.epoch_accesses * counter_.workers();
  ++ticks_;
  const uint32_t worker = std::exchange(current_, counter_.clock());
  counter_.begin_transaction(current_);
  load_.tick();
  current_ = worker;
}

}  // namespace atolldb::bench
