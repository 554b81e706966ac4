#include "engine/transaction/storage_ops.h"

#include <cstring>

#include "engine/format/sequential_page.h"
#include "engine/hooks/mutants.h"
#include "engine/sequential/sequential.h"
#include "engine/transaction/dual_pointer.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// Takes a page of the worker's node and clears it. REQUIRES: the caller has reserved the page.
template <typename Page>
Page* new_page(WorkerContext& worker, uint32_t storage_id, uint8_t level) {
  PageHeader* header = worker.pages().take();
  CHECK(header != nullptr);
  std::memset(reinterpret_cast<std::byte*>(header) + sizeof(PageHeader), 0,
              kPageBytes - sizeof(PageHeader));
  header->type = PageType::sequential;
  header->storage_id = storage_id;
  header->level = level;
  return reinterpret_cast<Page*>(header);
}

/// Returns the page that `word` leads to. If the word is null, installs a new page first (R1).
template <typename Page>
Page* install(WorkerContext& worker, std::atomic<uint64_t>& word, uint32_t storage_id,
              uint8_t level) {
  // Acquire pairs with the release of the worker that installed the page.
  uint64_t seen = word.load(std::memory_order_acquire);
  if (VolatilePointer(seen).is_null()) {
    Page* page = new_page<Page>(worker, storage_id, level);
    if (install_page(word, seen, page->header.self)) return page;
    worker.pages().give_back(&page->header);
  }
  PageHeader* page = worker.resolve(VolatilePointer(seen));
  DCHECK(page->type == PageType::sequential && page->level == level);
  DCHECK(page->storage_id == storage_id);
  return reinterpret_cast<Page*>(page);
}

uint32_t ordinal_of(const WorkerContext& worker) { return worker.id() & 0xff; }

SequentialListHead* own_list(WorkerContext& worker, StorageControl& storage) {
  auto* root = install<SequentialDirectory>(worker, storage.root.volatile_word, storage.id, 2);
  auto* node = install<SequentialDirectory>(worker, root->entries[worker.node()], storage.id, 1);
  return install<SequentialListHead>(worker, node->entries[ordinal_of(worker)], storage.id, 0);
}

}  // namespace

Status prepare_list(WorkerContext& worker, StorageControl& storage) {
  constexpr uint32_t kPages = 3;  // root, the node's directory, the list's head
  if (!worker.reserve_pages(kPages)) return Status::volatile_pool_exhausted;
  own_list(worker, storage);
  return Status::ok;
}

void begin_append(WorkerContext& worker, StorageControl& storage) {
  SequentialListHead* list = own_list(worker, storage);
  const uint64_t version = list->version.load(std::memory_order_relaxed);
  // The commit's seq_cst exchange orders this store before the load of the epoch and the
  // verification.
  if (fault::even_list_while_appending) return;
  if (version % 2 == 0) list->version.store(version + 1, std::memory_order_release);
}

void apply_append(WorkerContext& worker, StorageControl& storage, const LogRecord& log, Vid vid) {
  SequentialListHead* list = own_list(worker, storage);
  DCHECK(list->version.load(std::memory_order_relaxed) % 2 == 1);
  const uint32_t bytes = SequentialRecord::bytes_for(log.payload_bytes);
  auto* page = list->last == 0
                   ? nullptr
                   : reinterpret_cast<SequentialPage*>(worker.resolve(VolatilePointer(list->last)));
  if (page == nullptr || !page->has_room(bytes)) {
    auto* fresh = new_page<SequentialPage>(worker, storage.id, 0);
    fresh->number = page == nullptr ? 0 : page->number + 1;
    std::atomic<uint64_t>& link = page == nullptr ? list->first : page->next;
    // Release: the page is complete. Scans load the link with acquire.
    link.store(fresh->header.self, std::memory_order_release);
    list->last = fresh->header.self;
    page = fresh;
  }
  DCHECK(page->has_room(bytes) && page->next.load(std::memory_order_relaxed) == 0);
  auto* record = reinterpret_cast<SequentialRecord*>(page->data + page->used_bytes);
  record->vid = vid.word();
  record->payload_bytes = log.payload_bytes;
  if (log.payload_bytes != 0) std::memcpy(record->payload(), log.payload(), log.payload_bytes);
  page->used_bytes += bytes;
  DCHECK(page->used_bytes <= SequentialPage::kDataBytes);
  page->header.set_version(page->header.version().with_insert(true));
}

void end_append(WorkerContext& worker, StorageControl& storage) {
  SequentialListHead* list = own_list(worker, storage);
  const uint64_t version = list->version.load(std::memory_order_relaxed);
  if (fault::unchanged_list_version) return cancel_append(worker, storage);
  if (fault::even_list_while_appending) list->version.store(version + 2, std::memory_order_release);
  // Release pairs with the acquire of scans: the records are visible.
  if (version % 2 == 1) list->version.store(version + 1, std::memory_order_release);
  DCHECK(list->version.load(std::memory_order_relaxed) % 2 == 0);
}

void cancel_append(WorkerContext& worker, StorageControl& storage) {
  SequentialListHead* list = own_list(worker, storage);
  const uint64_t version = list->version.load(std::memory_order_relaxed);
  if (version % 2 == 1) list->version.store(version - 1, std::memory_order_release);
  DCHECK(list->version.load(std::memory_order_relaxed) % 2 == 0);
}

const std::atomic<uint64_t>* own_list_version(WorkerContext& worker, StorageControl& storage) {
  return &own_list(worker, storage)->version;
}

void release_sequential(WorkerContext& worker, StorageControl& storage) {
  const VolatilePointer root_word = storage.root.load_acquire();
  if (root_word.is_null()) return;
  storage.root.volatile_word.store(0, std::memory_order_seq_cst);
  auto resolve = [&](const std::atomic<uint64_t>& word) -> PageHeader* {
    const VolatilePointer pointer(word.load(std::memory_order_acquire));
    return pointer.is_null() ? nullptr : worker.view().resolve(pointer);
  };
  auto* root = reinterpret_cast<SequentialDirectory*>(worker.view().resolve(root_word));
  for (const auto& node_word : root->entries) {
    auto* node = reinterpret_cast<SequentialDirectory*>(resolve(node_word));
    if (node == nullptr) continue;
    for (const auto& list_word : node->entries) {
      auto* list = reinterpret_cast<SequentialListHead*>(resolve(list_word));
      if (list == nullptr) continue;
      auto* page = reinterpret_cast<SequentialPage*>(resolve(list->first));
      while (page != nullptr) {
        auto* next = reinterpret_cast<SequentialPage*>(resolve(page->next));
        worker.pages().retire(&page->header);
        page = next;
      }
      worker.pages().retire(&list->header);
    }
    worker.pages().retire(&node->header);
  }
  worker.pages().retire(&root->header);
}

}  // namespace atolldb
