#include "engine/compose/compose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "engine/compose/log_input.h"
#include "engine/compose/page_output.h"
#include "engine/compose/record_fold.h"
#include "engine/format/array_page.h"
#include "engine/gleaner/victims.h"
#include "shared/base/try.h"

namespace atolldb {

namespace {

uint64_t index_of(std::string_view key) {
  DCHECK(key.size() == sizeof(uint64_t));
  uint64_t index = 0;
  std::memcpy(&index, key.data(), sizeof index);
  return __builtin_bswap64(index);
}

class ArrayComposer {
 public:
  explicit ArrayComposer(const ComposeTask& task)
      : task_(task),
        storage_(task.plan.storages[task.storage]),
        shape_(storage_.record_count, storage_.payload_bytes),
        pages_(task.base, task.writer, &task.writer_mutex, storage_.id, task.cancelled, task.ahead),
        logs_(task.logs, pages_, storage_.id),
        victims_(task.plan, storage_),
        fold_(std::make_unique<RecordFold>()) {}

  Result<ComposedPartition> run() {
    std::vector<ComposedPage> composed;
    ATOLL_TRY(set_range());
    ATOLL_TRY(shape_.levels == 1 ? compose_root_leaf(composed) : compose_children(composed));
    ATOLL_TRY(logs_.check_end());
    return composed_partition(task_, std::move(composed), pages_, logs_);
  }

 private:
  /// Sets the record range of the partition, which consists of whole children of the root.
  Result<void> set_range() {
    const auto& partitions = storage_.partitions;
    const uint64_t unit = shape_.records_below_root_child();
    const auto bound = [&](size_t at) {
      return at == partitions.size() ? storage_.record_count
             : at == 0               ? 0
                                     : index_of(partitions[at].low);
    };
    for (size_t at = 1; at < partitions.size(); ++at) {
      if (partitions[at].low.size() != sizeof(uint64_t) || bound(at) % unit != 0 ||
          bound(at) >= storage_.record_count) {
        return make_error(
            ExitCode::failed,
            fmt::format("storage {}: partition {} begins at 0x{}: partitions of this array must "
                        "begin at multiples of {} below {}",
                        storage_.id, at, hex_of(partitions[at].low), unit, storage_.record_count));
      }
    }
    low_ = bound(task_.partition);
    high_ = bound(task_.partition + 1);
    CHECK(low_ <= high_ && high_ <= storage_.record_count);
    return {};
  }

  Result<void> compose_root_leaf(std::vector<ComposedPage>& composed) {
    ATOLL_ASSIGN(auto root, compose(0, 0, storage_.base_root));
    if (!root.is_null()) composed.push_back({.low = 0, .page = root, .level = 0});
    return {};
  }

  /// Composes all children of the root that lie in the partition.
  Result<void> compose_children(std::vector<ComposedPage>& composed) {
    const uint32_t level = shape_.levels - 2;
    const uint64_t span = shape_.records_below(level);
    CHECK(low_ % span == 0 && (high_ + span - 1) / span <= kArrayFanout);
    PageBuffer root;
    FoundPage found;
    if (!storage_.base_root.is_null()) {
      ATOLL_ASSIGN(auto read, find(storage_.base_root, root, level + 1, low_, high_));
      found = std::move(read);
      // combine_roots replaces the root. All partitions read it, and only the first one counts it.
      if (found.is_readable && !found.was_lost && low_ == 0) {
        pages_.count_replaced(storage_.base_root, 0);
      }
    }
    const bool is_lost = !found.is_readable && !task_.plan.salvages;
    SnapshotPointer shared;  // stand-in that all children without log records share
    for (uint64_t first = low_; first < high_; first += span) {
      const DualPointer& child = root.as<ArrayInterior>()->children[first / span];
      const SnapshotPointer base(child.snapshot_word.load(std::memory_order_relaxed));
      if (!base.is_null()) {
        ATOLL_TRY(pages_.check_child(storage_.base_root, base));
      }
      ATOLL_ASSIGN(const SnapshotPointer page, is_lost ? stand_in_below(found, level, first, shared)
                                                       : compose(level, first, base));
      if (!page.is_null()) composed.push_back({.low = first, .page = page, .level = level});
    }
    return {};
  }

