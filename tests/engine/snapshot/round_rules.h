// Bodies of tests of rounds in the snapshot cache (R57, R20, R24): how long a reader is in a round,
// and what ends its wait for a frame. A body returns an error text, or an empty text if all is
// right.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "engine/mastertree/cursor.h"
#include "tests/engine/snapshot/cold_storages.h"
#ifdef ATOLL_MUTANTS
#include "tests/engine/hooks/at_sync_point.h"
#endif

namespace atolldb::test {

/// The last engine call before a procedure sleeps or computes in the middle of its transaction.
enum class ColdCall {
  tree_get,
  tree_absent,
  tree_write,  // copies its page up
  tree_snapshot_get,
  cursor_next,
  cursor_back,
  cursor_get,
  cursor_end,
  array_get,
  array_find,
  array_write,
  array_cursor,
  heap_next
};

inline StorageType storage_of(ColdCall call) {
  if (call == ColdCall::heap_next) return StorageType::sequential;
  return call < ColdCall::array_get ? StorageType::mastertree : StorageType::array;
}

/// A cold storage with many more pages than the cache has frames.
class ColdReads {
 public:
  static constexpr uint64_t kRecords = 4000;

  explicit ColdReads(ColdCall call, bool has_clock = true)
      : stage_(storage_of(call), is_array(call) ? kRecords : 0, is_array(call) ? 200 : 0) {
    {
      ColdCluster first(stage_, 1);
      std::vector<GleanedLog> logs;
      for (uint64_t i = 0; i < kRecords; ++i) logs.push_back(log_of(call, i, first.next_epoch()));
      const std::string problem = first.take(std::move(logs));
      CHECK(problem.empty());
    }
    cold = std::make_unique<ColdCluster>(stage_, 2, has_clock);
  }

  Transaction& txn() { return *cold->cluster.worker(0).transaction; }
  /// Reads pages of all parts of the storage, in one attempt of the other worker.
  Status read_all() {
    Transaction& other = *cold->cluster.worker(1).transaction;
    Status status = other.begin();
    for (uint64_t i = 0; i < kRecords && status == Status::ok; i += 20) status = read(other, i);
    if (status == Status::ok) status = other.commit();
    other.rollback(status);
    return status;
  }
  Status read(Transaction& txn, uint64_t i) {
    std::array<std::byte, 256> buffer;
    uint32_t length = 0;
    if (cold->storage.type == StorageType::array) {
      return Array(cold->storage).get(txn, i, buffer.data());
    }
    if (cold->storage.type == StorageType::mastertree) {
      return MasterTree(cold->storage)
          .get(txn, bytes_of(big_endian(i)), buffer.data(), buffer.size(), length);
    }
    SequentialCursor cursor(Sequential(cold->storage), txn);
    Status status = Status::ok;
    for (uint64_t record = 0; record < kRecords && status == Status::ok; ++record) {
      status = cursor.next();
    }
    return status;
  }
  uint64_t waits(uint32_t worker) { return cold->cluster.metrics(0, worker).frame_stalls.get(); }

 private:
  static bool is_array(ColdCall call) { return storage_of(call) == StorageType::array; }
  static GleanedLog log_of(ColdCall call, uint64_t i, uint64_t epoch) {
    const std::string payload(200, '.');
    const Vid vid = Vid::make(epoch, 1);
    if (is_array(call)) return {LogType::update, big_endian(i), 0, payload, vid};
    if (storage_of(call) == StorageType::mastertree) {
      return {LogType::insert, big_endian(i), 0, payload, vid};
    }
    return {LogType::append, big_endian(epoch) + big_endian(i), 0, payload, vid};
  }

  SnapshotStage stage_;

