#include "engine/compose/page_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/compose/log_input.h"
#include "engine/format/tree_key.h"
#include "engine/gleaner/gleaned_record.h"
#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {

std::unexpected<Error> wrong_page(uint32_t storage_id, SnapshotPointer page,
                                  const std::string& reason) {
  return make_error(ExitCode::corruption,
                    fmt::format("storage {}: page {} of snapshot {} and node {}: {}: restore the "
                                "snapshot from a backup, or recover from an older one and its log",
                                storage_id, page.page(), page.snapshot(), page.node(), reason));
}

Result<void> PageOutput::check_cancelled() const {
  if (!cancelled_ || !cancelled_()) return {};
  return make_error(ExitCode::failed,
                    fmt::format("composing storage {}: the run was cancelled", storage_id_));
}

Result<void> PageOutput::read(SnapshotPointer pointer, PageBuffer& into, PageType type,
                              uint8_t layer) {
  return read(pointer, into, type, type, layer);
}

Result<void> PageOutput::read(SnapshotPointer pointer, PageBuffer& into, PageType type,
                              PageType other, uint8_t layer) {
  ATOLL_TRY(check_cancelled());
  ++pages_used_;
  ATOLL_TRY(read_base(pointer, into));
  return check_page(pointer, into.header(), type, other, layer);
}

Result<void> PageOutput::read_base(SnapshotPointer pointer, PageBuffer& into) {
  if (!peeked_.is_null() && pointer == peeked_) {
    peeked_ = {};
    std::memcpy(into.bytes, peeked_page_->bytes, kPageBytes);
    return {};
  }
  const uint64_t cached_before = ahead_ == nullptr ? 0 : ahead_->cached_count();
  if (ahead_ != nullptr && ahead_->take(pointer, &into.header())) {
    pages_cached_ += ahead_->cached_count() - cached_before;
    return {};
  }
  return base_.read(pointer, &into.header());
}

const PageHeader* PageOutput::peek(SnapshotPointer pointer) {
  if (peeked_page_ == nullptr) peeked_page_ = std::make_unique<PageBuffer>();
  peeked_ = {};
  if (!read_base(pointer, *peeked_page_)) return nullptr;
  peeked_ = pointer;
  return &peeked_page_->header();
}

bool PageOutput::read_cached(SnapshotPointer pointer, PageBuffer& into) {
  if (ahead_ == nullptr || !ahead_->copy_cached(pointer, &into.header())) return false;
  if (!check_page(pointer, into.header(), PageType::mastertree_border, PageType::mastertree_border,
                  0)) {
    return false;
  }
  ++pages_used_;
  ++pages_cached_;
  return true;
}

size_t PageOutput::request(std::span<const SnapshotPointer> pages) {
  CHECK(pages.size() <= kMaxRequests);
  if (ahead_ == nullptr || pages.size() < kMinReads) return pages.size();
  uint32_t reads = 0;
  SnapshotPointer first;  // first and last page of the read
  SnapshotPointer last;
  for (const SnapshotPointer page : pages) {
    if (reads == 0 || !PageAhead::joins(first, last, page)) {
      ++reads;
      first = page;
    }
    last = page;
  }
  // Many of these pages were written by the previous snapshot. Such pages are often adjacent, so
  // that a few reads are enough.
  if (reads < kMinReads) return pages.size();
  ahead_->begin_window();
  size_t requested = 0;
  while (requested < pages.size() && ahead_->request(pages[requested])) ++requested;
  ahead_->start();
  return requested;
}

Result<void> PageOutput::check_page(SnapshotPointer pointer, const PageHeader& header,
                                    PageType type, PageType other, uint8_t layer) const {
  if (header.storage_id != storage_id_) {
    return wrong_page(storage_id_, pointer,
                      fmt::format("it belongs to storage {}", header.storage_id));
  }
  if ((header.type != type && header.type != other) || header.layer != layer) {
    return wrong_page(
        storage_id_, pointer,
        fmt::format("it has type {} and layer {}, not type {} and layer {}",
                    static_cast<int>(header.type), header.layer, static_cast<int>(type), layer));
  }
  return {};
}