  /// Finds the page at `level` for records [first, end) and adds its held records to the log input.
  /// The page is all zeros if it cannot be read.
  Result<FoundPage> find(SnapshotPointer pointer, PageBuffer& into, uint32_t level, uint64_t first,
                         uint64_t end) {
    CHECK(!pointer.is_null() && first <= end);
    ATOLL_ASSIGN(auto found, pages_.find(pointer, into, PageType::array_leaf,
                                         PageType::array_interior, 0, task_.plan.salvages));
    // The stand-in may replace a page above `level` that is readable again. Descend from there.
    if (found.is_readable && found.was_lost) {
      ATOLL_ASSIGN(auto reached, descend(into, level, first, end));
      if (!reached.empty()) {
        found.is_readable = false;
        found.reason = std::move(reached);
      }
    }
    if (!found.is_readable) report_lost(pointer, level, first, end, found.reason);
    const bool is_leaf = into.header().type == PageType::array_leaf;
    if (found.is_readable && into.header().self != 0 &&
        (into.header().level != level || is_leaf != (level == 0))) {
      return wrong_page(storage_.id, pointer, fmt::format("its level is not {}", level));
    }
    if (found.is_readable || task_.plan.salvages) add_held(std::move(found.held), first, end);
    return found;
  }

  void add_held(std::vector<HeldRecord> held, uint64_t first, uint64_t end) {
    std::erase_if(held, [&](const HeldRecord& record) {
      if (record.key().size() != sizeof(uint64_t)) return true;
      const uint64_t index = index_of(record.key());
      return index < first || index >= end;
    });
    if (!held.empty()) logs_.add_held(std::move(held));
  }

  /// Descends to the page at `level` that has record `first`. The page is all zeros if there is no
  /// such page.
  /// Returns an empty text, or the reason if a page on the way cannot be read. A salvage reports
  /// such a page and treats it as empty.
  Result<std::string> descend(PageBuffer& page, uint32_t level, uint64_t first, uint64_t end) {
    while (page.header().level > level) {
      const uint64_t span = shape_.records_below(page.header().level - 1);
      const DualPointer& child = page.as<ArrayInterior>()->children[first / span % kArrayFanout];
      const SnapshotPointer below(child.snapshot_word.load(std::memory_order_relaxed));
      if (below.is_null()) {
        std::memset(page.bytes, 0, sizeof page.bytes);
        break;
      }
      ATOLL_ASSIGN(auto found, pages_.find(below, page, PageType::array_leaf,
                                           PageType::array_interior, 0, task_.plan.salvages));
      if (!found.is_readable && !task_.plan.salvages) return found.reason;
      add_held(std::move(found.held), first, end);
      if (!found.is_readable) {
        report_lost(below, level, first, end, found.reason);
        break;
      }
    }
    return std::string();
  }

  void report_lost(SnapshotPointer page, uint32_t level, uint64_t first, uint64_t end,
                   const std::string& reason) const {
    if (!task_.on_unreadable) return;
    task_.on_unreadable(
        {storage_.id, page, level, fmt::format("records {} to {}", first, end - 1), reason});
  }

  /// Writes a stand-in for records [first, end), with the log records of this range.
  Result<SnapshotPointer> stand_in(const LostPage& lost, uint32_t level, uint64_t first,
                                   uint64_t end) {
    CHECK(first < end);
    std::vector<std::byte> records;
    for (;;) {
      ATOLL_ASSIGN(auto is_changed, has_log(first, end));
      if (!is_changed) break;
      const auto* bytes = reinterpret_cast<const std::byte*>(logs_.current());
      records.insert(records.end(), bytes, bytes + logs_.current()->length);
      ATOLL_TRY(logs_.advance());
    }
    const auto page = std::make_unique<PageBuffer>();
    page->header().level = static_cast<uint8_t>(level);
    page->as<StandInPage>()->low = first;
    page->as<StandInPage>()->high = end;
    return pages_.write_stand_in(*page, lost, records);
  }