 public:
  std::unique_ptr<ColdCluster> cold;
};

inline Status do_cold_call(ColdReads& reads, ColdCall call, MasterTreeCursor& cursor,
                           SequentialCursor& heap) {
  Transaction& txn = reads.txn();
  StorageControl& storage = reads.cold->storage;
  std::array<std::byte, 256> buffer;
  uint64_t index = 0;
  std::array<RecordRef, 1> refs;
  Status status = Status::ok;
  switch (call) {
    case ColdCall::tree_get:
    case ColdCall::tree_snapshot_get:
    case ColdCall::array_get:
      return reads.read(txn, 7);
    case ColdCall::tree_absent:
      status = reads.read(txn, ColdReads::kRecords + 1);
      return status == Status::not_found ? Status::ok : Status::invalid_argument;
    case ColdCall::tree_write:
      return MasterTree(storage).update(txn, bytes_of(big_endian(7)), bytes_of("new"));
    case ColdCall::cursor_next:
    case ColdCall::cursor_back:
      return cursor.next();
    case ColdCall::cursor_get:
      status = cursor.next();
      return status == Status::ok ? cursor.get(buffer.data(), buffer.size()) : status;
    case ColdCall::cursor_end:
      while (status == Status::ok) status = cursor.next();
      return status == Status::end_of_scan ? Status::ok : status;
    case ColdCall::array_find:
      return Array(storage).find_many(txn, std::array{uint64_t{7}}, refs);
    case ColdCall::array_write:
      return Array(storage).update(txn, 7, 0, 8, buffer.data());
    case ColdCall::array_cursor:
      return ArrayCursor(Array(storage), txn, 7, 9, false).next(index, buffer.data());
    case ColdCall::heap_next:
      return heap.next();
  }
  return Status::invalid_argument;
}

/// R57: a worker has made the call, and does other work in its transaction. The other worker reads
/// many times as many pages as there are frames, and must not wait for a frame.
inline std::string a_call_leaves_its_round(ColdCall call) {
  ColdReads reads(call);
  TransactionMode mode;
  if (call == ColdCall::tree_snapshot_get) mode.isolation = Isolation::snapshot_read_only;
  Transaction& txn = reads.txn();
  if (txn.begin(kMaxEpoch, mode) != Status::ok) return "no transaction";
  StorageControl& storage = reads.cold->storage;
  // Both cursors are created for any type of storage, but each is used only with its own type.
  MasterTreeCursor cursor(MasterTree(storage), txn, {}, call != ColdCall::cursor_back);
  SequentialCursor heap(Sequential(storage), txn);
  const Status status = do_cold_call(reads, call, cursor, heap);
  if (status != Status::ok) return "the call ended with " + std::string(to_string(status));
  if (reads.cold->cluster.metrics(0, 0).snapshot_reads.get() == 0) return "nothing was cold";
  const Status other = reads.read_all();
  if (other != Status::ok) return "the other one ended with " + std::string(to_string(other));
  if (reads.waits(1) != 0) return "the other one waited for a frame";
  return txn.commit() == Status::ok ? "" : "the commit failed";
}

#ifdef ATOLL_MUTANTS
/// R57: a reader has asked the device for a page, and the device is slow. The reader must hold back
/// no frame.
inline std::string a_reader_at_the_device_holds_no_frame_back() {
  NumberedPages pages(64);
  TestCache test(pages.files(), 8, 2);
  SnapshotReader reader(test.cache, 0);
  SnapshotReader other(test.cache, 1);
  const FrameWaitLimits limits{.patience = std::chrono::milliseconds(20)};
  other.use_limits(limits);
  const PageHeader* page = nullptr;
  if (reader.get(NumberedPages::pointer(1), page) != Status::ok) return "page 1 is not read";
  Status status = Status::ok;
  const AtFirst at_point(SyncPoint::reading_frames, [&] {
    for (uint32_t turn = 0; turn < 4 * pages.count() && status == Status::ok; ++turn) {
      const PageHeader* found = nullptr;
      status = other.get(NumberedPages::pointer(1 + turn % 50), found);
    }
    other.leave();
  });
  if (reader.get(NumberedPages::pointer(64), page) != Status::ok) return "page 64 is not read";
  if (!NumberedPages::is_page(page, 64)) return "another page was taken for page 64";
  if (!at_point.was_reached()) return "nothing was read";
  return status == Status::ok ? "" : "the other one ended with " + std::string(to_string(status));
}
#endif

#ifdef ATOLL_MUTANTS
/// R39: a thread without a slot copies a page. Meanwhile a reader needs all frames for other pages.
/// Another thread without a slot asks for a page that the cache lacks, and does not wait for this.
inline std::string a_page_is_not_replaced_while_it_is_copied() {
  NumberedPages pages(64);
  TestCache test(pages.files(), 8, 1);
  SnapshotReader reader(test.cache, 0);
  const PageHeader* page = nullptr;
  if (reader.get(NumberedPages::pointer(1), page) != Status::ok) return "page 1 is not read";
  reader.leave();
  constexpr uint32_t kEnough = 32;
  std::atomic<bool> goes{false};
  std::atomic<uint32_t> read{0};
  std::thread other([&] {
    while (!goes.load(std::memory_order_relaxed)) std::this_thread::yield();
    for (uint32_t number = 2; number <= pages.count(); ++number) {
      const PageHeader* found = nullptr;
      if (reader.get(NumberedPages::pointer(number), found) != Status::ok) break;
      read.fetch_add(1, std::memory_order_relaxed);
    }
    reader.leave();
  });
  IoBuffer copy(kPageBytes);
  bool is_copied = false;
  std::atomic<bool> is_absent{false};
  bool absence_waited = false;
  std::thread third;
  {
    const AtFirst at_point(SyncPoint::copying_frame, [&] {
      third = std::thread([&] {
        IoBuffer unused(kPageBytes);
        is_absent.store(!test.cache.copy_page(NumberedPages::pointer(64), unused.bytes().data()),
                        std::memory_order_relaxed);
      });
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (!is_absent.load(std::memory_order_relaxed) && !absence_waited) {
        absence_waited = std::chrono::steady_clock::now() > limit;
        std::this_thread::yield();
      }
      // The reader waits for the lock, so this wait ends by its time limit unless the lock was
      // left.
      goes.store(true, std::memory_order_relaxed);
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
      while (read.load(std::memory_order_relaxed) < kEnough &&
             std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
      }
    });
    is_copied = test.cache.copy_page(NumberedPages::pointer(1), copy.bytes().data());
    goes.store(true, std::memory_order_relaxed);
    other.join();
    if (third.joinable()) third.join();
  }
  if (!is_copied) return "the page was not copied";
  if (absence_waited) return "the search for an absent page waited for the lock";
  const auto* copied = reinterpret_cast<const PageHeader*>(copy.bytes().data());
  return NumberedPages::is_page(copied, 1) ? "" : "another page was copied";
}
#endif

/// The reason why a reader stops waiting for a frame, while another reader holds all frames back.
enum class FrameWaitEnd { deadline, failure, patience };

inline std::string a_wait_for_a_frame_ends(FrameWaitEnd end) {
  NumberedPages pages(64);
  TestCache test(pages.files(), 8, 2);
  SnapshotReader holder(test.cache, 0);
  SnapshotReader reader(test.cache, 1);
  std::atomic<uint32_t> state{static_cast<uint32_t>(ClusterState::running)};
  std::atomic<uint64_t> epoch{7};
  Counter waits;
  FrameWaitLimits limits{
      .state = &state, .epoch = &epoch, .patience = std::chrono::milliseconds(20), .waits = &waits};
  reader.use_limits(limits);
  const PageHeader* held = nullptr;
  if (holder.get(NumberedPages::pointer(1), held) != Status::ok) return "page 1 is not read";
  // The reader uses the other frames until all have been evicted once. Then it waits, because the
  // holder's round holds them back.
  const auto read_on = [&] {
    Status status = Status::ok;
    const PageHeader* page = nullptr;
    for (uint32_t turn = 0; turn < 4 * pages.count() && status == Status::ok; ++turn) {
      status = reader.get(NumberedPages::pointer(2 + turn % 60), page);
    }
    return status;
  };
  Status wanted = Status::read_conflict;
  if (end == FrameWaitEnd::deadline) {
    limits.deadline_epoch = 7;
    wanted = Status::deadline_exceeded;
  } else if (end == FrameWaitEnd::failure) {
    state.store(kClusterFailedFrom, std::memory_order_release);
    wanted = Status::cluster_failed;
  }
  const Status status = read_on();
  if (status != wanted) return "the wait ended with " + std::string(to_string(status));
  if (waits.get() != 1) return "the wait was not counted";
  if (!NumberedPages::is_page(held, 1)) return "a page changed that was looked at";
  limits = {};
  holder.leave();
  return read_on() == Status::ok ? "" : "the reader reads nothing any more";
}

/// R105: a reader calls `before_wait` before it asks the device for a page, and only then.
inline std::string a_reader_announces_its_waits() {
  NumberedPages pages(64);
  TestCache test(pages.files(), 8, 1);
  SnapshotReader reader(test.cache, 0);
  uint32_t calls = 0;
  const FrameWaitLimits limits{
      .before_wait = [](void* counter) { ++*static_cast<uint32_t*>(counter); }, .waiter = &calls};
  reader.use_limits(limits);
  const PageHeader* page = nullptr;
  if (reader.get(NumberedPages::pointer(1), page) != Status::ok) return "page 1 is not read";
  if (calls != 1) return "the read of page 1 was not announced";
  if (reader.get(NumberedPages::pointer(1), page) != Status::ok) return "page 1 is not found";
  if (calls != 1) return "a wait was announced for a cached page";
  if (reader.get(NumberedPages::pointer(64), page) != Status::ok) return "page 64 is not read";
  return calls == 2 ? "" : "the read of page 64 was not announced";
}

/// A transaction waits for a frame that another reader holds back. The transaction's time limit
/// ends the wait.
inline std::string a_time_limit_ends_the_wait_of_a_transaction_for_a_frame() {
  ColdReads reads(ColdCall::tree_get, false);
  TestCluster& cluster = reads.cold->cluster;
  TestWorker& holder = cluster.worker(1);
  const PageHeader* held = nullptr;
  const SnapshotPointer root(
      reads.cold->storage.root.snapshot_word.load(std::memory_order_relaxed));
  if (holder.snapshots->get(root, held) != Status::ok) return "the root is not read";
  Transaction& txn = reads.txn();
  if (txn.begin(cluster.view().control->epochs.current.load(std::memory_order_relaxed) + 1) !=
      Status::ok) {
    return "no transaction";
  }
  // The thread reads until it waits for a frame. Then the tick below exceeds the transaction's time
  // limit.
  Status status = Status::ok;
  std::atomic<bool> is_done{false};
  std::thread waiter([&] {
    for (uint64_t i = 0; i < ColdReads::kRecords && status == Status::ok; i += 20) {
      status = reads.read(txn, i);
    }
    is_done.store(true, std::memory_order_release);
  });
  while (reads.waits(0) == 0 && !is_done.load(std::memory_order_acquire)) std::this_thread::yield();
  cluster.tick();
  waiter.join();
  holder.snapshots->leave();
  txn.rollback(status);
  return status == Status::deadline_exceeded
             ? ""
             : "the wait ended with " + std::string(to_string(status));
}

/// A transaction without a time limit waits for a frame that another reader holds back. The attempt
/// ends, and `run` repeats it until there are frames.
inline std::string a_transaction_without_frames_is_repeated() {
  ColdReads reads(ColdCall::tree_get);
  TestCluster& cluster = reads.cold->cluster;
  TestWorker& holder = cluster.worker(1);
  const PageHeader* held = nullptr;
  const SnapshotPointer root(
      reads.cold->storage.root.snapshot_word.load(std::memory_order_relaxed));
  if (holder.snapshots->get(root, held) != Status::ok) return "the root is not read";
  Status status = Status::ok;
  std::atomic<bool> is_done{false};
  std::thread waiter([&] {
    status = cluster.worker(0).run([&](Transaction& txn) {
      Status one = Status::ok;
      for (uint64_t i = 0; i < ColdReads::kRecords && one == Status::ok; i += 20) {
        one = reads.read(txn, i);
      }
      return one;
    });
    is_done.store(true, std::memory_order_release);
  });
  const Counter& conflicts =
      cluster.metrics(0, 0).aborts[static_cast<uint32_t>(Status::read_conflict)];
  while (conflicts.get() == 0 && !is_done.load(std::memory_order_acquire)) {
    std::this_thread::yield();
  }
  const bool has_waited = conflicts.get() != 0;
  holder.snapshots->leave();
  waiter.join();
  if (!has_waited) return "it never waited";
  return status == Status::ok ? "" : "it ended with " + std::string(to_string(status));
}

}  // namespace atolldb::test
