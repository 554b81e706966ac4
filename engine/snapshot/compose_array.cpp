#include "engine/snapshot/compose_array.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "engine/array/array_shape.h"
#include "engine/snapshot/log_input.h"
#include "engine/snapshot/page_output.h"
#include "engine/snapshot/record_fold.h"

namespace atolldb {

namespace {

uint64_t index_of(std::string_view key) {
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
        pages_(task.base, task.writer, &task.writer_mutex, storage_.id, task.cancelled),
        logs_(task.logs, pages_, storage_.id),
        fold_(std::make_unique<RecordFold>()) {}

  Result<ComposedPartition> run() {
    ComposedPartition composed;
    composed.storage_id = storage_.id;
    composed.partition = task_.partition;
    auto done = set_range();
    if (done) done = shape_.levels == 1 ? compose_root_leaf(composed) : compose_children(composed);
    if (done) done = logs_.check_end();
    if (!done) return std::unexpected(done.error());
    composed.log_records = logs_.count();
    composed.pages_written = pages_.pages_written();
    composed.pages_read = pages_.pages_read();
    return composed;
  }

 private:
  /// Records of the partition: whole children of the root.
  Result<void> set_range() {
    const auto& partitions = storage_.partitions;
    const uint64_t unit = shape_.records_below_root_child();
    const auto bound = [&](size_t at) {
      return at == partitions.size() ? storage_.record_count
             : at == 0               ? 0
                                     : index_of(partitions[at].low);
    };
    low_ = bound(task_.partition);
    high_ = bound(task_.partition + 1);
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
    return {};
  }

  Result<void> compose_root_leaf(ComposedPartition& composed) {
    auto root = compose(0, 0, storage_.base_root);
    if (!root) return std::unexpected(root.error());
    if (!root->is_null()) composed.pages.push_back({.low = 0, .page = *root, .level = 0});
    return {};
  }

  /// All children of the root that lie in the partition.
  Result<void> compose_children(ComposedPartition& composed) {
    const uint32_t level = shape_.levels - 2;
    const uint64_t span = shape_.records_below(level);
    PageBuffer root;
    if (!storage_.base_root.is_null()) {
      auto good = read(storage_.base_root, root, level + 1);
      if (!good) return good;
    }
    for (uint64_t first = low_; first < high_; first += span) {
      const DualPointer& child = root.as<ArrayInterior>()->children[first / span];
      auto page = compose(level, first,
                          SnapshotPointer(child.snapshot_word.load(std::memory_order_relaxed)));
      if (!page) return std::unexpected(page.error());
      if (!page->is_null()) composed.pages.push_back({.low = first, .page = *page, .level = level});
    }
    return {};
  }

  Result<void> read(SnapshotPointer pointer, PageBuffer& into, uint32_t level) {
    auto good =
        pages_.read(pointer, into, level == 0 ? PageType::array_leaf : PageType::array_interior, 0);
    if (good && into.header().level != level) {
      return wrong_page(storage_.id, pointer, fmt::format("its level is not {}", level));
    }
    return good;
  }

  /// Whether the next log record is of records [first, end).
  Result<bool> has_log(uint64_t first, uint64_t end) const {
    const LogRecord* log = logs_.current();
    if (log == nullptr) return false;
    const std::string_view key = LogInput::key_of(*log);
    if (key.size() != sizeof(uint64_t)) return logs_.wrong(key, "an array's keys have 8 bytes");
    if (log->type != LogType::insert && log->type != LogType::update) {
      return logs_.wrong(key, "an array's records can only be written");
    }
    return index_of(key) >= first && index_of(key) < end;
  }

  /// The page at `level` that begins with record `first`, whose base is `base`.
  Result<SnapshotPointer> compose(uint32_t level, uint64_t first, SnapshotPointer base) {
    const uint64_t end = std::min(first + shape_.records_below(level), storage_.record_count);
    auto is_changed = has_log(first, end);
    if (!is_changed) return std::unexpected(is_changed.error());
    if (!*is_changed && (base.is_null() || !task_.plan.rewrites)) return base;
    const auto page = std::make_unique<PageBuffer>();
    if (!base.is_null()) {
      if (auto good = read(base, *page, level); !good) return std::unexpected(good.error());
    }
    page->header().type = level == 0 ? PageType::array_leaf : PageType::array_interior;
    page->header().level = static_cast<uint8_t>(level);
    auto done = level == 0 ? fill_leaf(*page, first, end) : fill_interior(*page, level, first, end);
    if (!done) return std::unexpected(done.error());
    return pages_.write(*page);
  }

  Result<void> fill_interior(PageBuffer& page, uint32_t level, uint64_t first, uint64_t end) {
    const uint64_t span = shape_.records_below(level - 1);
    for (uint64_t child = 0; first + child * span < end; ++child) {
      if (!task_.plan.rewrites) {
        auto is_changed = has_log(first, end);
        if (!is_changed) return std::unexpected(is_changed.error());
        if (!*is_changed) return {};
        child = (index_of(LogInput::key_of(*logs_.current())) - first) / span;
      }
      DualPointer& pointer = page.as<ArrayInterior>()->children[child];
      auto written =
          compose(level - 1, first + child * span,
                  SnapshotPointer(pointer.snapshot_word.load(std::memory_order_relaxed)));
      if (!written) return std::unexpected(written.error());
      pointer.snapshot_word.store(written->word(), std::memory_order_relaxed);
    }
    return {};
  }

  Result<void> fill_leaf(PageBuffer& page, uint64_t first, uint64_t end) {
    for (;;) {
      auto is_changed = has_log(first, end);
      if (!is_changed) return std::unexpected(is_changed.error());
      if (!*is_changed) return {};
      const uint64_t index = index_of(LogInput::key_of(*logs_.current()));
      RecordHead* record = page.as<ArrayLeaf>()->record(index - first, shape_.record_bytes);
      auto* payload = reinterpret_cast<std::byte*>(record + 1);
      fold_->begin(Vid(record->vid.load(std::memory_order_relaxed)),
                   {payload, shape_.payload_bytes});
      while (logs_.current() != nullptr && logs_.current()->key_bytes == sizeof index &&
             index_of(LogInput::key_of(*logs_.current())) == index) {
        fold_->apply(*logs_.current());
        if (auto good = logs_.advance(); !good) return good;
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
  const GleanStorage& storage_;
  ArrayShape shape_;
  PageOutput pages_;
  LogInput logs_;
  std::unique_ptr<RecordFold> fold_;
  uint64_t low_ = 0;
  uint64_t high_ = 0;
};

}  // namespace

Result<ComposedPartition> compose_array(const ComposeTask& task) {
  return ArrayComposer(task).run();
}

}  // namespace atolldb