  /// Returns a stand-in for one child of a root that cannot be read. All children without log
  /// records share one stand-in, `shared`, which is written on first use.
  Result<SnapshotPointer> stand_in_below(const FoundPage& root, uint32_t level, uint64_t first,
                                         SnapshotPointer& shared) {
    const uint64_t end = std::min(first + shape_.records_below(level), storage_.record_count);
    CHECK(!root.is_readable && first >= low_ && end <= high_);
    ATOLL_ASSIGN(auto is_changed, has_log(first, end));
    if (is_changed) return stand_in(root.lost, level, first, end);
    if (shared.is_null()) {
      const auto page = std::make_unique<PageBuffer>();
      page->header().level = static_cast<uint8_t>(level);
      page->as<StandInPage>()->low = low_;
      page->as<StandInPage>()->high = high_;
      ATOLL_ASSIGN(auto written, pages_.write_stand_in(*page, root.lost, {}));
      shared = written;
    }
    return shared;
  }

  /// Returns whether the next log record belongs to records [first, end).
  Result<bool> has_log(uint64_t first, uint64_t end) const {
    const LogRecord* log = logs_.current();
    if (log == nullptr) return false;
    const std::string_view key = LogInput::key_of(*log);
    if (key.size() != sizeof(uint64_t)) return logs_.wrong(key, "keys of an array have 8 bytes");
    if (log->type != LogType::insert && log->type != LogType::update) {
      return logs_.wrong(key, "records of an array are never erased or appended");
    }
    return index_of(key) >= first && index_of(key) < end;
  }

  /// Composes the page at `level` that begins with record `first`. `base`: its page in the base.
  Result<SnapshotPointer> compose(uint32_t level, uint64_t first, SnapshotPointer base) {
    const uint64_t end = std::min(first + shape_.records_below(level), storage_.record_count);
    ATOLL_ASSIGN(auto is_changed, has_log(first, end));
    DCHECK(level < shape_.levels && first % shape_.records_below(level) == 0);
    if (!is_changed && !victims_.may_be_at_or_below(base, level)) return base;
    const auto page = std::make_unique<PageBuffer>();
    bool was_lost = false;
    if (!base.is_null()) {
      ATOLL_ASSIGN(auto found, find(base, *page, level, first, end));
      was_lost = found.was_lost;
      if (!found.is_readable && !task_.plan.salvages) {
        // A stand-in replaces every pointer to an unreadable page. Beside a bare pointer an
        // installer could evict a volatile page although its snapshot page is unreadable.
        if (is_changed || !is_stand_in(base)) return stand_in(found.lost, level, first, end);
        pages_.count_stand_in();
        return base;
      }
    }
    page->header().type = level == 0 ? PageType::array_leaf : PageType::array_interior;
    page->header().level = static_cast<uint8_t>(level);
    bool has_new_child = false;
    ATOLL_TRY(level == 0 ? fill_leaf(*page, first, end)
                         : fill_interior(*page, level, first, base, has_new_child));
    const bool is_victim = victims_.has(base);
    if (!is_changed && !is_victim && !was_lost && !has_new_child) return base;
    if (!base.is_null() && !was_lost && page->header().self != 0) pages_.count_replaced(base, 0);
    return pages_.write(*page);
  }

  /// Composes the children of a page. `base`: the page in the base. Sets `has_new_child` if a child
  /// differs from that of the base.
  Result<void> fill_interior(PageBuffer& page, uint32_t level, uint64_t first, SnapshotPointer base,
                             bool& has_new_child) {
    const uint64_t end = std::min(first + shape_.records_below(level), storage_.record_count);
    const bool visits_all = victims_.may_be_at_or_below(base);
    CHECK(level > 0 && level < shape_.levels);
    const uint64_t span = shape_.records_below(level - 1);
    uint64_t requested = 0;
    for (uint64_t child = 0; first + child * span < end; ++child) {
      if (!visits_all) {
        ATOLL_ASSIGN(auto is_changed, has_log(first, end));
        if (!is_changed) return {};
        child = (index_of(LogInput::key_of(*logs_.current())) - first) / span;
      }
      DCHECK(child < kArrayFanout);
      if (level == 1 && child >= requested) requested = request_leaves(page, first, child);
      std::atomic<uint64_t>& word = page.as<ArrayInterior>()->children[child].snapshot_word;
      const SnapshotPointer before(word.load(std::memory_order_relaxed));
      if (!before.is_null()) {
        ATOLL_TRY(pages_.check_child(base, before));
      }
      ATOLL_ASSIGN(const SnapshotPointer written, compose(level - 1, first + child * span, before));
      has_new_child = has_new_child || written != before;
      word.store(written.word(), std::memory_order_relaxed);
    }
    return {};
  }

