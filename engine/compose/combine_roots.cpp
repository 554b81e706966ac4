#include "engine/compose/combine_roots.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/compose/compose.h"
#include "engine/compose/page_output.h"
#include "engine/compose/sequential_runs.h"
#include "engine/compose/tree_builder.h"
#include "engine/format/array_page.h"
#include "engine/format/sequential_page.h"
#include "engine/gleaner/victims.h"
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

/// Returns, by node, the oldest run of the base that the node has replaced.
std::map<uint32_t, uint64_t> find_replaced(Partitions partitions) {
  std::map<uint32_t, uint64_t> first;
  for (const ComposedPartition& partition : partitions) {
    if (partition.pages.empty() || !is_replaced_from(partition.pages.front())) continue;
    const bool is_new =
        first.emplace(partition.partition, partition.pages.front().page.word()).second;
    CHECK(is_new);  // each node occurs once, see check_partitions
  }
  return first;
}

/// Returns the error for a replaced run that is in no readable root page. The next snapshot job may
/// succeed.
std::unexpected<Error> lost_runs(uint32_t storage_id, uint32_t node, const BaseRuns& base) {
  const std::string reason = base.unreadable.empty() ? "internal error" : base.unreadable;
  return make_error(base.unreadable.empty() ? ExitCode::failed : ExitCode::corruption,
                    fmt::format("storage {}: node {} has composed runs that no readable root page "
                                "has: {}",
                                storage_id, node, reason));
}

/// Removes from `base`, for each node, the run that `replaced` names and all newer runs.
Result<void> remove_replaced(const SnapshotPlan& plan, uint32_t storage_id,
                             const std::map<uint32_t, uint64_t>& replaced, BaseRuns& base) {
  std::set<uint32_t> nodes;  // nodes whose named run was found: their next runs are replaced, too
  std::vector<SequentialRun> kept;
  for (const SequentialRun& run : base.runs) {
    const uint32_t node = composing_node(plan, run);
    const auto first = replaced.find(node);
    if (first != replaced.end() && first->second == run.first_page) nodes.insert(node);
    if (!nodes.contains(node)) kept.push_back(run);
  }
  for (const auto& [node, first] : replaced) {
    if (!nodes.contains(node)) return lost_runs(storage_id, node, base);
  }
  base.runs = std::move(kept);
  return {};
}

/// Returns the runs of the base that the new snapshot keeps. A salvage keeps none: the runs that
/// its composers could not read are lost.
Result<BaseRuns> kept_runs(PageOutput& pages, const PlannedStorage& storage,
                           const SnapshotPlan& plan, Partitions partitions) {
  if (plan.salvages) return BaseRuns{};
  const std::map<uint32_t, uint64_t> replaced = find_replaced(partitions);
  size_t missing = replaced.size();
  const Victims victims(plan, storage);
  const auto is_enough = [&](std::span<const SequentialRun> runs, SnapshotPointer older) {
    missing -= static_cast<size_t>(std::ranges::count_if(runs, [&](const SequentialRun& run) {
      const auto first = replaced.find(composing_node(plan, run));
      return first != replaced.end() && first->second == run.first_page;
    }));
    return missing == 0 && !victims.may_be_at_or_below(older);
  };
  ATOLL_ASSIGN(BaseRuns base, read_base_runs(pages, storage.base_root, is_enough));
  ATOLL_TRY(remove_replaced(plan, storage.id, replaced, base));
  // The files of victims are deleted, unless a composer has found a page that it could not read
  // (R56).
  const bool keeps_files = std::ranges::any_of(
      partitions, [](const ComposedPartition& partition) { return partition.stand_ins != 0; });
  const bool is_rest = victims.may_be_at_or_below(base.older) ||
                       std::ranges::any_of(base.runs, [&](const SequentialRun& run) {
                         return victims.has(SnapshotPointer(run.first_page));
                       });
  if (is_rest && !keeps_files) {
    return make_error(
        ExitCode::failed,
        fmt::format("storage {}: runs remain in the files of victims: internal error", storage.id));
  }
  return base;
}

