#include "engine/compose/combine_roots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/compose/compose.h"
#include "engine/compose/page_output.h"
#include "engine/compose/tree_builder.h"
#include "engine/format/array_page.h"
#include "engine/format/sequential_page.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {

namespace {

using Partitions = std::span<const ComposedPartition>;

Result<SnapshotPointer> combine_array(PageOutput& pages, const PlannedStorage& storage,
                                      Partitions partitions) {
  const ArrayShape shape(storage.record_count, storage.payload_bytes);
  CHECK(!partitions.empty());
  if (shape.levels == 1) {
    const std::vector<ComposedPage>& leaf = partitions.front().pages;
    CHECK(partitions.size() == 1 && leaf.size() <= 1);
    return leaf.empty() ? SnapshotPointer() : leaf.front().page;
  }
  PageBuffer root;
  root.header().type = PageType::array_interior;
  root.header().level = static_cast<uint8_t>(shape.levels - 1);
  const uint64_t span = shape.records_below(shape.levels - 2);
  for (const ComposedPartition& partition : partitions) {
    for (const ComposedPage& page : partition.pages) {
      CHECK(page.level + 2 == shape.levels && page.low % span == 0);
      CHECK(page.low < storage.record_count && page.low / span < kArrayFanout);
      auto& word = root.as<ArrayInterior>()->children[page.low / span].snapshot_word;
      CHECK(word.load(std::memory_order_relaxed) == 0);  // no other partition has this range
      word.store(page.page.word(), std::memory_order_relaxed);
    }
  }
  return pages.write(root);
}

Result<SnapshotPointer> combine_mastertree(PageOutput& pages, const PlannedStorage& storage,
                                           Partitions partitions) {
  CHECK(!partitions.empty() && low_slice(storage.partitions[0]) == 0);
  uint32_t top = 0;
  for (const ComposedPartition& partition : partitions) {
    for (const ComposedPage& page : partition.pages) top = std::max(top, page.level);
  }
  TreeBuilder builder(pages, 0);
  for (size_t i = 0; i < partitions.size(); ++i) {
    const std::vector<ComposedPage>& here = partitions[i].pages;
    const bool is_last = i + 1 == partitions.size();
    CHECK(here.empty() || here.front().low == low_slice(storage.partitions[i]));
    if (here.empty()) {
      ATOLL_TRY(builder.add_page(top, low_slice(storage.partitions[i]), {}));
    }
    for (size_t at = 0; at < here.size(); ++at) {
      const bool is_last_page = at + 1 == here.size();
      const uint64_t high =
          !is_last_page ? here[at + 1].low : (is_last ? 0 : low_slice(storage.partitions[i + 1]));
      const SliceRange range{here[at].low, high, is_last && is_last_page};
      CHECK(range.high_is_end || range.low < range.high);
      SnapshotPointer page = here[at].page;
      for (uint32_t level = here[at].level; level < top; ++level) {
        ATOLL_ASSIGN(page, builder.cover(level, page, range));
      }
      ATOLL_TRY(builder.add_page(top, range.low, page));
    }
  }
  uint32_t level = 0;
  ATOLL_ASSIGN(auto root, builder.finish(SliceRange{}, 1, level));
  CHECK(root.size() == 1 && root.front().low == 0);
  return root.front().page;
}

/// Returns the root page that the composer of the base's runs could not read, or null. The caller
/// does not read the page again. If a second read succeeded, the new root would not refer to the
/// page, although the composer has not copied its runs.
SnapshotPointer find_lost_root(Partitions partitions) {
  for (const ComposedPartition& partition : partitions) {
    const auto found = std::ranges::find_if(partition.pages, is_lost_root);
    if (found != partition.pages.end()) return found->page;
  }
  return {};
}

/// Adds the new runs to a copy of the base's newest root page. If that page is full, adds them to
/// new root pages. A rewrite begins with an empty root page.
Result<SnapshotPointer> combine_sequential(PageOutput& pages, const PlannedStorage& storage,
                                           const SnapshotPlan& plan, Partitions partitions,
                                           uint64_t& records) {
  PageBuffer buffer;
  auto* root = buffer.as<SequentialSnapshotRoot>();
  SnapshotPointer at = storage.base_root;
  if (plan.rewrites) {
    at = find_lost_root(partitions);
    root->previous = at.word();
  } else if (!at.is_null()) {
    ATOLL_ASSIGN(auto found,
                 pages.find(at, buffer, PageType::sequential, PageType::sequential, 0, false));
    // A root page that cannot be read counts as full (R56).
    if (!found.is_readable) root->previous = at.word();
    if (found.is_readable &&
        (root->header.level != 1 || root->count > SequentialSnapshotRoot::kMaxRuns)) {
      return wrong_page(storage.id, at, "it is not a root page of a sequential storage");
    }
  }
  root->header.type = PageType::sequential;
  root->header.level = 1;
  const auto records_here = [root] {
    uint64_t sum = root->previous_records;
    for (uint64_t i = 0; i < root->count; ++i) sum += root->runs[i].records;
    return sum;
  };
  bool is_changed = false;
  for (const ComposedPartition& partition : partitions) {
    for (const ComposedPage& run : partition.pages) {
      if (is_lost_root(run)) continue;
      if (root->count == SequentialSnapshotRoot::kMaxRuns) {
        ATOLL_ASSIGN(auto written, is_changed ? pages.write(buffer) : Result<SnapshotPointer>(at));
        at = written;
        const uint64_t sum = records_here();
        std::memset(root->runs, 0, sizeof root->runs);
        root->previous = at.word();
        root->previous_records = sum;
        root->count = 0;
      }
      CHECK(run.pages > 0 && root->count < SequentialSnapshotRoot::kMaxRuns);
      root->runs[root->count++] = {run.page.word(), run.pages, run.low, run.high, run.records};
      is_changed = true;
    }
  }
  records = records_here();
  return is_changed ? pages.write(buffer) : Result<SnapshotPointer>(at);
}

/// Returns whether the pages of an array ascend, and are children of its root, or the root itself.
bool are_array_pages(const PlannedStorage& storage, Partitions partitions) {
  const ArrayShape shape(storage.record_count, storage.payload_bytes);
  if (shape.levels == 1 && partitions.size() != 1) return false;
  const uint32_t level = shape.levels == 1 ? 0 : shape.levels - 2;
  const uint64_t span = shape.records_below_root_child();
  uint64_t end = 0;
  for (const ComposedPartition& partition : partitions) {
    for (const ComposedPage& page : partition.pages) {
      if (page.page.is_null() || page.level != level || page.low % span != 0) return false;
      if (page.low < end || page.low >= storage.record_count) return false;
      end = page.low + span;
    }
  }
  return true;
}

/// Returns whether the pages of a Master-tree ascend and begin where their partitions begin.
bool are_tree_pages(const PlannedStorage& storage, Partitions partitions) {
  for (size_t i = 0; i < partitions.size(); ++i) {
    const std::vector<ComposedPage>& pages = partitions[i].pages;
    const bool is_last = i + 1 == partitions.size();
    for (size_t at = 0; at < pages.size(); ++at) {
      if (pages[at].page.is_null() || pages[at].level > UINT8_MAX) return false;
      if (at == 0 ? pages[at].low != low_slice(storage.partitions[i])
                  : pages[at].low <= pages[at - 1].low) {
        return false;
      }
    }
    if (pages.empty() || is_last) continue;
    if (pages.back().low >= low_slice(storage.partitions[i + 1])) return false;
  }
  return true;
}

/// Returns whether the composed pages fit the plan's partitions. They come from another process.
bool fit_the_plan(const PlannedStorage& storage, Partitions partitions) {
  if (storage.type == StorageType::array) return are_array_pages(storage, partitions);
  if (storage.type == StorageType::mastertree) return are_tree_pages(storage, partitions);
  return std::ranges::all_of(partitions, [](const ComposedPartition& partition) {
    return std::ranges::all_of(partition.pages, [](const ComposedPage& run) {
      return !run.page.is_null() && (run.pages > 0 || is_lost_root(run));
    });
  });
}

Result<void> check_partitions(const PlannedStorage& storage, Partitions partitions) {
  const bool is_sequential = storage.type == StorageType::sequential;
  const size_t expected = is_sequential ? partitions.size() : storage.partitions.size();
  for (size_t i = 0; i < partitions.size(); ++i) {
    if (partitions[i].storage_id != storage.id ||
        (!is_sequential && partitions[i].partition != i)) {
      return make_error(
          ExitCode::failed,
          fmt::format("storage {}: composed partition number {} is partition {} of "
                      "storage {}",
                      storage.id, i, partitions[i].partition, partitions[i].storage_id));
    }
  }
  if (partitions.size() != expected) {
    return make_error(ExitCode::failed,
                      fmt::format("storage {}: {} partitions were composed, the plan has {}",
                                  storage.id, partitions.size(), expected));
  }
  if (fit_the_plan(storage, partitions)) return {};
  return make_error(ExitCode::failed,
                    fmt::format("storage {}: its composed pages do not fit the plan's partitions: "
                                "internal error",
                                storage.id));
}

}  // namespace