  /// Requests the leaves, from child `from` on, that will be read: those that have log records or
  /// may be victims. Stops where the coming log records are not known yet. `first`: first record of
  /// the page. Returns the first child that it has not decided about.
  uint64_t request_leaves(PageBuffer& page, uint64_t first, uint64_t from) {
    DCHECK(page.header().level == 1 && from < kArrayFanout);
    std::array<SnapshotPointer, PageOutput::kMaxRequests> wanted;
    std::array<uint64_t, PageOutput::kMaxRequests> children{};  // of the wanted leaves
    size_t wanted_count = 0;
    std::span<const SortKey> logs = logs_.coming();
    const uint64_t span = shape_.records_per_leaf;
    uint64_t child = from;
    for (; pages_.has_ahead() && child < kArrayFanout && wanted_count < wanted.size(); ++child) {
      const uint64_t low = first + child * span;
      while (!logs.empty() && logs[0].first < low) logs = logs.subspan(1);
      const auto& word = page.as<ArrayInterior>()->children[child].snapshot_word;
      const SnapshotPointer leaf(word.load(std::memory_order_relaxed));
      const bool may_be_victim = victims_.may_be_at_or_below(leaf, 0);
      // If `logs` is empty, all known records belong to earlier leaves. Records that are not known
      // yet may belong to this leaf.
      if (logs.empty() && !may_be_victim) break;
      const bool has_logs = !logs.empty() && logs[0].first - low < span;
      if (leaf.is_null() || is_stand_in(leaf) || (!has_logs && !may_be_victim)) continue;
      children[wanted_count] = child;
      wanted[wanted_count++] = leaf;
    }
    const size_t requested = pages_.request({wanted.data(), wanted_count});
    return std::max(requested == wanted_count ? child : children[requested], from + 1);
  }

  Result<void> fill_leaf(PageBuffer& page, uint64_t first, uint64_t end) {
    for (;;) {
      ATOLL_ASSIGN(auto is_changed, has_log(first, end));
      if (!is_changed) return {};
      const uint64_t index = index_of(LogInput::key_of(*logs_.current()));
      DCHECK(index - first < shape_.records_per_leaf);
      RecordHead* record = page.as<ArrayLeaf>()->record(index - first, shape_.record_bytes);
      auto* payload = reinterpret_cast<std::byte*>(record + 1);
      fold_->begin(Vid(record->vid.load(std::memory_order_relaxed)),
                   {payload, shape_.payload_bytes});
      while (logs_.current() != nullptr && logs_.current()->key_bytes == sizeof index &&
             index_of(LogInput::key_of(*logs_.current())) == index) {
        fold_->apply(*logs_.current());
        ATOLL_TRY(logs_.advance());
      }
      if (fold_->is_unbacked() || fold_->payload().size() != shape_.payload_bytes) {
        const uint64_t key = __builtin_bswap64(index);
        return logs_.unbacked({reinterpret_cast<const char*>(&key), sizeof key});
      }
      std::memcpy(payload, fold_->payload().data(), shape_.payload_bytes);
      record->vid.store(fold_->vid().word(), std::memory_order_relaxed);
    }
  }

  const ComposeTask& task_;
  const PlannedStorage& storage_;
  ArrayShape shape_;
  PageOutput pages_;
  LogInput logs_;
  Victims victims_;
  std::unique_ptr<RecordFold> fold_;
  uint64_t low_ = 0;
  uint64_t high_ = 0;
};

}  // namespace

Result<ComposedPartition> compose_array(const ComposeTask& task) {
  return ArrayComposer(task).run();
}

}  // namespace atolldb
