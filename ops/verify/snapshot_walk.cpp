#include "ops/verify/snapshot_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/format/array_page.h"
#include "engine/format/page_lock_word.h"
#include "engine/format/sequential_page.h"
#include "engine/hash/hash_key.h"
#include "ops/verify/page_walk.h"
#include "shared/base/try.h"

namespace atolldb {

Result<void> PageWalk::check(SnapshotPointer pointer, SnapshotPointer parent, PageBuffer& into,
                             PageType type, PageType other, uint8_t layer) {
  ++totals.pages;
  if (!is_second_pass) live.add(storage.id, pointer, layer);
  const PageHeader& page = into.header();
  const Vid removed_vid(page.max_removed_vid.load(std::memory_order_relaxed));
  if (page.storage_id != storage.id) {
    return wrong(page, fmt::format("it is of storage {}", page.storage_id));
  }
  if (page.type != type && page.type != other) {
    return wrong(page, fmt::format("its type is {}, not {}", static_cast<int>(page.type),
                                   static_cast<int>(type)));
  }
  if (page.layer != layer) {
    return wrong(page, fmt::format("its layer is {}, not {}", page.layer, layer));
  }
  if (removed_vid != Vid::make(removed_vid.epoch(), 0) || removed_vid.epoch() == 0 ||
      removed_vid.epoch() > epoch_) {
    return wrong(page, fmt::format("its newest version is of epoch {}, the snapshot of epoch {}",
                                   removed_vid.epoch(), epoch_));
  }
  if (pointer.snapshot() > parent.snapshot()) return wrong(page, "it is newer than its parent");
  const McsWord* const lock = lock_of(&page);
  if (lock != nullptr && !lock->is_unused()) return wrong(page, "it is locked");
  if (page.version().is_moved() || page.version().is_dropped()) {
    return wrong(page, "it is marked as moved or dropped");
  }
  return {};
}

Result<void> PageWalk::visit(const PageHeader& page, const WalkedRecord& record) {
  const Vid removed_vid(page.max_removed_vid.load(std::memory_order_relaxed));
  if (record.vid.epoch() > removed_vid.epoch()) {
    return wrong(page, fmt::format("a record is of epoch {}, its page of epoch {}",
                                   record.vid.epoch(), removed_vid.epoch()));
  }
  if (record.vid.word() != record.vid.version()) {
    return wrong(page, fmt::format("a record has flags: its VID is 0x{:x}", record.vid.word()));
  }
  ++totals.records;
  return visit_(record);
}

namespace {

class ArrayWalk {
 public:
  explicit ArrayWalk(PageWalk& walk)
      : walk_(walk), shape_(walk.storage.record_count, walk.storage.payload_bytes) {}

  uint32_t top() const { return shape_.levels - 1; }

  Result<void> page(SnapshotPointer pointer, SnapshotPointer parent, uint32_t level,
                    uint64_t first) {
    const auto buffer = std::make_unique<PageBuffer>();
    const PageType type = level == 0 ? PageType::array_leaf : PageType::array_interior;
    ATOLL_ASSIGN(auto read, walk_.read(pointer, parent, *buffer, type, type, 0, [&] {
      const uint64_t end = std::min(first + shape_.records_below(level), shape_.record_count);
      return fmt::format("records {} to {}", first, end - 1);
    }));
    if (!read) return {};
    if (buffer->header().level != level) {
      return walk_.wrong(buffer->header(), fmt::format("its level is not {}", level));
    }
    return level == 0 ? leaf(*buffer, first) : interior(*buffer, level, first);
  }

 private:
  Result<void> interior(PageBuffer& page_buffer, uint32_t level, uint64_t first) {
    const uint64_t span = shape_.records_below(level - 1);
    for (uint32_t i = 0; i < kArrayFanout; ++i) {
      const DualPointer& child = page_buffer.as<ArrayInterior>()->children[i];
      const SnapshotPointer below(child.snapshot_word.load(std::memory_order_relaxed));
      if (child.volatile_word.load(std::memory_order_relaxed) != 0) {
        return walk_.wrong(page_buffer.header(), "it has a volatile pointer");
      }
      if (below.is_null()) continue;
      if (first + i * span >= shape_.record_count) {
        return walk_.wrong(page_buffer.header(), "it has a page after the last record");
      }
      if (!walk_.range.overlaps(first + i * span, first + i * span + span - 1)) continue;
      auto done =
          page(below, SnapshotPointer(page_buffer.header().self), level - 1, first + i * span);
      if (!done) return done;
    }
    return {};
  }

