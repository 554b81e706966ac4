#include "engine/api/procedure_attempt.h"

#include <atomic>
#include <utility>

#include "engine/api/current_attempt.h"
#include "shared/base/check.h"

namespace atolldb {

constinit thread_local CurrentAttempt current_attempt;

namespace {

/// Returns a number that this function never returns again in this process. A thread takes whole
/// blocks of numbers, so that attempts of different threads write no common cache line.
uint64_t next_number() {
  constexpr uint64_t kBlock = uint64_t{1} << 20;
  static constinit std::atomic<uint64_t> next_block{0};
  thread_local uint64_t last = 0;
  // Relaxed: only the uniqueness of the numbers matters. Number 0 of each block is not used.
  if ((last + 1) % kBlock <= 1) last = next_block.fetch_add(kBlock, std::memory_order_relaxed);
  return ++last;
}

/// The cursors of a thread keep their memory between attempts.
OpenCursors& cursors_of_thread() {
  thread_local OpenCursors cursors;
  return cursors;
}

}  // namespace

OpenCursors& cursors_of_attempt() {
  CHECK(current_attempt.transaction != nullptr);
  if (current_attempt.cursors == nullptr) current_attempt.cursors = &cursors_of_thread();
  return *current_attempt.cursors;
}

ProcedureAttempt::ProcedureAttempt(Transaction& transaction, std::vector<std::byte>& output,
                                   std::string& message) {
  DCHECK(current_attempt.number == CurrentAttempt::kNone);
  DCHECK(transaction.is_active());
  current_attempt.number = next_number();
  current_attempt.transaction = &transaction;
  current_attempt.control = transaction.worker().view().control;
  current_attempt.output = &output;
  current_attempt.message = &message;
}

ProcedureAttempt::~ProcedureAttempt() {
  DCHECK(current_attempt.number != CurrentAttempt::kNone);
  if (current_attempt.cursors != nullptr) current_attempt.cursors->close_all();
  current_attempt = {};
}

uint64_t ProcedureAttempt::number() const { return current_attempt.number; }

PrefetchRun::PrefetchRun(Transaction& transaction) {
  DCHECK(current_attempt.number == CurrentAttempt::kNone);
  DCHECK(current_attempt.prefetch_number == CurrentAttempt::kNone && transaction.is_active());
  current_attempt.prefetch_number = next_number();
  current_attempt.transaction = &transaction;
}

PrefetchRun::~PrefetchRun() {
  DCHECK(current_attempt.prefetch_number != CurrentAttempt::kNone);
  current_attempt = {};
}

uint64_t PrefetchRun::number() const { return current_attempt.prefetch_number; }

LibraryLoad::LibraryLoad(ControlSegment& control, std::string& message) {
  CHECK(current_attempt.number == CurrentAttempt::kNone);
  CHECK(current_attempt.load_number == CurrentAttempt::kNone);
  current_attempt.load_number = next_number();
  current_attempt.control = &control;
  current_attempt.message = &message;
}

LibraryLoad::~LibraryLoad() {
  CHECK(current_attempt.load_number != CurrentAttempt::kNone);
  current_attempt = {};
}

uint64_t LibraryLoad::number() const { return current_attempt.load_number; }

}  // namespace atolldb
