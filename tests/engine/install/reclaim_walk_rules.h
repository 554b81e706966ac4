// Bodies of tests in which the walk of an installer reclaims the pages of deleted records, although
// the hints about them were lost (R70, R71). A body returns an error text, or an empty text if all
// is right. Every run takes the same steps.
#pragma once

#include <array>
#include <atomic>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/mastertree/reclaim.h"
#include "engine/mastertree/tree_path.h"
#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/install/droppable_tree.h"

namespace atolldb::test {

/// A tree of small layers. The keys of a layer share a slice. `lose_hints` discards the worker's
/// hints.
class SmallLayers {
 public:
  explicit SmallLayers(uint32_t workers) : warm(workers), tree(warm.storage) {}

  static std::string key(uint64_t layer, const char* rest) { return big_endian(layer) + rest; }
  Status insert(uint64_t layer, const char* rest, const std::string& value) {
    return run(0, [&](Transaction& txn) {
      return tree.insert(txn, bytes_of(key(layer, rest)), bytes_of(value));
    });
  }
  Status update(uint32_t worker, uint64_t layer, const char* rest, const std::string& value) {
    return run(worker, [&](Transaction& txn) {
      return tree.update(txn, bytes_of(key(layer, rest)), bytes_of(value));
    });
  }
  /// Erases one key of each of the first `layers` layers, in one transaction.
  Status erase(uint64_t layers, const char* rest) {
    return run(0, [&](Transaction& txn) {
      Status status = Status::ok;
      for (uint64_t i = 0; i < layers && status == Status::ok; ++i) {
        status = tree.erase(txn, bytes_of(key(i, rest)));
      }
      return status;
    });
  }
  Status erase_one(uint64_t layer, const char* rest) {
    return run(0, [&](Transaction& txn) { return tree.erase(txn, bytes_of(key(layer, rest))); });
  }
  std::string value_of(uint64_t layer, const char* rest) {
    std::string value;
    const Status status = run(0, [&](Transaction& txn) {
      return DroppableTree::read_key(txn, tree, key(layer, rest), value);
    });
    return status == Status::ok ? value : std::string(to_string(status));
  }
  void lose_hints() {
    HintQueue& hints = warm.cluster.worker(0).context->hints();
    std::array<std::byte, HintQueue::kMaxPrefixBytes> bytes;
    std::span<const std::byte> prefix;
    while (!hints.empty()) static_cast<void>(hints.pop(bytes, prefix));
  }
  /// Works the hints off, as an idle worker does.
  void work_off_hints() {
    WorkerContext& context = *warm.cluster.worker(0).context;
    while (!context.hints().empty()) {
      if (context.hints().is_due(context.current_epoch())) run_hints(context);
      context.leave();
      std::this_thread::yield();
    }
  }
  /// Waits until tombstones of earlier commits are removable (R10).
  void let_grace_pass() {
    const uint64_t epoch = warm.settle();
    const EpochBlock& epochs = warm.cluster.view().control->epochs;
    while (epochs.oldest_begin.load(std::memory_order_acquire) <= epoch + 1) {
      std::this_thread::yield();
    }
  }
  std::string statistics(TreeStatistics& statistics) {
    warm.cluster.worker(0).context->enter();
    std::string problem = warm.check(statistics);
    warm.cluster.worker(0).context->leave();
    return problem;
  }

  WarmTree warm;
  MasterTree tree;

