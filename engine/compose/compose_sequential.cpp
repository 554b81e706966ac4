#include "engine/compose/compose.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/compose/log_input.h"
#include "engine/compose/page_output.h"
#include "engine/format/sequential_page.h"
#include "shared/base/try.h"

namespace atolldb {

namespace {

/// Number of pages per call of the writer. Composers take turns at the writer, so large batches
/// keep the runs long.
constexpr uint32_t kBatchPages = 64;

class SequentialComposer {
 public:
  explicit SequentialComposer(const ComposeTask& task)
      : task_(task),
        storage_id_(task.plan.storages[task.storage].id),
        pages_(task.base, task.writer, &task.writer_mutex, storage_id_, task.cancelled),
        logs_(task.logs, pages_, storage_id_),
        batch_(kBatchPages) {}

  Result<ComposedPartition> run() {
    if (task_.plan.rewrites && task_.partition == task_.plan.reducers.front().node) {
      ATOLL_TRY(copy_base());
    }
    while (logs_.current() != nullptr) {
      ATOLL_TRY(add(*logs_.current()));
      ATOLL_TRY(logs_.advance());
    }
    ATOLL_TRY(flush());
    return composed_partition(task_, std::move(composed_), pages_, logs_);
  }

 private:
  SequentialPage* page() {
    DCHECK(used_ > 0 && used_ <= kBatchPages);
    return batch_[used_ - 1].as<SequentialPage>();
  }

  /// Copies all runs of the base, the oldest first. If a root page cannot be read, its runs and
  /// those of older root pages are not copied. Unless the plan salvages, combine_roots then makes
  /// the new root refer to that page. combine_roots relies on the finding of this composer, because
  /// a second read of the page may succeed.
  Result<void> copy_base() {
    std::vector<SequentialRun> runs;
    PageBuffer buffer;
    SnapshotPointer at = task_.plan.storages[task_.storage].base_root;
    while (!at.is_null()) {
      ATOLL_ASSIGN(auto found, find(at, buffer, "all appends of the root pages before"));
      if (!found) {
        if (!task_.plan.salvages) composed_.push_back(lost_root(at));
        break;
      }
      const auto& root = *buffer.as<SequentialSnapshotRoot>();
      for (uint64_t i = root.count; i-- > 0;) runs.push_back(root.runs[i]);
      at = SnapshotPointer(root.previous);
    }
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      ATOLL_TRY(copy_run(*run));
    }
    return {};
  }

  Result<void> copy_run(const SequentialRun& run) {
    for (uint64_t i = 0; i < run.pages; ++i) {
      ATOLL_TRY(begin_page());
      const SnapshotPointer at(run.first_page + i);
      ATOLL_ASSIGN(auto found, find(at, batch_[used_ - 1],
                                    fmt::format("appends of epochs {} to {}", run.first_epoch,
                                                run.last_epoch)));
      if (!found) {
        --used_;
        ATOLL_TRY(keep_lost(at, run));
        continue;
      }
      // The epochs of a part of a run are unknown. So the part gets those of the whole run, and a
      // scan reads the epochs of the records in it.
      run_.low = run.first_epoch;
      run_.high = run.last_epoch;
      run_.records += batch_[used_ - 1].header().version().count();
    }
    ATOLL_TRY(flush());
    may_follow_ = false;
    return {};
  }

  /// Reads a page. If the page cannot be read, reports it, fills `into` with zeros and returns
  /// false.
  Result<bool> find(SnapshotPointer at, PageBuffer& into, const std::string& range) {
    ATOLL_ASSIGN(auto found,
                 pages_.find(at, into, PageType::sequential, PageType::sequential, 0, false));
    if (found.is_readable) return true;
    if (!task_.plan.salvages) pages_.count_stand_in();
    if (task_.on_unreadable) task_.on_unreadable({storage_id_, at, 0, range, found.reason});
    return false;
  }

