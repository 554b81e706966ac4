// Installers of several parts of a storage do together what one installer does.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/install/next_bounds_rules.h"
#include "tests/engine/install/same_tree.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kKeys = 4000;

/// Returns the outcomes of three installs: they keep all pages, drop unchanged pages, and drop all
/// pages.
std::vector<InstallOutcome> outcomes_of(uint64_t order, bool is_layered, uint32_t installers,
                                        const std::vector<uint64_t>& bounds,
                                        bool skips_seams = false) {
  std::mt19937_64 random(order);
  SameTree same(is_layered, installers);
  std::vector<uint64_t> all(kKeys);
  for (uint64_t i = 0; i < kKeys; ++i) all[i] = i;
  std::ranges::shuffle(all, random);
  EXPECT_EQ(same.write(all, true), Status::ok);
  EXPECT_EQ(same.take(all, LogType::insert), "");
  // The first install adopts split pages. Which pages it finds split depends on its order.
  same.warm.bounds = {1};
  EXPECT_EQ(same.warm.install(keep_all), "");
  same.warm.bounds = bounds;
  same.warm.skips_seams = skips_seams;
  std::vector<InstallOutcome> outcomes;
  EXPECT_EQ(same.take({}, LogType::insert), "");
  outcomes.push_back(same.install(keep_all));
  const std::vector<uint64_t> few(all.begin(), all.begin() + kKeys / 100);
  EXPECT_EQ(same.write(few, false), Status::ok);
  outcomes.push_back(same.install(drop_all));
  EXPECT_EQ(same.take(few, LogType::update), "");
  outcomes.push_back(same.install(drop_all));
  return outcomes;
}

/// Returns random bounds: also within pages, before the first key and after the last one.
std::vector<uint64_t> random_bounds(uint64_t order, bool is_layered) {
  std::mt19937_64 random(order + 1);
  std::vector<uint64_t> bounds;
  for (int i = 0; i < 9; ++i) bounds.push_back(1 + random() % (is_layered ? 40 : kKeys + 100));
  std::ranges::sort(bounds);
  const auto rest = std::ranges::unique(bounds);
  bounds.erase(rest.begin(), rest.end());
  return bounds;
}

TEST(InstallParts, OfATreeAreInstalledAndDroppedAsByOneThread) {
  const uint64_t order = seed();
  for (const bool is_layered : {false, true}) {
    const auto alone = outcomes_of(order, is_layered, 1, {});
    EXPECT_GT(alone[1].dropped, 0u);
    EXPECT_GT(alone[1].pages_left, 1u);
    EXPECT_EQ(alone[2].pages_left, 1u);
    EXPECT_EQ(outcomes_of(order, is_layered, 4, random_bounds(order, is_layered)), alone);
    EXPECT_EQ(outcomes_of(order, is_layered, 4, {}), alone);
  }
}

TEST(InstallParts, ThePagesInSeveralPartsAreLeftToTheSeams) {
  const uint64_t order = seed();
  const auto alone = outcomes_of(order, false, 1, {});
  const auto without = outcomes_of(order, false, 4, random_bounds(order, false), true);
  EXPECT_LT(without[1].dropped + without[2].dropped, alone[1].dropped + alone[2].dropped);
  EXPECT_GT(without[2].pages_left, alone[2].pages_left);
}

TEST(InstallParts, PagesAcrossTheBoundsOfTheNextSnapshotAreKept) {
  for (const uint32_t installers : {1u, 4u}) {
    EXPECT_EQ(pages_across_next_bounds_are_kept(installers, seed()), "");
  }
}

TEST(InstallParts, AStorageIsDividedIntoPartsOfAboutTheSameSize) {
  SameTree same(false, 1);
  std::vector<uint64_t> all(kKeys);
  for (uint64_t i = 0; i < kKeys; ++i) all[i] = i;
  ASSERT_EQ(same.write(all, true), Status::ok);
  // The walk adopts all split pages. The division finds only pages that have a parent.
  ASSERT_EQ(same.take(all, LogType::insert), "");
  ASSERT_EQ(same.warm.install(keep_all), "");
  WorkerContext& worker = *same.warm.cluster.worker(0).context;
  worker.enter();
  const auto bounds = divide_storage(worker, same.warm.storage, 4, 1);
  ASSERT_EQ(bounds.size(), 3u);
  for (size_t i = 0; i < bounds.size(); ++i) {
    const double at = static_cast<double>(bounds[i]) / kKeys;
    EXPECT_NEAR(at, static_cast<double>(i + 1) / 4, 0.15);
  }
  EXPECT_TRUE(divide_storage(worker, same.warm.storage, 1, 1).empty());
  EXPECT_TRUE(divide_storage(worker, same.warm.storage, 4, 1'000'000).empty()) << "too small";
  worker.leave();
}

/// Installs all parts of an array, each by a thread of its own.
InstallReport install_array_parts(WarmArray& warm, const std::vector<uint64_t>& bounds) {
  std::vector<InstallReport> reports(bounds.size() + 1);
  std::vector<std::thread> threads;
  SliceRange rest;
  for (uint32_t i = 0; i < reports.size(); ++i) {
    InstallTask task;
    task.root = warm.stage.storage.base_root;
    task.snapshot = warm.stage.snapshot;
    task.epoch = warm.stage.epoch;
    task.drop_policy = drop_all;
    task.part = rest;
    if (i < bounds.size()) {
      task.part.high = rest.low = bounds[i];
      task.part.high_is_end = false;
    }
    threads.emplace_back([&warm, &report = reports[i], task, i] {
      const Status status =
          install_snapshot(*warm.cluster.worker(i).context, warm.storage, task, report);
      EXPECT_EQ(status, Status::ok);
    });
  }
  for (std::thread& thread : threads) thread.join();
  InstallReport sum;
  for (const InstallReport& report : reports) sum.add(report);
  return sum;
}

TEST(InstallParts, OfAnArrayAreInstalledAndDroppedAsByOneThread) {
  const uint64_t record_count =
      kArrayFanout > 100 ? 60'000 : 3'000;  // tests may have tiny fan-outs
  std::vector<InstallOutcome> outcomes;
  for (const bool is_divided : {false, true}) {
    WarmArray warm(3, false, record_count, 64);
    for (uint64_t index = 0; index < warm.shape.record_count; index += 40) {
      ASSERT_EQ(warm.write(0, {{.index = index, .adds = false, .value = 7}}), Status::ok);
    }
    warm.cluster.tick();
    ASSERT_EQ(warm.snapshot(warm.settled()), "");
    // A later change keeps its page and those above it.
    ASSERT_EQ(warm.write(0, {{.index = 0, .adds = true, .value = 1}}), Status::ok);
    WorkerContext& worker = *warm.cluster.worker(0).context;
    worker.enter();
    const auto bounds = divide_storage(worker, warm.storage, is_divided ? 4 : 1, 1);
    worker.leave();
    EXPECT_EQ(bounds.empty(), !is_divided);
    const InstallReport report = install_array_parts(warm, bounds);
    outcomes.push_back(outcome_of(report, warm.pages().leaves * 1000 + warm.pages().interiors));
  }
  EXPECT_GT(outcomes[0].dropped, record_count / 100);
  EXPECT_EQ(outcomes[0], outcomes[1]);
}

}  // namespace
}  // namespace atolldb::test