 private:
  template <typename Body>
  Status run(uint32_t worker, Body&& body) {
    const Status status = warm.cluster.worker(worker).run(body);
    warm.cluster.worker(worker).context->leave();
    return status;
  }
};

/// R70: an installer finds layers whose hints were lost: empty layers, and layers with one record.
/// The installer needs no snapshot pages of these layers.
inline std::string installers_reclaim_what_hints_have_missed() {
  constexpr uint64_t kLayers = 30;
  SmallLayers test(1);
  for (uint64_t i = 0; i < kLayers; ++i) {
    for (const char* rest : {"a", "b"}) {
      if (test.insert(i, rest, "old") != Status::ok) return "no insert";
    }
  }
  TreeStatistics statistics;
  std::string problem = test.statistics(statistics);
  if (problem.empty() && statistics.layers != 1 + kLayers) problem = "a layer is missing";
  if (!problem.empty()) return problem;
  // After the first round every layer has one record, after the second round none.
  for (const char* rest : {"b", "a"}) {
    if (test.erase(kLayers, rest) != Status::ok) return "no erase";
    test.lose_hints();
    test.let_grace_pass();
    problem = test.warm.install(keep_all);
    statistics = {};
    if (problem.empty()) problem = test.statistics(statistics);
    if (!problem.empty()) return problem;
    if (statistics.layers != 1) {
      return std::to_string(statistics.layers - 1) + " layers are left after the erase of " + rest;
    }
    if (statistics.border_pages != 1) return "an empty page stays";
    if (test.warm.report.reclaimed == 0) return "the report names no page that was reclaimed";
    if (*rest == 'a') return statistics.records == 0 ? "" : "an erased record is left";
    if (test.value_of(7, "a") != "old" || test.value_of(7, "b") != "not_found") {
      return "the records of a layer have changed with their place";
    }
    if (test.update(0, 7, "a", "new") != Status::ok || test.value_of(7, "a") != "new") {
      return "a record that has taken the slot of its layer is not updated";
    }
    if (test.insert(8, "b", "two") != Status::ok || test.value_of(8, "b") != "two" ||
        test.value_of(8, "a") != "old") {
      return "no layer is added where one was before";
    }
    if (test.update(0, 7, "a", "old") != Status::ok) return "no update";
    if (test.erase_one(8, "b") != Status::ok) return "no erase";
  }
  return {};
}

/// R70: a commit is about to write the only record of a layer. The record keeps its place.
inline std::string a_locked_record_keeps_its_layer() {
  SmallLayers test(2);
  for (const char* rest : {"a", "b"}) {
    if (test.insert(0, rest, "old") != Status::ok) return "no insert";
  }
  if (test.erase(1, "b") != Status::ok) return "no erase";
  test.work_off_hints();  // now the layer has one record and no tombstone
  std::string problem;
  bool is_done = false;
  {
    const AtSyncPoints guard([&](SyncPoint point) {
      if (point != SyncPoint::verified || is_done) return;
      is_done = true;
      problem = test.warm.install(keep_all);
    });
    if (test.update(1, 0, "a", "new") != Status::ok) return "no update";
  }
  if (!is_done) return "the commit was not interrupted";
  if (problem.empty()) problem = test.warm.install(keep_all);
  TreeStatistics statistics;
  if (problem.empty()) problem = test.statistics(statistics);
  if (!problem.empty()) return problem;
  if (statistics.layers != 1) return "the layer stays after the commit";
  return test.value_of(0, "a") == "new" ? "" : "the commit wrote to a record that has moved";
}

/// R70: a reader holds the link to a layer, and the page with the link is replaced. Then the root
/// of the layer is replaced, and the new root is dropped. The old link still leads to the first
/// root, so the reader must search for the page with the link again.
inline std::string a_link_of_a_moved_page_leads_to_a_dropped_layer() {
  SmallLayers test(2);
  for (const char* rest : {"a", "b"}) {
    if (test.insert(0, rest, "old") != Status::ok) return "no insert";
  }
  if (test.erase_one(0, "b") != Status::ok) return "no erase";
  test.lose_hints();
  test.let_grace_pass();
  StorageControl& storage = test.warm.storage;
  WorkerContext& reader = *test.warm.cluster.worker(1).context;
  WorkerContext& mover = *test.warm.cluster.worker(0).context;
  reader.enter();
  const std::string prefix = big_endian(0);
  Link link;
  if (!find_layer(reader, storage, bytes_of(prefix), link)) return "there is no layer";
  mover.enter();
  if (!compact(mover, border_page(link.holder), false)) return "the page was not replaced";
  mover.leave();
  std::string problem = test.warm.install(keep_all);
  const VolatilePointer root = link.pointer->load_acquire();
  if (problem.empty() && (!root.is_frozen() || root.is_null())) problem = "the link has changed";
  if (problem.empty()) {
    const auto* page = tree_page(reader.resolve(root.thawed()));
    if (page->header.version().is_dropped()) problem = "the first root was dropped";
  }
  TreeStatistics statistics;
  if (problem.empty()) problem = test.statistics(statistics);
  if (problem.empty() && statistics.layers != 1) problem = "the layer is left";
  if (!problem.empty()) return problem;
  std::atomic<uint32_t>& state = test.warm.cluster.view().control->state;
  const uint32_t alive = state.load(std::memory_order_relaxed);
  BorderView view;
  {
    // A reader that would wait for ever is released after 1000 turns: the cluster fails, which ends
    // waits.
    std::atomic<uint32_t> turns{0};
    const AtSyncPoints guard([&](SyncPoint point) {
      if (point != SyncPoint::awaiting_move) return;
      if (turns.fetch_add(1, std::memory_order_relaxed) == 1000) {
        state.store(kClusterFailedFrom, std::memory_order_release);
      }
    });
    view = find_border(reader, storage, link, slice_of(bytes_of(std::string("a"))));
  }
  const bool waited = state.exchange(alive, std::memory_order_release) != alive;
  reader.leave();
  if (waited) return "the reader waits for ever";
  if (view.page != nullptr || !view.dropped) return "the reader finds a page of a dropped layer";
  return test.value_of(0, "a") == "old" ? "" : "the record of the layer is lost";
}

/// R71: pages between dropped pages are emptied. No merge can remove the empty pages, so they must
/// be dropped as well.
inline std::string empty_pages_between_cold_ones_are_dropped() {
  DroppableTree test(1);
  std::string problem = test.fill();
  if (problem.empty()) problem = test.warm.install(drop_all);
  if (!problem.empty()) return problem;
  const Status status = test.warm.cluster.worker(0).run([&](Transaction& txn) {
    Status one = Status::ok;
    for (uint64_t i = 400; i < 600 && one == Status::ok; ++i) {
      one = test.tree.erase(txn, bytes_of(big_endian(i)));
    }
    return one;
  });
  if (status != Status::ok) return "the erases ended with " + std::string(to_string(status));
  test.warm.cluster.worker(0).context->leave();
  uint64_t epoch = test.warm.settle();
  std::vector<GleanedLog> logs;
  for (uint64_t i = 400; i < 600; ++i) {
    logs.push_back({LogType::erase, big_endian(i), 0, "", Vid::make(epoch, 1)});
  }
  TreeStatistics statistics;
  // The first installs merge empty pages. Only a later snapshot has a page of the merged range,
  // onto which the merged page can be dropped.
  for (int round = 0; round < 5; ++round) {
    problem = test.warm.take(std::move(logs), epoch, 0);
    if (problem.empty()) problem = test.warm.install(drop_all);
    statistics = {};
    if (problem.empty()) problem = test.warm.check(statistics);
    if (!problem.empty()) return problem;
    logs.clear();
    epoch = test.warm.settle();
  }
  if (statistics.border_pages != 0) {
    return std::to_string(statistics.border_pages) + " border pages stay";
  }
  if (test.value_of(399) != "old" || test.value_of(500) != "not_found" ||
      test.value_of(600) != "old") {
    return "a record has changed with the drops";
  }
  return {};
}

}  // namespace atolldb::test