/// Reads a stand-in. Returns false if it cannot be read.
bool PageOutput::read_stand_in(SnapshotPointer pointer, PageBuffer& into, std::string& reason) {
  if (auto good = base_.read(unmarked(pointer), &into.header()); !good) {
    reason = good.error().message;
    return false;
  }
  const PageHeader& header = into.header();
  if (header.type == kStandInType && header.storage_id == storage_id_) return true;
  reason = wrong_page(storage_id_, unmarked(pointer), "it is not a stand-in").error().message;
  return false;
}

namespace {

/// Splits `bytes` into adjacent log records and adds them. Returns false, and adds nothing, if the
/// bytes are not log records.
bool split_held(std::span<const std::byte> bytes, std::vector<HeldRecord>& held) {
  const size_t before = held.size();
  for (size_t at = 0; at < bytes.size();) {
    LogRecord head = {};
    if (bytes.size() - at >= sizeof head) std::memcpy(&head, bytes.data() + at, sizeof head);
    if (head.length < sizeof head || head.length % 8 != 0 || head.length > bytes.size() - at ||
        LogRecord::bytes(head.key_bytes, head.payload_bytes) > head.length) {
      held.resize(before);
      return false;
    }
    HeldRecord& record = held.emplace_back();
    record.words.resize(head.length / 8);
    std::memcpy(record.words.data(), bytes.data() + at, head.length);
    at += head.length;
  }
  return true;
}

}  // namespace

/// Adds the held records of a chain of pages. Returns false, and adds nothing, if a page cannot be
/// read.
bool PageOutput::take_held(SnapshotPointer last, std::vector<HeldRecord>& held,
                           std::string& reason) {
  std::vector<PageBuffer> pages;
  for (SnapshotPointer at = last; !at.is_null();) {
    PageBuffer& page = pages.emplace_back();
    if (auto good = base_.read(at, &page.header()); !good) {
      reason = good.error().message;
      return false;
    }
    const auto& part = *page.as<HeldPage>();
    const bool is_good = part.header.type == kHeldLogType &&
                         part.header.storage_id == storage_id_ &&
                         part.used_bytes <= HeldPage::kDataBytes;
    if (!is_good) {
      reason = wrong_page(storage_id_, at, "it holds no log records").error().message;
      return false;
    }
    at = SnapshotPointer(part.previous);
  }
  std::vector<std::byte> bytes;
  for (auto page = pages.rbegin(); page != pages.rend(); ++page) {
    const auto& part = *page->as<HeldPage>();
    bytes.insert(bytes.end(), part.data, part.data + part.used_bytes);
  }
  if (split_held(bytes, held)) return true;
  reason = wrong_page(storage_id_, last, "its log records are malformed").error().message;
  return false;
}

/// Merges the held records of `lost` with `records`, and elides those that a later one covers.
/// Returns false if the held records of `lost` cannot be read.
bool PageOutput::compact_held(const LostPage& lost, std::span<const std::byte> records,
                              std::vector<std::byte>& compacted) {
  std::vector<HeldRecord> held;
  std::string reason;
  if (!take_held(lost.held, held, reason) || !split_held(records, held)) return false;
  std::ranges::sort(held, comes_before);
  for (size_t i = 0; i < held.size(); ++i) {
    bool is_covered = false;
    for (size_t later = i + 1; later < held.size() && !is_covered; ++later) {
      if (held[later].key() != held[i].key()) break;
      is_covered = covers(held[later].log(), held[i].log());
    }
    if (is_covered) continue;
    const auto bytes = std::as_bytes(std::span(held[i].words));
    compacted.insert(compacted.end(), bytes.begin(), bytes.end());
  }
  return true;
}

