#include "engine/install/install.h"

#include <algorithm>

#include "engine/format/sequential_page.h"
#include "engine/install/drop.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// Installs a snapshot in one sequential storage. The root page of the snapshot leads to all its
/// records. The installer stores this page beside the volatile root and removes pages from the
/// heads of the workers' lists. It takes no locks: a page that has a successor never changes, and
/// only this installer changes the head of a list of two or more pages (R17).
class SequentialInstaller {
 public:
  SequentialInstaller(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                      InstallReport& report)
      : worker_(worker), storage_(storage), storage_id_(storage.id), task_(task), report_(report) {}

  Status run() {
    Status status = enter();
    if (status == Status::ok) status = install_root();
    const ClusterView& view = worker_.view();
    for (uint32_t node = 0; status == Status::ok && node < view.node_count; ++node) {
      const uint32_t workers = view.shared[node]->worker_count;
      for (uint32_t ordinal = 0; status == Status::ok && ordinal < workers; ++ordinal) {
        status = shorten(node, ordinal);
      }
    }
    // A dropped storage has lost all its pointers, so nothing is left to install.
    return status == Status::storage_not_found ? Status::ok : status;
  }

 private:
  static constexpr uint32_t kPagesAtOnce = 64;

  Status enter() { return begin_turn(worker_, storage_, storage_id_, task_); }

  Status install_root() {
    std::atomic<uint64_t>& word = storage_.root.snapshot_word;
    if (task_.root.is_null()) {
      // The snapshot has no appends. Appends are never removed, so memory has none up to the
      // snapshot's epoch either.
      report_left(SnapshotPointer(word.load(std::memory_order_relaxed)), report_);
      return Status::ok;
    }
    const PageHeader* root = nullptr;
    Status status = worker_.snapshot_page(task_.root, root);
    if (status == Status::snapshot_unreadable) {  // drops no page (R56)
      worker_.leave_snapshots();
      report_left(SnapshotPointer(word.load(std::memory_order_relaxed)), report_);
      return Status::ok;
    }
    // Uses the epoch in the root page, as scans do. The root page may be of an older snapshot.
    const Vid newest(status == Status::ok ? root->max_removed_vid.load(std::memory_order_relaxed)
                                          : 0);
    worker_.leave_snapshots();
    if (status != Status::ok) return status;
    covered_ = std::min(task_.epoch, newest.epoch());
    status = enter();
    if (status != Status::ok) return status;
    // Release: the word is stored before any list is shortened. A scan loads it before and after it
    // opens the lists (R17).
    word.store(task_.root.word(), std::memory_order_release);
    ++report_.installed;
    return Status::ok;
  }

  /// Drops pages at the head of a worker's list.
  Status shorten(uint32_t node, uint32_t ordinal) {
    for (bool ended = false; !ended;) {
      const Status status = enter();
      if (status != Status::ok) return status;
      SequentialListHead* list = find_list(node, ordinal);
      ended = list == nullptr || !drop_some(*list);
    }
    return Status::ok;
  }

  SequentialListHead* find_list(uint32_t node, uint32_t ordinal) {
    DCHECK(node < SequentialDirectory::kEntries && ordinal < SequentialDirectory::kEntries);
    auto* root = page_at<SequentialDirectory>(storage_.root.volatile_word);
    if (root == nullptr) return nullptr;
    auto* lists = page_at<SequentialDirectory>(root->entries[node]);
    return lists == nullptr ? nullptr : page_at<SequentialListHead>(lists->entries[ordinal]);
  }
  template <typename Page>
  Page* page_at(const std::atomic<uint64_t>& word) {
    // Acquire pairs with the release of the thread that installed the page.
    const VolatilePointer pointer(word.load(std::memory_order_acquire));
    return pointer.is_null() ? nullptr : reinterpret_cast<Page*>(worker_.view().resolve(pointer));
  }

  /// Drops a few pages. Returns false if no more can be dropped.
  bool drop_some(SequentialListHead& list) {
    auto* first = page_at<SequentialPage>(list.first);
    if (first == nullptr) return false;
    SequentialPage* kept = first;
    uint32_t count = 0;
    for (; count < kPagesAtOnce; ++count) {
      // A page without a successor is the newest one; its worker still writes to it.
      auto* next = page_at<SequentialPage>(kept->next);
      if (next == nullptr || !is_covered(*kept) || !may_drop(task_, kept->header, report_)) {
        break;  // keeps this page and all pages after it
      }
      kept = next;
    }
    if (count == 0) return false;
    DCHECK(kept != first && kept->number > first->number);
    // Two release stores, in this order. They pair with the acquire loads of a scan, which loads
    // `first` and then `first_number`.
    list.first_number.store(kept->number, std::memory_order_release);
    list.first.store(kept->header.self, std::memory_order_release);
    // Running scans may continue through the dropped pages. Those stay readable until all these
    // scans end (R9).
    while (first != kept) {
      auto* next = page_at<SequentialPage>(first->next);
      DCHECK(next != nullptr);
      worker_.pages().retire(&first->header);
      ++report_.dropped;
      first = next;
    }
    return count == kPagesAtOnce;
  }

  /// Returns whether the snapshot has every record of the page. REQUIRES: the page has a successor.
  bool is_covered(SequentialPage& page) const {
    DCHECK(page.next.load(std::memory_order_relaxed) != 0);
    const uint32_t count = page.header.version().count();
    uint32_t offset = 0;
    for (uint32_t i = 0; i < count; ++i) {
      DCHECK(offset + sizeof(SequentialRecord) <= SequentialPage::kDataBytes);
      const auto* record = reinterpret_cast<const SequentialRecord*>(page.data + offset);
      if (!is_in_snapshot(Vid(record->vid), covered_, worker_.view().control->epochs)) return false;
      offset += SequentialRecord::bytes_for(static_cast<uint32_t>(record->payload_bytes));
    }
    return true;
  }

  WorkerContext& worker_;
  StorageControl& storage_;
  const uint32_t storage_id_;
  const InstallTask& task_;
  InstallReport& report_;
  uint64_t covered_ = 0;  // epoch up to which the snapshot has all records
};

}  // namespace

Status install_sequential(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                          InstallReport& report) {
  if (task.part.low != 0) return Status::ok;  // the first part is the whole storage
  return SequentialInstaller(worker, storage, task, report).run();
}

}  // namespace atolldb
