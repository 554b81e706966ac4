#include "engine/compose/compose.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/compose/log_input.h"
#include "engine/compose/page_output.h"
#include "engine/compose/sequential_runs.h"
#include "engine/format/sequential_page.h"
#include "engine/gleaner/victims.h"
#include "engine/hooks/mutants.h"
#include "shared/base/copy_bytes.h"
#include "shared/base/try.h"

namespace atolldb {

namespace {

/// Number of pages per call of the writer. Pages of one call are adjacent, although composers take
/// turns at the writer. So merged runs, which have at most this many pages, become one run.
constexpr uint64_t kBatchPages = kMaxMergedPages;

/// Returns for each run of this node in the base, oldest first, whether its records are copied.
/// Neighbours that are copied become one run (R69). `merges`: small runs are copied, too.
std::vector<bool> runs_to_copy(bool merges, const Victims& victims,
                               std::span<const SequentialRun> runs) {
  const size_t first = merges ? first_merged_run(runs) : runs.size();
  std::vector<bool> is_copied(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    is_copied[i] = i >= first || victims.has(SnapshotPointer(runs[i].first_page));
  }
  return is_copied;
}

class SequentialComposer {
 public:
  explicit SequentialComposer(const ComposeTask& task)
      : task_(task),
        storage_id_(task.plan.storages[task.storage].id),
        pages_(task.base, task.writer, &task.writer_mutex, storage_id_, task.cancelled),
        victims_(task.plan, task.plan.storages[task.storage]),
        logs_(task.logs, pages_, storage_id_),
        merges_(task.plan.merges_runs && logs_.current() != nullptr) {}

  Result<ComposedPartition> run() {
    const SnapshotPointer root = task_.plan.storages[task_.storage].base_root;
    if (merges_ || victims_.may_be_at_or_below(root)) {
      ATOLL_TRY(compose_base());
    }
    while (logs_.current() != nullptr) {
      ATOLL_TRY(add(*logs_.current()));
      ATOLL_TRY(logs_.advance());
    }
    ATOLL_TRY(flush());
    return composed_partition(task_, std::move(composed_), pages_, logs_);
  }

 private:
  /// Copies and merges runs of the base. Lists the runs from the first copied one on, because
  /// combine_roots replaces all of them.
  Result<void> compose_base() {
    ATOLL_ASSIGN(const auto runs, own_runs());
    const std::vector<bool> is_copied = runs_to_copy(merges_, victims_, runs);
    CHECK(is_copied.size() == runs.size());
    for (size_t i = 0; i < runs.size(); ++i) {
      if (composed_.empty() && !is_copied[i]) continue;
      if (composed_.empty()) {
        composed_.push_back(replaced_from(SnapshotPointer(runs[i].first_page)));
      }
      if (is_copied[i]) {
        ATOLL_TRY(copy_run(runs[i]));
      } else {
        ATOLL_TRY(list_unchanged(runs[i]));
      }
    }
    return {};
  }

  /// Returns the runs of the base that this node composes, oldest first. Runs may be missing if
  /// they are too old to be merged and in no victim. Such runs, and runs in unreadable root pages,
  /// are not replaced.
  Result<std::vector<SequentialRun>> own_runs() {
    const SnapshotPlan& plan = task_.plan;
    const auto is_own = [&](const SequentialRun& run) {
      return composing_node(plan, run) == task_.partition;
    };
    uint64_t pages = 0;
    const auto is_enough = [&](std::span<const SequentialRun> runs, SnapshotPointer older) {
      for (const SequentialRun& run : runs) {
        if (is_own(run)) pages += std::min(run.pages, kMaxMergedPages + 1);
      }
      const bool may_merge_older = merges_ && pages <= kMaxMergedPages;
      return !may_merge_older && !victims_.may_be_at_or_below(older);
    };
    ATOLL_ASSIGN(BaseRuns base,
                 read_base_runs(pages_, plan.storages[task_.storage].base_root, is_enough));
    if (!base.unreadable.empty()) {
      // Each node reports its own runs, because another node may have read the root page. A salvage
      // drops all runs that their node could not read (kept_runs), so each node must report them.
      lose(base.older,
           fmt::format("all appends that node {} composes, of this root page and older ones",
                       task_.partition),
           base.unreadable);
    }
    std::erase_if(base.runs, [&](const SequentialRun& run) { return !is_own(run); });
    return std::move(base.runs);
  }

  Result<void> copy_run(const SequentialRun& run) {
    const std::string range =
        fmt::format("appends of epochs {} to {}", run.first_epoch, run.last_epoch);
    for (uint64_t i = 0; i < run.pages; ++i) {
      const SnapshotPointer at(run.first_page + i);
      ATOLL_ASSIGN(auto found,
                   pages_.find(at, source_, PageType::sequential, PageType::sequential, 0, false));
      if (found.is_readable) {
        pages_.count_replaced(at, 0);
        ATOLL_TRY(copy_records(at));
        continue;
      }
      lose(at, range, found.reason);
      // The unreadable page becomes a run of its own at its old place (R56). Its epochs are
      // unknown: the run gets those of the old run, and a scan reads the epochs of the records.
      if (!task_.plan.salvages) {
        ATOLL_TRY(list_unchanged({at.word(), 1, run.first_epoch, run.last_epoch, 0}));
      }
    }
    return {};
  }

  /// Counts and reports a page that cannot be read.
  void lose(SnapshotPointer page, const std::string& range, const std::string& reason) {
    if (!task_.plan.salvages) pages_.count_stand_in();
    if (task_.on_unreadable) task_.on_unreadable({storage_id_, page, 0, range, reason});
  }

