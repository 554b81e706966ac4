// The snapshot pages that a node has read from files lately. The assignment of partitions counts
// them, so that pages come to lie on the node that reads them. Only misses of the cache are
// counted: they read a file anyway, and pages in the cache are local wherever their file is.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/format/tree_page.h"
#include "shared/base/check.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// A page that was read. `key`: first slice of its range.
struct ReadPage {
  uint32_t storage_id = 0;
  uint64_t key = 0;

  bool operator==(const ReadPage&) const = default;
};

struct ReadPages {
  uint64_t count = 0;           // number of pages that were read
  std::vector<ReadPage> pages;  // the last of them, at most RecentReads::kSample
};

/// Not thread-safe: the cache's lock guards it.
class RecentReads {
 public:
  static constexpr uint64_t kSample = 1024;

  /// Counts a page of the first layer of a Master-tree. Other pages do not say which keys of their
  /// storage they have.
  void add(const PageHeader& page) {
    const bool is_tree =
        page.type == PageType::mastertree_border || page.type == PageType::mastertree_interior;
    if (!is_tree || page.layer != 0) return;
    CHECK(page.is_snapshot == 1);
    const auto& tree = reinterpret_cast<const TreePage&>(page);
    pages_[count_++ % kSample] = {page.storage_id, tree.low};
  }

  /// Returns what was read since the last call.
  ReadPages take() {
    ReadPages taken{count_, {}};
    const uint64_t kept = count_ < kSample ? count_ : kSample;
    taken.pages.assign(pages_.begin(), pages_.begin() + static_cast<ptrdiff_t>(kept));
    CHECK(taken.pages.size() <= taken.count);
    count_ = 0;
    return taken;
  }

 private:
  std::array<ReadPage, kSample> pages_{};
  uint64_t count_ = 0;
};

}  // namespace atolldb