Result<FoundPage> PageOutput::find(SnapshotPointer pointer, PageBuffer& into, PageType type,
                                   PageType other, uint8_t layer, bool takes_held) {
  ATOLL_TRY(check_cancelled());
  FoundPage found;
  std::vector<SnapshotPointer> chains;
  SnapshotPointer at = pointer;
  for (; is_stand_in(at); at = SnapshotPointer(into.as<StandInPage>()->lost)) {
    ++pages_used_;
    if (!read_stand_in(at, into, found.reason)) break;
    const StandInPage& page = *into.as<StandInPage>();
    chains.emplace_back(page.held);
    if (!std::exchange(found.was_lost, true)) {
      found.lost = {SnapshotPointer(page.lost), SnapshotPointer(page.held), page.held_bytes,
                    page.held_batches};
      found.low = page.low;
      found.high = page.high;
      found.high_is_end = page.high_is_end != 0;
    }
  }
  if (!found.was_lost) found.lost.lost = at;
  found.is_readable = !is_stand_in(at);
  if (found.is_readable) {
    ++pages_used_;
    if (auto good = read_base(at, into); !good) {
      found.is_readable = false;
      found.reason = good.error().message;
    }
  }
  for (const SnapshotPointer chain : chains) {
    if (!found.is_readable && !takes_held) break;
    if (!take_held(chain, found.held, found.reason)) found.is_readable = false;
  }
  if (!found.is_readable) {
    // Clears the page, because composers that build a new page in this buffer expect zeros.
    std::memset(into.bytes, 0, sizeof into.bytes);
    return found;
  }
  ATOLL_TRY(check_page(at, into.header(), type, other, layer));
  return found;
}

Result<SnapshotPointer> PageOutput::write_stand_in(PageBuffer& page, const LostPage& lost,
                                                   std::span<const std::byte> records) {
  CHECK(page.as<StandInPage>()->high_is_end != 0 ||
        page.as<StandInPage>()->low < page.as<StandInPage>()->high);
  CHECK(records.size() % 8 == 0);
  LostPage next = lost;
  std::vector<std::byte> compacted;
  const bool is_long = !records.empty() && lost.held_batches >= kMaxHeldBatches;
  if (is_long && compact_held(lost, records, compacted)) {
    records = compacted;
    next = {.lost = lost.lost, .held = {}, .held_bytes = 0, .held_batches = 0};
  }
  SnapshotPointer held = next.held;
  for (size_t at = 0; at < records.size();) {
    const size_t bytes = std::min<size_t>(records.size() - at, HeldPage::kDataBytes);
    PageBuffer buffer;
    auto* part = buffer.as<HeldPage>();
    part->header.type = kHeldLogType;
    part->previous = held.word();
    part->used_bytes = bytes;
    std::memcpy(part->data, records.data() + at, bytes);
    ATOLL_ASSIGN(auto written, write(buffer));
    held = written;
    at += bytes;
  }
  if (fault::forget_held_records) held = SnapshotPointer();
  page.header().type = kStandInType;
  auto* stand_in = page.as<StandInPage>();
  stand_in->lost = next.lost.word();
  stand_in->held = held.word();
  stand_in->held_bytes = next.held_bytes + records.size();
  stand_in->held_batches = next.held_batches + (records.empty() ? 0 : 1);
  ++stand_ins_;
  ATOLL_ASSIGN(auto written, write(page));
  return marked(written);
}

namespace {

/// Checks the fences of a Master-tree page, and that its slices ascend within them.
void check_fences(const TreePage& page, std::span<const uint64_t> slices) {
  CHECK(page.high_is_end() || page.low < page.high);
  CHECK(std::ranges::is_sorted(slices));
  CHECK(slices.empty() || (page.contains(slices.front()) && page.contains(slices.back())));
}

/// Checks a page before it is written. A failed check is an internal error, whatever the input is.
void check_page_to_write(PageBuffer& page) {
  const PageHeader& header = page.header();
  const uint32_t count = header.version().count();
  switch (header.type) {
    case PageType::array_leaf:
      CHECK(header.level == 0 && header.layer == 0);
      break;
    case PageType::array_interior:
      CHECK(header.level > 0 && header.layer == 0);
      break;
    case PageType::mastertree_border: {
      auto& border = *page.as<BorderPage>();
      CHECK(header.level == 0 && header.version().is_ascending());
      CHECK(count <= border.slot_capacity() && border.slot_capacity() <= kBorderSlotBound);
      check_fences(border, {border.slices(), count});
      CHECK(border.has_guide(count));
      CHECK(border.heap_begin >= BorderPage::heap_limit(border.slot_capacity()));
      break;
    }
    case PageType::mastertree_interior: {
      auto& interior = *page.as<InteriorPage>();
      CHECK(header.level > 0 && interior.sorted_count() == count);
      CHECK(count > 0 && count <= kInteriorCapacity && interior.has_guide());
      const std::span<const uint64_t> lows(interior.separators, count);
      check_fences(interior, lows);
      CHECK(lows.front() == interior.low && std::ranges::adjacent_find(lows) == lows.end());
      for (const DualPointer& child : std::span(interior.children, count)) {
        CHECK(child.snapshot_word.load(std::memory_order_relaxed) != 0);
      }
      break;
    }
    default:
      CHECK(header.type == PageType::sequential || header.type == kStandInType ||
            header.type == kHeldLogType);
  }
}

}  // namespace