Result<CombinedRoot> combine_roots(const SnapshotPlan& plan, size_t storage_index,
                                   Partitions partitions, const SnapshotFiles& base,
                                   SnapshotWriter& writer) {
  CHECK(storage_index < plan.storages.size());
  const PlannedStorage& storage = plan.storages[storage_index];
  ATOLL_TRY(check_partitions(storage, partitions));
  const std::function<bool()> never;
  PageOutput pages(base, writer, nullptr, storage.id, never);
  CombinedRoot combined{.root = storage.base_root};
  for (const ComposedPartition& partition : partitions) {
    combined.log_records += partition.log_records;
    combined.pages_written += partition.pages_written;
  }
  combined.records = combined.log_records;
  const bool is_sequential = storage.type == StorageType::sequential;
  const bool is_rewritten = plan.rewrites && !storage.base_root.is_null();
  if (combined.log_records != 0 || is_sequential || is_rewritten) {
    ATOLL_ASSIGN(
        combined.root,
        is_sequential ? combine_sequential(pages, storage, plan, partitions, combined.records)
        : storage.type == StorageType::array ? combine_array(pages, storage, partitions)
                                             : combine_mastertree(pages, storage, partitions));
  }
  combined.pages_written += pages.pages_written();
  return combined;
}

}  // namespace atolldb
