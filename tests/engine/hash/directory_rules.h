// Bodies of tests of the directory of border pages (R86). A body returns an error text, or an empty
// text if all is right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/hash/hash.h"
#include "engine/transaction/page_directory.h"
#include "tests/engine/mastertree/oracle.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

/// A hash storage with one worker, and a second directory, which no transaction updates.
class HintedHash {
 public:
  HintedHash() : storage(cluster.create("hinted", StorageType::hash)), hash(storage) {}

  TestWorker& worker() { return cluster.worker(0); }

  Status insert(uint64_t number) {
    return worker().run(
        [&](Transaction& txn) { return hash.insert(txn, ordered_key(number), bytes_of(payload)); });
  }
  uint64_t hash_of(uint64_t number) const { return hash_of_key(ordered_key(number)); }

  /// Stores the present page of the key in the second directory, and returns it.
  BorderPage* keep_hint(uint64_t number) {
    PageVersion version;
    BorderPage* page =
        cluster.directory().find(cluster.view(), storage.id, hash_of(number), version);
    if (page != nullptr) hints.remember(cluster.view(), storage.id, hash_of(number), page);
    return page;
  }
  BorderPage* follow_hint(uint64_t number) const {
    PageVersion version;
    return hints.find(cluster.view(), storage.id, hash_of(number), version);
  }

  mutable TestCluster cluster{1, 1, {.clock = false}};
  StorageControl& storage;
  Hash hash;
  PageDirectory hints;
  const std::string payload = std::string(100, 'p');
};

/// Inserts records until the page of record 0 has been replaced. Returns that page, or null.
inline BorderPage* replace_page_of_first(HintedHash& test) {
  if (test.insert(0) != Status::ok || test.insert(1) != Status::ok) return nullptr;
  BorderPage* const page = test.keep_hint(0);
  if (page == nullptr || test.follow_hint(0) != page) return nullptr;
  // Between transactions. From now on only the test uses hints: without the rule, an insert would
  // follow its own hint to the replaced page again and again.
  test.worker().context->use_directory(nullptr);
  for (uint64_t number = 2; !page->header.version().is_moved(); ++number) {
    if (number > 1000 || test.insert(number) != Status::ok) return nullptr;
  }
  return page;
}

inline std::string a_hint_to_a_replaced_page_is_not_followed() {
  HintedHash test;
  if (replace_page_of_first(test) == nullptr) return "no page was replaced";
  return test.follow_hint(0) == nullptr ? "" : "a replaced page was found";
}

/// The page is taken for another use, and holds what looks like a page of the same storage.
inline std::string a_hint_to_a_page_of_another_use_is_not_followed() {
  HintedHash test;
  BorderPage* const page = replace_page_of_first(test);
  if (page == nullptr) return "no page was replaced";
  WorkerContext& context = *test.worker().context;
  // The page is retired once the parent has adopted its successors.
  for (uint64_t number = 1001; number < 1050; ++number) {
    if (test.insert(number) != Status::ok) return "an insert failed";
  }
  context.leave();
  for (int i = 0; i < 3; ++i) test.cluster.tick();
  context.enter();
  for (uint64_t taken = 0; taken < test.cluster.pool(0).page_count(); ++taken) {
    PageHeader* const next = context.pages().take();
    if (next == nullptr) break;
    if (next != &page->header) continue;
    page->low = 0;
    page->high = 0;
    next->storage_id = test.storage.id;
    next->type = PageType::mastertree_border;
    return test.follow_hint(0) == nullptr ? "" : "a page of another use was found";
  }
  return "the page was not taken again";
}

}  // namespace atolldb::test