  Result<void> leaf(PageBuffer& page_buffer, uint64_t first) {
    ++walk_.totals.leaf_pages;
    for (uint64_t slot = 0; slot < shape_.records_per_leaf; ++slot) {
      RecordHead* record = page_buffer.as<ArrayLeaf>()->record(slot, shape_.record_bytes);
      const auto* payload = reinterpret_cast<const std::byte*>(record + 1);
      const Vid vid(record->vid.load(std::memory_order_relaxed));
      if (vid.word() == 0) {
        for (uint32_t i = 0; i < shape_.payload_bytes; ++i) {
          if (payload[i] != std::byte{0}) {
            return walk_.wrong(page_buffer.header(),
                               "a record that was never written has a payload");
          }
        }
        continue;
      }
      const uint64_t index = first + slot;
      if (index >= shape_.record_count) {
        return walk_.wrong(page_buffer.header(), "it has a record after the last one");
      }
      if (!walk_.range.contains(index)) continue;
      const uint64_t key = __builtin_bswap64(index);
      auto visited =
          walk_.visit(page_buffer.header(), {{reinterpret_cast<const char*>(&key), sizeof key},
                                             {payload, shape_.payload_bytes},
                                             vid});
      if (!visited) return visited;
    }
    return {};
  }

  PageWalk& walk_;
  ArrayShape shape_;
};

Result<void> walk_sequential_page(PageWalk& walk, PageBuffer& buffer, const SequentialRun& run,
                                  uint64_t number) {
  auto* page = buffer.as<SequentialPage>();
  if (page->header.level != 0 || page->next.load(std::memory_order_relaxed) != 0 ||
      (page->number != number && !run.is_lost()) || page->used_bytes > SequentialPage::kDataBytes) {
    return walk.wrong(page->header, fmt::format("it is not page {} of its run", number));
  }
  uint64_t at = 0;
  for (uint32_t i = 0; i < page->header.version().count(); ++i) {
    const auto* record = reinterpret_cast<const SequentialRecord*>(page->data + at);
    if (at + sizeof(SequentialRecord) > page->used_bytes ||
        record->payload_bytes > page->used_bytes - at - sizeof(SequentialRecord)) {
      return walk.wrong(page->header, fmt::format("record {} goes beyond its end", i));
    }
    const Vid vid(record->vid);
    if (vid.epoch() < run.first_epoch || vid.epoch() > run.last_epoch) {
      return walk.wrong(page->header, fmt::format("record {} is of epoch {}, the run has {} to {}",
                                                  i, vid.epoch(), run.first_epoch, run.last_epoch));
    }
    const auto* payload = reinterpret_cast<const std::byte*>(record + 1);
    ATOLL_TRY(walk.visit(page->header, {{}, {payload, record->payload_bytes}, vid}));
    at += SequentialRecord::bytes_for(static_cast<uint32_t>(record->payload_bytes));
  }
  if (at != page->used_bytes) return walk.wrong(page->header, "its records do not fill it");
  ++walk.totals.leaf_pages;
  return {};
}

std::string epochs_of(const SequentialRun& run) {
  return fmt::format("appends of epochs {} to {}", run.first_epoch, run.last_epoch);
}

/// `ordinal`: ordinal of the next page of the storage.
Result<void> walk_runs(PageWalk& walk, const SequentialSnapshotRoot& root, uint64_t& ordinal) {
  const SnapshotPointer parent(root.header.self);
  PageBuffer buffer;
  for (uint64_t i = 0; i < root.count; ++i) {
    const SequentialRun& run = root.runs[i];
    const uint64_t before = walk.totals.records;
    for (uint64_t number = 0; number < run.pages; ++number, ++ordinal) {
      if (!walk.range.contains(ordinal)) continue;
      const SnapshotPointer pointer(run.first_page + number);
      ATOLL_ASSIGN(auto read, walk.read(pointer, parent, buffer, PageType::sequential,
                                        PageType::sequential, 0, [&] { return epochs_of(run); }));
      if (!read) continue;
      ATOLL_TRY(walk_sequential_page(walk, buffer, run, number));
    }
    if (run.is_lost()) walk.has_gaps = true;
    if (!walk.has_gaps && walk.totals.records - before != run.records) {
      return walk.wrong(root.header, fmt::format("run {} has {} records, not {}", i,
                                                 walk.totals.records - before, run.records));
    }
  }
  return {};
}

}  // namespace

Result<void> walk_array(PageWalk& walk) {
  ArrayWalk array(walk);
  return array.page(walk.storage.root, walk.storage.root, array.top(), 0);
}

Result<void> walk_sequential(PageWalk& walk) {
  std::vector<SnapshotPointer> chain;
  PageBuffer buffer;
  const auto* root = buffer.as<SequentialSnapshotRoot>();
  for (SnapshotPointer at = walk.storage.root; !at.is_null();
       at = SnapshotPointer(root->previous)) {
    const SnapshotPointer parent = chain.empty() ? at : chain.back();
    ATOLL_ASSIGN(auto read,
                 walk.read(at, parent, buffer, PageType::sequential, PageType::sequential, 0,
                           [] { return std::string("all appends before those of newer pages"); }));
    if (!read) break;
    if (!root->is_sound(at)) {
      return walk.wrong(root->header, "it is not a root page of a sequential storage");
    }
    chain.push_back(at);
  }
  uint64_t ordinal = 0;
  for (; !chain.empty(); chain.pop_back()) {
    walk.is_second_pass = true;
    ATOLL_ASSIGN(auto read,
                 walk.read(chain.back(), chain.back(), buffer, PageType::sequential,
                           PageType::sequential, 0, [] { return std::string("appends"); }));
    walk.is_second_pass = false;
    if (!read) continue;
    if (!root->is_sound(chain.back())) {
      return walk.wrong(root->header, "it changed while it was read");
    }
    // A composer that could not read the previous root page has counted 0 records (R56). A root
    // page that it could read has records, unless its runs are lost. So 0 records mean a gap.
    if (root->previous != 0 && root->previous_records == 0) walk.has_gaps = true;
    if (!walk.has_gaps && walk.totals.records != root->previous_records) {
      return walk.wrong(root->header,
                        fmt::format("it counts {} records of older runs, but they have {}",
                                    root->previous_records, walk.totals.records));
    }
    ATOLL_TRY(walk_runs(walk, *root, ordinal));
  }
  return {};
}

/// Returns a visitor of stored records that checks their hashes (R87), and calls `visit`.
static RecordVisitor hash_visitor(const SnapshotWalkStorage& storage, const RecordVisitor& visit) {
  return [&storage, &visit](const WalkedRecord& record) -> Result<void> {
    const auto stored = std::as_bytes(std::span(record.key.data(), record.key.size()));
    if (!is_stored_form(stored)) {
      return make_error(ExitCode::corruption,
                        fmt::format("storage {}: a stored key of {} bytes is not that of its hash: "
                                    "restore a backup",
                                    storage.id, stored.size()));
    }
    const OriginalKey original(stored);
    const Bytes key = original;
    return visit(
        {{reinterpret_cast<const char*>(key.data()), key.size()}, record.payload, record.vid});
  };
}

Result<SnapshotWalkTotals> walk_snapshot(const SnapshotFiles& files,
                                         const SnapshotWalkStorage& storage, uint64_t epoch,
                                         const RecordVisitor& visit,
                                         const UnreadableVisitor& on_unreadable,
                                         const WalkRange& range) {
  const bool is_hash = storage.type == StorageType::hash;
  const RecordVisitor of_hash = is_hash ? hash_visitor(storage, visit) : RecordVisitor();
  PageWalk walk(files, storage, epoch, is_hash ? of_hash : visit, on_unreadable, range);
  if (storage.root.is_null()) return walk.totals;
  Result<void> done;
  switch (storage.type) {
    case StorageType::array:
      done = walk_array(walk);
      break;
    case StorageType::mastertree:
    case StorageType::hash:
      done = walk_mastertree(walk);
      break;
    case StorageType::sequential:
      done = walk_sequential(walk);
      break;
    case StorageType::none:
      done = make_error(ExitCode::failed, fmt::format("storage {} has no type", storage.id));
      break;
  }
  ATOLL_TRY(done);
  walk.totals.live = walk.live.list();
  return walk.totals;
}

}  // namespace atolldb
