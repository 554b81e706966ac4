#include "engine/transaction/page_directory.h"

#include <sys/mman.h>

#include <algorithm>

namespace atolldb {

namespace {

/// True after the process has had no address space for a table. Then it makes no more tables: they
/// are hints, and a look-up without one descends.
std::atomic<bool> address_space_is_short{false};

bool can_reserve(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, bytes);
  return true;
}

constexpr uint64_t kAllSlices = ~uint64_t{0};

/// Returns how many slices of [first, last] the page has, minus 1. REQUIRES: it has at least one.
uint64_t overlap(const TreePage& page, uint64_t first, uint64_t last) {
  DCHECK(page.low <= last && page.last() >= first);
  return std::min(page.last(), last) - std::max(page.low, first);
}

}  // namespace

/// Returns the table of the storage. The slot may have the table of a dropped storage, which no
/// thread uses any more (R34). Without address space for a table, returns one without words.
PageDirectory::Table& PageDirectory::open(uint32_t storage_id) {
  Table& table = (*tables_)[storage_id % kMaxStorages];
  if (table.storage_id.load(std::memory_order_acquire) == storage_id) return table;
  const std::lock_guard guard(opening_);
  if (table.storage_id.load(std::memory_order_relaxed) == storage_id) return table;
  if (table.words == nullptr) {
    constexpr uint64_t kWords = uint64_t{1} << kMaxDepth;
    if (address_space_is_short.load(std::memory_order_relaxed)) return table;
    if (!can_reserve(kWords * sizeof(uint64_t))) {
      address_space_is_short.store(true, std::memory_order_relaxed);
      return table;
    }
    table.words = std::make_unique<ZeroedArray<std::atomic<uint64_t>>>(kWords);
  } else {
    table.storage_id.store(0, std::memory_order_relaxed);
    table.words->clear();
  }
  DCHECK((*table.words)[0].load(std::memory_order_relaxed) == 0);
  table.shift.store(64 - kMinDepth, std::memory_order_relaxed);
  table.narrow.store(0, std::memory_order_relaxed);
  table.storage_id.store(storage_id, std::memory_order_release);
  return table;
}

/// Doubles the number of entries, unless another thread has done so. The entries keep the names of
/// other pages, until later descents overwrite them. So growth stops no thread and copies nothing.
void PageDirectory::grow(Table& table, uint32_t shift) {
  if (shift <= 64 - kMaxDepth) return;
  const uint64_t entries = uint64_t{1} << (64 - shift);
  if (!table.shift.compare_exchange_strong(shift, shift - 1, std::memory_order_relaxed)) return;
  table.narrow.store(0, std::memory_order_relaxed);
  // The table of 10 million records has 2,048 small pages, more than the processor's address cache.
  // Only the worker that has doubled a table makes this system call, and only for tables of at
  // least one large page. Meanwhile other workers may use a few of the new entries, whose part of
  // the table then keeps small pages.
  table.words->prefer_huge_pages(entries, entries);
}

BorderPage* PageDirectory::find_beside(const ClusterView& view, uint32_t storage_id, uint64_t slice,
                                       const TreePage& page, PageVersion& version) const {
  const Table& table = table_of(storage_id);
  const uint32_t shift = table.shift.load(std::memory_order_relaxed);
  const uint64_t entry = slice >> shift;
  DCHECK(!page.contains(slice) && shift >= 64 - kMaxDepth);
  const bool is_before = slice < page.low;
  if (entry == (is_before ? 0 : kAllSlices >> shift)) return nullptr;
  const std::atomic<uint64_t>& word = (*table.words)[is_before ? entry - 1 : entry + 1];
  // Acquire pairs with the release in `remember`, so that the page is seen as it was published.
  const VolatilePointer name(word.load(std::memory_order_acquire));
  TreePage* const beside = live_page(view, name, storage_id, version);
  return beside != nullptr && beside->contains(slice) ? border_page(beside) : nullptr;
}

void PageDirectory::remember(const ClusterView& view, uint32_t storage_id, uint64_t slice,
                             TreePage* page) {
  DCHECK(page->header.layer == 0 && page->header.is_delta == 0);
  if (address_space_is_short.load(std::memory_order_relaxed)) return;
  Table& table = open(storage_id);
  if (table.words == nullptr) return;
  const uint32_t shift = table.shift.load(std::memory_order_relaxed);
  if (store_entry(view, table, shift, slice, page)) count_width(table, shift, *page);
}

bool PageDirectory::store_entry(const ClusterView& view, Table& table, uint32_t shift,
                                uint64_t slice, TreePage* page) {
  const uint32_t storage_id = page->header.storage_id;
  DCHECK(page->is_border() && page->contains(slice));
  DCHECK(table.words != nullptr);
  CHECK(shift >= 64 - kMaxDepth && shift <= 64 - kMinDepth);
  std::atomic<uint64_t>& word = (*table.words)[slice >> shift];
  const uint64_t first = slice >> shift << shift;
  const uint64_t last = first | (kAllSlices >> (64 - shift));
  PageVersion version;
  const uint64_t before = word.load(std::memory_order_acquire);
  const TreePage* const known = live_page(view, VolatilePointer(before), storage_id, version);
  // The page with more of the entry's slices has the entry. So two pages do not take turns in it.
  const bool is_better = known == nullptr || known->low > last || known->last() < first ||
                         overlap(*known, first, last) < overlap(*page, first, last);
  if (is_better) word.store(page->header.self, std::memory_order_release);
  return is_better;
}

/// Relaxed, and not atomic as a whole: the sum only decides when the table grows.
void PageDirectory::count_width(Table& table, uint32_t shift, const TreePage& page) {
  const uint64_t sum = table.narrow.load(std::memory_order_relaxed);
  const bool is_narrow = (page.last() - page.low) >> shift < kEntriesOfPage;
  if (!is_narrow) {
    if (sum != 0) table.narrow.store(sum - 1, std::memory_order_relaxed);
    return;
  }
  table.narrow.store(sum + kNarrowPart - 1, std::memory_order_relaxed);
  if (sum >= (uint64_t{1} << (64 - shift)) / kNarrowPart) grow(table, shift);
}

void PageDirectory::remember_all(const ClusterView& view, uint32_t storage_id, TreePage* page) {
  constexpr uint64_t kMaxEntries = 64;
  Table& table = (*tables_)[storage_id % kMaxStorages];
  if (table.storage_id.load(std::memory_order_acquire) != storage_id) return;
  const uint32_t shift = table.shift.load(std::memory_order_relaxed);
  const uint64_t first = page->low >> shift;
  const uint64_t entries = (page->last() >> shift) - first + 1;
  DCHECK(shift >= 64 - kMaxDepth && shift <= 64 - kMinDepth);
  bool is_stored = false;
  for (uint64_t i = 0; i < std::min(entries, kMaxEntries); ++i) {
    is_stored |= store_entry(view, table, shift, std::max(page->low, (first + i) << shift), page);
  }
  if (is_stored) count_width(table, shift, *page);  // once, not for each entry
}

}  // namespace atolldb
