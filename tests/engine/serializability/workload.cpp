// Steps of an attempt of the random workload, and what the worker records of it. The operations are
// in operations.cpp.
#include "tests/engine/serializability/workload.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "shared/base/check.h"

namespace atolldb::test {

namespace {

/// Returns the time of a clock that all processes of the machine share.
int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Returns the VID that the log has for the last commit of the worker.
uint64_t logged_vid(const TestWorker& worker) {
  const TransactionLimits limits = TestClusterOptions{}.limits;
  const std::byte* log =
      WorkerLogRing::at(worker.local.get() + limits.log_offset(), limits.log_buffer)
          .block(0)
          .payload;
  for (;; log += reinterpret_cast<const LogRecord*>(log)->length) {
    const auto& record = *reinterpret_cast<const LogRecord*>(log);
    CHECK(record.length >= sizeof(LogRecord));
    if (record.type != LogType::filler) return Vid(record.vid).version();
  }
}

}  // namespace

std::string layered_key(uint32_t index) {
  // Groups of ten keys share sixteen bytes. The last but one key of a group is a prefix of the last
  // one.
  std::string key = "common__group_" + std::string(1, static_cast<char>('A' + index / 100)) +
                    std::string(1, static_cast<char>('a' + index / 10 % 10));
  const uint32_t member = index % 10;
  if (member == 0) return key;
  return key + std::string(member == 9 ? 9 : 1, static_cast<char>('0' + member - (member == 9)));
}

WorkloadStorages WorkloadStorages::create(TestCluster& cluster, const WorkloadOptions& options) {
  constexpr uint32_t kArrayPayload = 64;
  WorkloadStorages storages;
  storages.array = cluster.create("array", StorageType::array, kArrayPayload, options.keys).id;
  storages.tree = cluster.create("tree", StorageType::mastertree).id;
  storages.layered = cluster.create("layered", StorageType::mastertree).id;
  storages.counters = cluster.create("counters", StorageType::array, 8, kCounters).id;
  storages.counter_tree = cluster.create("counter_tree", StorageType::mastertree, 8).id;
  const MasterTree tree(cluster.view().control->storage(storages.counter_tree));
  const Status status = cluster.worker(0).run([&](Transaction& txn) {
    const uint64_t zero = 0;
    Status one = Status::ok;
    for (uint64_t i = 0; i < kCounters && one == Status::ok; ++i) {
      one = tree.insert(txn, ordered_key(i), std::as_bytes(std::span(&zero, 1)));
    }
    return one;
  });
  CHECK(status == Status::ok);
  return storages;
}

WorkloadWorker::WorkloadWorker(const WorkloadOptions& options, const WorkloadStorages& storages,
                               uint32_t index, TestWorker& worker)
    : options_(options),
      storages_(storages),
      name_(index + 1),
      worker_(worker),
      engine_(*worker.transaction),
      random_(options.seed * 1000 + index) {
  for (uint32_t i = 0; i < options.keys; ++i) layered_keys_.push_back(layered_key(i));
  CHECK(std::is_sorted(layered_keys_.begin(), layered_keys_.end()));
  worker.context->hot_records().use({.lock_from_failures = options.lock_from_failures});
}

template <typename Body>
void WorkloadWorker::attempt(Body&& body) {
  txn_ = HistoryTransaction{};
  txn_.name = make_value(name_, ++attempts_, 0);
  own_.clear();
  complaint_.clear();
  txn_.begin_ns = now_ns();
  Status status = engine_.begin();
  if (status == Status::ok) status = body();
  finish(status);
}

void WorkloadWorker::finish(Status status) {
  if (status == Status::ok) {
    status = engine_.commit();
  } else if (status == Status::user_abort) {
    const Status verified = engine_.commit_user_abort();
    if (verified != Status::ok) status = verified;
  } else {
    if (!is_retryable(status)) {
      first_problem_ = "an operation ended with " + std::string(to_string(status));
    }
    engine_.rollback(status);
  }
  txn_.end_ns = now_ns();
  if (!torn_.empty() && first_problem_.empty()) first_problem_ = torn_;
  if (status == Status::ok || status == Status::user_abort) {
    if (!complaint_.empty() && first_problem_.empty()) first_problem_ = complaint_;
    record_committed(status);
    ++commits_;
  } else {
    if (!is_retryable(status) && first_problem_.empty()) {
      first_problem_ = "a transaction ended with " + std::string(to_string(status));
    }
    // The reads of an aborted attempt do not count. Its writes must not be seen.
    txn_.reads.clear();
    history_.push_back(std::move(txn_));
    worker_.backoff.wait(1 + static_cast<uint32_t>(below(6)));
  }
  WorkerContext& context = *worker_.context;
  if (context.hints().is_due(context.current_epoch())) run_hints(context);
}

void WorkloadWorker::record_committed(Status status) {
  if (status == Status::ok) {
    const uint64_t vid = txn_.writes.empty() ? 0 : logged_vid(worker_);
    for (HistoryWrite& write : txn_.writes) write.order = vid;
    txn_.committed = true;
    history_.push_back(std::move(txn_));
    return;
  }
  // R20: a user abort counts as a commit without writes. Its writes are recorded as those of an
  // abort.
  HistoryTransaction reader = txn_;
  reader.name = make_value(name_, ++attempts_, 0);
  reader.writes.clear();
  reader.committed = true;
  txn_.reads.clear();
  history_.push_back(std::move(txn_));
  history_.push_back(std::move(reader));
}

std::string WorkloadWorker::run() {
  for (uint64_t i = 0; i < options_.attempts && first_problem_.empty(); ++i) {
    attempt([this] { return random_body(); });
  }
  return first_problem_;
}

std::string WorkloadWorker::read_all() {
  const uint64_t commits = commits_;
  reads_only_ = true;
  while (commits_ == commits && first_problem_.empty()) {
    attempt([this] {
      Status status = Status::ok;
      for (uint32_t i = 0; i < options_.keys && status == Status::ok; ++i) {
        status = array_get(i, nullptr);
      }
      for (const Store store : {Store::tree, Store::layered}) {
        if (status == Status::ok) status = scan(store, 0, options_.keys, true, options_.keys);
      }
      return status == Status::ok ? audit() : status;
    });
  }
  return first_problem_;
}

Status WorkloadWorker::random_body() {
  const uint64_t kind = below(20);
  if (options_.increments && kind < 3) return transfer();
  if (options_.increments && kind == 3) return audit();
  // Most operations of a transaction use the same storage, so that transactions conflict. Some
  // operations use another storage.
  const auto home = static_cast<Store>(below(3));
  for (uint64_t left = 1 + below(5); left > 0; --left) {
    const Store store = below(4) == 0 ? static_cast<Store>(below(3)) : home;
    const Status status = operate(store);
    if (status != Status::ok) return status;
    // With more threads than cores, transactions would rarely overlap without a yield.
    if (below(8) == 0) sched_yield();
  }
  return below(16) == 0 ? Status::user_abort : Status::ok;
}

uint64_t WorkloadWorker::next_value(uint64_t key, bool erases) {
  const uint64_t value = txn_.name + txn_.writes.size() + 1;
  if (const auto own = own_.find(key); own != own_.end()) {
    txn_.writes[own->second.write].intermediate = 1;
  }
  own_[key] = Own{erases ? kAbsent : value, txn_.writes.size()};
  txn_.writes.push_back({key, value, erases ? 1u : 0u, 0, 0});
  return value;
}

void WorkloadWorker::saw(uint64_t key, uint64_t value, bool predicate) {
  const auto own = own_.find(key);
  if (own == own_.end()) {
    txn_.reads.push_back({key, value, predicate ? 1u : 0u});
  } else if (own->second.value != value) {
    complain("does not see its own write of key " + std::to_string(key & 0xffffffff) +
             " in storage " + std::to_string(key >> 32));
  }
}

void WorkloadWorker::complain(const std::string& text) {
  if (complaint_.empty()) complaint_ = name_text(txn_.name) + " " + text;
}

/// Returns the value that the payload repeats. If an own pending write covers only a part of the
/// record, a doomed attempt may see that part over a foreign new payload. Therefore such a mixture
/// is an error only if the attempt commits.
uint64_t WorkloadWorker::whole(uint64_t key, const uint64_t* words, size_t bytes) {
  std::string wrong;
  if (bytes < 8 || bytes % 8 != 0) wrong = "a payload of " + std::to_string(bytes) + " bytes";
  for (size_t i = 1; i < bytes / 8 && wrong.empty(); ++i) {
    if (words[i] == words[0]) continue;
    wrong = "a torn record: " + name_text(words[0]) + " and " + name_text(words[i]);
  }
  if (wrong.empty()) return words[0];
  if (own_.contains(key)) {
    complain("read " + wrong);
  } else if (torn_.empty()) {
    torn_ = name_text(txn_.name) + " read " + wrong;
  }
  return kAbsent;
}

}  // namespace atolldb::test