void PageOutput::copy(PageBuffer& page, PageHeader& to) {
  check_page_to_write(page);
  CHECK(to.storage_id == storage_id_);
  const PageHeader& from = page.header();
  to.type = from.type;
  to.layer = from.layer;
  to.level = from.level;
  to.slots = from.slots;
  to.version_word.store(from.version_word.load(std::memory_order_relaxed),
                        std::memory_order_relaxed);
  std::memcpy(reinterpret_cast<std::byte*>(&to) + sizeof(PageHeader),
              page.bytes + sizeof(PageHeader), kPageBytes - sizeof(PageHeader));
  ++pages_written_;
}

Result<SnapshotPointer> PageOutput::write(PageBuffer& page) {
  SnapshotPointer at;
  ATOLL_TRY(write_run({&page, 1}, [&](SnapshotPointer first) { at = first; }));
  CHECK(!at.is_null() && !is_stand_in(at));
  return at;
}

Result<void> PageOutput::write_run(std::span<PageBuffer> pages,
                                   const std::function<void(SnapshotPointer first)>& place) {
  CHECK(!pages.empty());
  ATOLL_TRY(check_cancelled());
  uint64_t first = 0;
  std::unique_lock<std::mutex> lock;
  if (writer_mutex_ != nullptr) lock = std::unique_lock(*writer_mutex_);
  for (size_t i = 0; i < pages.size(); ++i) {
    ATOLL_ASSIGN(auto next, writer_.next(storage_id_));
    if (i == 0) {
      first = next->self;
      place(SnapshotPointer(first));
    }
    CHECK(next->self == first + i);  // adjacent in the file
    copy(pages[i], *next);
    written_.add(storage_id_, SnapshotPointer(next->self), next->layer);
  }
  return {};
}

void PageOutput::count_replaced(SnapshotPointer page, uint32_t layer) {
  CHECK(!page.is_null() && !is_stand_in(page));  // pages that stand-ins replace are never counted
  if (fault::forget_replaced_pages) return;
  replaced_.add(storage_id_, page, layer);
}

void PageOutput::count_captured(SnapshotPointer page) {
  CHECK(!page.is_null() && !is_stand_in(page));
  written_.add(storage_id_, page, 0);
  ++pages_written_;
}

Result<void> PageOutput::check_child(SnapshotPointer parent, SnapshotPointer child) const {
  DCHECK(!parent.is_null());
  if (child.snapshot() <= parent.snapshot()) return {};
  return wrong_page(
      storage_id_, unmarked(parent),
      fmt::format("it leads to a page of snapshot {}, which is newer", child.snapshot()));
}

std::string text_of_range(std::string_view prefix, const SliceRange& range) {
  const std::string above = hex_of(prefix);
  if (range.low == 0 && range.high_is_end) {
    return above.empty() ? "all keys" : fmt::format("all keys that begin with 0x{}", above);
  }
  std::string text = fmt::format("keys from 0x{}{:016x}", above, range.low);
  if (!range.high_is_end) return text + fmt::format(" to before 0x{}{:016x}", above, range.high);
  return text + (above.empty() ? " on" : fmt::format(" on that begin with 0x{}", above));
}

}  // namespace atolldb
