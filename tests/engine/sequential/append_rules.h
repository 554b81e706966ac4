// Rules of sequential storages (R17). A body returns an error text, or an empty text if all is
// right. Needs the engine with sync points (`ATOLL_MUTANTS`).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/sequential/sequential.h"
#include "engine/transaction/storage_ops.h"
#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

class Heap {
 public:
  explicit Heap(Stage& stage) : heap_(stage.cluster().create("heap", StorageType::sequential)) {}

  Status append(Transaction& txn, size_t bytes = 8) const {
    const std::vector<std::byte> payload(bytes);
    return heap_.append(txn, payload);
  }
  Status count(Transaction& txn, uint64_t& count) const {
    SequentialCursor cursor(heap_, txn);
    Status status = Status::ok;
    for (count = 0; (status = cursor.next()) == Status::ok;) ++count;
    return status == Status::end_of_scan ? Status::ok : status;
  }
  StorageControl& storage() const { return heap_.storage(); }

 private:
  Sequential heap_;
};

/// A transaction scans, and then another worker appends. `list_is_there`: the other worker already
/// has a list.
inline std::string scan_then_foreign_append(bool list_is_there) {
  Stage stage;
  Problem problem;
  const Heap heap(stage);
  Transaction& a = stage.a();
  uint64_t count = 0;
  problem.expect(stage.cluster().worker(0).run([&](Transaction& txn) { return heap.append(txn); }),
                 Status::ok, "append");
  if (list_is_there) stage.commit_alone([&](Transaction& b) { return heap.append(b); });
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(heap.count(a, count), Status::ok, "scan");
  stage.commit_alone([&](Transaction& b) { return heap.append(b); });
  problem.expect(stage.array().put(a, 10, count), Status::ok, "write");
  problem.expect(a.commit(), Status::phantom, "commit of a scan that missed an append");
  return problem.text();
}

/// Worker a reads x and appends. Worker b scans without seeing the append, and writes x. Worker b
/// commits between a's verification and its append, so only a's list can show that the scan is out
/// of date.
inline std::string a_scan_commits_amid_an_append() {
  Stage stage;
  Problem problem;
  const Heap heap(stage);
  Transaction& a = stage.a();
  Transaction& b = stage.b();
  uint64_t value = 0;
  problem.expect(stage.cluster().worker(0).run([&](Transaction& txn) { return heap.append(txn); }),
                 Status::ok, "append");
  problem.expect(b.begin(), Status::ok, "begin of b");
  problem.expect(heap.count(b, value), Status::ok, "scan");
  problem.expect(stage.array().put(b, 10, 1), Status::ok, "b writes x");
  problem.expect(a.begin(), Status::ok, "begin of a");
  problem.expect(stage.array().get(a, 10, value), Status::ok, "a reads x");
  problem.expect(heap.append(a), Status::ok, "append");
  Status second = Status::ok;
  const AtFirst at_point(SyncPoint::verified, [&] { second = b.commit(); });
  problem.expect(a.commit(), Status::ok, "commit of the append");
  problem.expect(second, Status::phantom, "commit of a scan amid an append");
  return problem.text();
}

/// Worker b begins its scan after a's append has begun. The scan waits until the append is over.
inline std::string a_scan_begins_amid_an_append() {
  Stage stage;
  Problem problem;
  const Heap heap(stage);
  Transaction& a = stage.a();
  uint64_t value = 0;
  problem.expect(stage.cluster().worker(0).run([&](Transaction& txn) { return heap.append(txn); }),
                 Status::ok, "append");
  problem.expect(a.begin(), Status::ok, "begin of a");
  problem.expect(stage.array().get(a, 10, value), Status::ok, "a reads x");
  problem.expect(heap.append(a), Status::ok, "append");
  uint64_t seen = 0;
  Status second = Status::ok;
  std::atomic<bool> waits{false};
  std::atomic<bool> started{false};
  std::unique_ptr<Other> scanner;
  {
    const AtSyncPoints at_points([&](SyncPoint reached) {
      if (reached == SyncPoint::scanning_list) waits.store(true, std::memory_order_release);
      if (reached != SyncPoint::verified || started.exchange(true, std::memory_order_acq_rel))
        return;
      scanner = std::make_unique<Other>([&] {
        Transaction& b = stage.b();
        CHECK(b.begin() == Status::ok);
        second = heap.count(b, seen);
        if (second == Status::ok) second = stage.array().put(b, 20, seen);
        second = finish(b, second);
      });
      scanner->wait_until([&] { return waits.load(std::memory_order_acquire); });
    });
    problem.expect(a.commit(), Status::ok, "commit of the append");
    scanner->join();
  }
  problem.expect(second, Status::ok, "commit of the scan");
  problem.expect(seen == 2,
                 "a scan amid an append saw " + std::to_string(seen) + " records, not 2");
  return problem.text();
}

/// Page numbers are consecutive from 0, so the scan detects a missing page.
inline std::string a_missing_page_is_noticed(uint64_t number) {
  Stage stage;
  Problem problem;
  const Heap heap(stage);
  uint64_t count = 0;
  for (int i = 0; i < 6; ++i) {
    stage.commit_alone([&](Transaction& b) { return heap.append(b, 2000); });
  }
  const ClusterView& view = stage.cluster().view();
  const auto directory = [&](VolatilePointer page, uint32_t entry) {
    const auto* words = reinterpret_cast<SequentialDirectory*>(view.resolve(page));
    return VolatilePointer(words->entries[entry].load(std::memory_order_acquire));
  };
  const VolatilePointer lists = directory(heap.storage().root.load_acquire(), 1);
  auto* list = reinterpret_cast<SequentialListHead*>(view.resolve(directory(lists, 0)));
  // Removes the page with this number, so that the list begins or continues one page later.
  std::atomic<uint64_t>* link = &list->first;
  for (uint64_t i = 0;; ++i) {
    const VolatilePointer word(link->load(std::memory_order_acquire));
    auto* page = reinterpret_cast<SequentialPage*>(view.resolve(word));
    if (i == number) {
      link->store(page->next.load(std::memory_order_acquire), std::memory_order_release);
      break;
    }
    link = &page->next;
  }
  Transaction& a = stage.a();
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(heap.count(a, count), Status::read_conflict, "scan over a missing page");
  a.rollback(Status::read_conflict);
  return problem.text();
}

}  // namespace atolldb::test