  /// Makes an unreadable page of a run a run of its own, at its old place (R56). A salvage leaves
  /// the page out.
  Result<void> keep_lost(SnapshotPointer page, const SequentialRun& run) {
    ATOLL_TRY(flush());
    may_follow_ = false;
    if (task_.plan.salvages) return {};
    composed_.push_back({run.first_epoch, page, 0, 1, run.last_epoch, 0});
    return {};
  }

  Result<void> add(const LogRecord& log) {
    if (log.type != LogType::append) {
      return logs_.wrong(LogInput::key_of(log), "a sequential storage has appends only");
    }
    const uint32_t bytes = SequentialRecord::bytes_for(log.payload_bytes);
    if (bytes > SequentialPage::kDataBytes) {
      return logs_.wrong(LogInput::key_of(log), "its payload is longer than a page");
    }
    if (used_ == 0 || !page()->has_room(bytes)) {
      ATOLL_TRY(begin_page());
    }
    DCHECK(page()->has_room(bytes));
    auto* record = reinterpret_cast<SequentialRecord*>(page()->data + page()->used_bytes);
    record->vid = Vid(log.vid).version();
    record->payload_bytes = log.payload_bytes;
    if (log.payload_bytes != 0) std::memcpy(record->payload(), log.payload(), log.payload_bytes);
    page()->used_bytes += bytes;
    PageHeader& header = page()->header;
    header.version_word.store(PageVersion::make(0, header.version().count() + 1, 0).word(),
                              std::memory_order_relaxed);
    const uint64_t epoch = Vid(log.vid).epoch();
    DCHECK(run_.records == 0 || epoch >= run_.high);
    if (run_.records++ == 0) run_.low = epoch;
    run_.high = epoch;  // epochs ascend
    return {};
  }

  Result<void> begin_page() {
    if (used_ == kBatchPages) {
      ATOLL_TRY(flush());
    }
    CHECK(used_ < kBatchPages);
    batch_[used_++].header().type = PageType::sequential;
    return {};
  }

  /// Writes the batch. The batch extends the last run if it follows that run in the file and
  /// continues its epochs. Otherwise the batch becomes a new run.
  Result<void> flush() {
    if (used_ == 0) return {};
    bool follows = false;
    ATOLL_TRY(pages_.write_run({batch_.data(), used_}, [&](SnapshotPointer first) {
      follows = may_follow_ && !composed_.empty() && end_of(composed_.back()) == first.word();
      const uint64_t number = follows ? composed_.back().pages : 0;
      for (uint32_t i = 0; i < used_; ++i) batch_[i].as<SequentialPage>()->number = number + i;
      run_.page = first;
      run_.pages = used_;
      CHECK(!follows || number > 0);
    }));
    CHECK(!run_.page.is_null());
    if (follows) {
      ComposedPage& last = composed_.back();
      last.pages += run_.pages;
      last.high = run_.high;
      last.records += run_.records;
    } else {
      composed_.push_back(run_);
    }
    run_ = {};
    may_follow_ = true;
    for (uint32_t i = 0; i < used_; ++i) batch_[i] = {};
    used_ = 0;
    return {};
  }

  /// Returns the word of the page after a run.
  static uint64_t end_of(const ComposedPage& run) { return run.page.word() + run.pages; }

  const ComposeTask& task_;
  uint32_t storage_id_;
  PageOutput pages_;
  LogInput logs_;
  std::vector<PageBuffer> batch_;
  uint32_t used_ = 0;  // pages of the batch in use
  ComposedPage run_;   // the run in the batch
  // True if the next batch continues the epochs of the last run, so that it may extend that run.
  bool may_follow_ = true;
  std::vector<ComposedPage> composed_;
};

}  // namespace

Result<ComposedPartition> compose_sequential(const ComposeTask& task) {
  return SequentialComposer(task).run();
}

}  // namespace atolldb