  /// Adds the records of `source_`, which is page `at` of the base.
  Result<void> copy_records(SnapshotPointer at) {
    const auto& page = *source_.as<SequentialPage>();
    uint64_t offset = 0;
    for (uint32_t i = 0; i < page.header.version().count(); ++i) {
      constexpr uint64_t kHead = sizeof(SequentialRecord);
      const auto* record = reinterpret_cast<const SequentialRecord*>(page.data + offset);
      if (offset + kHead > SequentialPage::kDataBytes ||
          record->payload_bytes > SequentialPage::kDataBytes - kHead - offset) {
        return wrong_page(storage_id_, at, fmt::format("record {} goes beyond its end", i));
      }
      const std::span<const std::byte> payload(reinterpret_cast<const std::byte*>(record + 1),
                                               record->payload_bytes);
      ATOLL_TRY(put(Vid(record->vid), payload));
      offset += SequentialRecord::bytes_for(static_cast<uint32_t>(record->payload_bytes));
    }
    return {};
  }

  Result<void> add(const LogRecord& log) {
    if (log.type != LogType::append) {
      return logs_.wrong(LogInput::key_of(log), "a sequential storage has appends only");
    }
    if (SequentialRecord::bytes_for(log.payload_bytes) > SequentialPage::kDataBytes) {
      return logs_.wrong(LogInput::key_of(log), "its payload is longer than a page");
    }
    return put(Vid(Vid(log.vid).version()),
               {reinterpret_cast<const std::byte*>(log.payload()), log.payload_bytes});
  }

  /// Adds a record to the current run. A record with a smaller epoch than the one before begins a
  /// new run, because scans rely on ascending epochs (R69). REQUIRES: the record fits in a page.
  Result<void> put(Vid vid, std::span<const std::byte> payload) {
    if (vid.epoch() < newest_epoch_ && !fault::merge_overlapping_runs) {
      ATOLL_TRY(end_run());
    }
    const uint32_t bytes = SequentialRecord::bytes_for(static_cast<uint32_t>(payload.size()));
    if (batch_.empty() || !page()->has_room(bytes)) {
      ATOLL_TRY(begin_page());
    }
    DCHECK(page()->has_room(bytes));
    auto* record = reinterpret_cast<SequentialRecord*>(page()->data + page()->used_bytes);
    record->vid = vid.word();
    record->payload_bytes = payload.size();
    copy_bytes(record->payload(), payload.data(), payload.size());
    page()->used_bytes += bytes;
    PageHeader& header = page()->header;
    header.version_word.store(PageVersion::make(0, header.version().count() + 1, 0).word(),
                              std::memory_order_relaxed);
    newest_epoch_ = vid.epoch();
    if (part_.records++ == 0) part_.low = newest_epoch_;
    part_.high = std::max(part_.high, newest_epoch_);
    return {};
  }

  SequentialPage* page() { return batch_.back().as<SequentialPage>(); }

  Result<void> begin_page() {
    if (batch_.size() == kBatchPages) {
      ATOLL_TRY(flush());
    }
    CHECK(batch_.size() < kBatchPages);
    batch_.emplace_back().header().type = PageType::sequential;
    return {};
  }

  /// Writes the batch. If it follows the current run in the file, it extends that run. If not, it
  /// becomes a new run.
  Result<void> flush() {
    if (batch_.empty()) return {};
    CHECK(part_.records > 0);
    bool extends = false;
    ATOLL_TRY(pages_.write_run(batch_, [&](SnapshotPointer first) {
      CHECK(!first.is_null());
      extends = extends_ && end_of(composed_.back()) == first.word();
      uint64_t number = extends ? composed_.back().pages : 0;
      for (PageBuffer& page : batch_) page.as<SequentialPage>()->number = number++;
      part_.page = first;
    }));
    part_.pages = static_cast<uint32_t>(batch_.size());
    if (extends) {
      ComposedPage& last = composed_.back();
      CHECK(last.pages > 0);
      last.pages += part_.pages;
      last.high = std::max(last.high, part_.high);
      last.records += part_.records;
    } else {
      composed_.push_back(part_);
    }
    part_ = {};
    extends_ = true;
    batch_.clear();
    return {};
  }

  /// Ends the current run: the next record begins a new one.
  Result<void> end_run() {
    ATOLL_TRY(flush());
    extends_ = false;
    newest_epoch_ = 0;
    return {};
  }

  /// Adds a run of the base to the result. Its pages are not copied.
  Result<void> list_unchanged(const SequentialRun& run) {
    ATOLL_TRY(end_run());
    composed_.push_back({.low = run.first_epoch,
                         .page = SnapshotPointer(run.first_page),
                         .pages = static_cast<uint32_t>(run.pages),
                         .high = run.last_epoch,
                         .records = run.records});
    return {};
  }

  /// Returns the word of the page after a run.
  static uint64_t end_of(const ComposedPage& run) { return run.page.word() + run.pages; }

  const ComposeTask& task_;
  uint32_t storage_id_;
  PageOutput pages_;
  Victims victims_;
  LogInput logs_;
  bool merges_;        // small runs are merged: the plan permits it, and there are new records
  PageBuffer source_;  // page of the base that is being copied
  std::vector<PageBuffer> batch_;
  ComposedPage part_;          // the part of the current run that is in the batch
  uint64_t newest_epoch_ = 0;  // epoch of the last record of the current run
  // Whether the last of `composed_` is the current run, so that the next batch may extend it.
  bool extends_ = false;
  std::vector<ComposedPage> composed_;
};

}  // namespace

Result<ComposedPartition> compose_sequential(const ComposeTask& task) {
  return SequentialComposer(task).run();
}

}  // namespace atolldb