/// Writes new root pages after the older ones: first the runs that the new snapshot keeps, then the
/// composed runs. If nothing was composed, returns the root of the base.
Result<SnapshotPointer> combine_sequential(PageOutput& pages, const PlannedStorage& storage,
                                           const SnapshotPlan& plan, Partitions partitions,
                                           uint64_t& records) {
  ATOLL_ASSIGN(BaseRuns base, kept_runs(pages, storage, plan, partitions));
  const size_t unchanged = base.runs.size();
  for (const ComposedPartition& partition : partitions) {
    for (const ComposedPage& run : partition.pages) {
      if (is_replaced_from(run)) continue;
      CHECK(run.pages > 0 && run.low <= run.high);
      base.runs.push_back({run.page.word(), run.pages, run.low, run.high, run.records});
    }
  }
  records = base.older_records;
  for (const SequentialRun& run : base.runs) records += run.records;
  const bool has_victims = Victims(plan, storage).may_be_at_or_below(storage.base_root);
  if (base.runs.size() == unchanged && !has_victims) return storage.base_root;
  for (const SnapshotPointer root : base.roots) pages.count_replaced(root, 0);
  SnapshotPointer previous = base.older;
  uint64_t previous_records = base.older_records;
  for (size_t at = 0; at < base.runs.size();) {
    PageBuffer buffer;
    auto* root = buffer.as<SequentialSnapshotRoot>();
    root->header.type = PageType::sequential;
    root->header.level = 1;
    root->previous = previous.word();
    root->previous_records = previous_records;
    root->count =
        std::min<uint64_t>(base.runs.size() - at, uint64_t{SequentialSnapshotRoot::kMaxRuns});
    for (uint64_t i = 0; i < root->count; ++i) {
      root->runs[i] = base.runs[at++];
      previous_records += root->runs[i].records;
    }
    ATOLL_ASSIGN(previous, pages.write(buffer));
  }
  return previous;
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

/// Returns whether the partitions of a sequential storage ascend, and have runs of pages. Only the
/// first page may name a run that is replaced.
bool are_runs(Partitions partitions) {
  for (size_t i = 0; i < partitions.size(); ++i) {
    if (i > 0 && partitions[i].partition <= partitions[i - 1].partition) return false;
    const std::vector<ComposedPage>& runs = partitions[i].pages;
    for (size_t at = 0; at < runs.size(); ++at) {
      if (runs[at].page.is_null()) return false;
      if (at == 0 && is_replaced_from(runs[at])) continue;
      if (runs[at].pages == 0 || runs[at].low > runs[at].high) return false;
    }
  }
  return true;
}

/// Returns whether the pages, which come from another process, are those of the plan's partitions.
bool fit_the_plan(const PlannedStorage& storage, Partitions partitions) {
  if (storage.type == StorageType::array) return are_array_pages(storage, partitions);
  if (is_tree(storage.type)) return are_tree_pages(storage, partitions);
  return are_runs(partitions);
}

/// Returns whether all counts are of pages of this storage. Written pages must belong to the new
/// snapshot, and replaced pages to older ones.
bool are_counts_of_storage(const SnapshotPlan& plan, const PlannedStorage& storage,
                           Partitions partitions) {
  return std::ranges::all_of(partitions, [&](const ComposedPartition& partition) {
    return std::ranges::all_of(partition.written,
                               [&](const LivePages& pages) {
                                 return pages.storage_id == storage.id &&
                                        pages.snapshot == plan.snapshot;
                               }) &&
           std::ranges::all_of(partition.replaced, [&](const LivePages& pages) {
             return pages.storage_id == storage.id && pages.snapshot < plan.snapshot;
           });
  });
}

Result<void> check_partitions(const SnapshotPlan& plan, const PlannedStorage& storage,
                              Partitions partitions) {
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
  const bool fit = fit_the_plan(storage, partitions);
  if (fit && are_counts_of_storage(plan, storage, partitions)) return {};
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
  ATOLL_TRY(check_partitions(plan, storage, partitions));
  const std::function<bool()> never;
  PageOutput pages(base, writer, nullptr, storage.id, never);
  CombinedRoot combined{.root = storage.base_root};
  PageCounts written;
  PageCounts replaced;
  for (const ComposedPartition& partition : partitions) {
    combined.log_records += partition.log_records;
    combined.pages_written += partition.pages_written;
    written.add(partition.written);
    replaced.add(partition.replaced);
    combined.change += partition.records;
  }
  combined.records = combined.log_records;
  const bool is_sequential = storage.type == StorageType::sequential;
  const bool has_victims = storage.has_victims && !storage.base_root.is_null();
  // A job writes pages even without log records if the ranges of volatile pages have changed (R71).
  const bool is_changed = combined.log_records != 0 || combined.pages_written != 0;
  if (is_changed || is_sequential || has_victims) {
    ATOLL_ASSIGN(
        combined.root,
        is_sequential ? combine_sequential(pages, storage, plan, partitions, combined.records)
        : storage.type == StorageType::array ? combine_array(pages, storage, partitions)
                                             : combine_mastertree(pages, storage, partitions));
    written.add(pages.written().list());
    replaced.add(pages.replaced().list());
    combined.written = written.list();
    combined.replaced = replaced.list();
  }
  combined.pages_written += pages.pages_written();
  return combined;
}

}  // namespace atolldb
