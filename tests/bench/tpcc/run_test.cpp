// The TPC-C mix on several nodes and workers in this process, run repeatedly and verified.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "bench/tpcc/inputs.h"
#include "tests/bench/tpcc/database.h"
#include "tests/support/seed.h"

namespace atolldb::tpcc {
namespace {

using test::Database;

struct Setting {
  uint32_t nodes;
  uint32_t workers;
  uint32_t warehouses;
  uint32_t remote_percent;
};

class Run : public testing::TestWithParam<Setting> {};

TEST_P(Run, StaysConsistent) {
  const Setting& setting = GetParam();
  Database database({.nodes = setting.nodes, .workers = setting.workers}, setting.warehouses);
  database.input.seed = test::seed();
  database.input.remote_line_percent = setting.remote_percent;
  database.input.remote_payment_percent = setting.remote_percent;
  uint64_t commits = 0;
  for (int round = 0; round < 2; ++round) {
    const std::vector<RunResult> results = database.run(150);
    ASSERT_EQ(results.size(), setting.nodes * setting.workers);
    for (const RunResult& result : results) {
      EXPECT_EQ(result.ended_early, "");
      EXPECT_GT(result.seconds, 0.1);
      for (uint32_t type = 0; type < kTransactionTypes; ++type) {
        EXPECT_EQ(result.latency[type].count(), result.commits[type]);
      }
      EXPECT_EQ(result.engine.aborts[static_cast<size_t>(Status::user_abort)], result.user_aborts);
      EXPECT_EQ(result.delivered_orders + result.skipped_deliveries,
                kDistricts * result.commits[static_cast<size_t>(TransactionType::delivery)]);
      if (setting.nodes > 1 && setting.remote_percent == 100) {
        EXPECT_GT(result.engine.remote_locks, 0u);
        EXPECT_GT(result.engine.remote_accesses, 0u);
      }
      if (setting.nodes == 1) {
        EXPECT_EQ(result.engine.remote_locks, 0u);
        EXPECT_EQ(result.engine.remote_accesses, 0u);
      }
      commits += result.total_commits();
    }
    EXPECT_EQ(database.verify(), std::vector<std::string>{});
  }
  EXPECT_GT(commits, 0u);
}

INSTANTIATE_TEST_SUITE_P(Settings, Run,
                         testing::Values(Setting{1, 1, 1, 1}, Setting{1, 2, 2, 10},
                                         Setting{1, 4, 1, 0}, Setting{2, 1, 2, 0},
                                         Setting{2, 1, 2, 1}, Setting{2, 1, 2, 10},
                                         Setting{2, 1, 2, 100}, Setting{3, 1, 7, 15},
                                         Setting{4, 1, 4, 100}, Setting{2, 2, 2, 50}),
                         [](const auto& instance) {
                           const Setting& setting = instance.param;
                           return std::to_string(setting.nodes) + "nodes" +
                                  std::to_string(setting.workers) + "workers" +
                                  std::to_string(setting.warehouses) + "warehouses" +
                                  std::to_string(setting.remote_percent) + "remote";
                         });

/// What the transactions of a run have changed in the only warehouse.
struct Totals {
  int64_t paid = 0;     // W_YTD
  uint64_t orders = 0;  // sum of D_NEXT_O_ID
};

Totals read_totals(Database& database) {
  const Tables& tables = *database.tables;
  Totals totals;
  database.transact([&](Transaction& txn) {
    totals = {};
    YtdRow ytd;
    const Status status = tables.warehouse_ytd.get(txn, tables.warehouse_ytd_at(1), &ytd);
    totals.paid = ytd.ytd;
    if (status != Status::ok) return status;
    for (uint32_t d = 1; d <= kDistricts; ++d) {
      DistrictNextRow next;
      const Status found = tables.district_next.get(txn, tables.district_next_at(1, d), &next);
      if (found != Status::ok) return found;
      totals.orders += next.next_o_id;
    }
    return Status::ok;
  });
  return totals;
}

/// A worker draws each input before it runs the transaction before it. So the draws must keep their
/// order, and no input may be lost or run twice.
TEST(RunOfOneWorker, ExecutesTheInputsOfItsSeedInOrder) {
  Database database({.nodes = 1, .workers = 1}, 1);
  database.input.seed = test::seed();
  const uint64_t seed = database.input.times.seed_of(database.input.seed, 0, 0);
  const Totals before = read_totals(database);
  const std::vector<RunResult> results = database.run(150);
  const Totals after = read_totals(database);
  ASSERT_EQ(results.size(), 1u);
  const RunResult& result = results[0];
  InputGenerator generator(database.input.workload(), seed);
  std::array<uint64_t, kTransactionTypes> drawn{};
  uint64_t user_aborts = 0;
  int64_t paid = 0;
  const uint64_t total = result.total_commits() + result.user_aborts;
  for (uint64_t i = 0; i < total; ++i) {
    generator.next_home(1);
    const TransactionType type = generator.next_type();
    ++drawn[static_cast<size_t>(type)];
    switch (type) {
      case TransactionType::new_order: {
        const NewOrderInput input = generator.new_order(1);
        if (input.lines[input.ol_cnt - 1].i_id > database.input.scale.items) ++user_aborts;
        break;
      }
      case TransactionType::payment:
        paid += generator.payment(1).amount;
        break;
      case TransactionType::order_status:
        generator.order_status(1);
        break;
      case TransactionType::delivery:
        generator.delivery(1);
        break;
      case TransactionType::stock_level:
        generator.stock_level(1);
        break;
    }
  }
  drawn[static_cast<size_t>(TransactionType::new_order)] -= user_aborts;
  EXPECT_GT(total, 100u);
  EXPECT_EQ(result.user_aborts, user_aborts);
  for (uint32_t type = 0; type < kTransactionTypes; ++type) {
    EXPECT_EQ(result.commits[type], drawn[type]) << kTransactionNames[type];
  }
  EXPECT_EQ(after.paid - before.paid, paid);
  EXPECT_EQ(after.orders - before.orders, drawn[static_cast<size_t>(TransactionType::new_order)]);
}

TEST(RunInASmallPool, EndsEarlyForAllWorkersAndSaysWhy) {
  Database database({.nodes = 2, .workers = 1, .pool_bytes = uint64_t{6} << 20});
  const std::vector<RunResult> results = database.run(60'000);
  ASSERT_EQ(results.size(), 2u);
  bool full = false;
  for (const RunResult& result : results) {
    EXPECT_NE(result.ended_early, "");
    EXPECT_LT(result.seconds, 50.0);
    if (result.ended_early.starts_with("the volatile pool of node")) full = true;
  }
  EXPECT_TRUE(full);
  // Nothing is lost: earlier commits are consistent, and readable without new pages.
  EXPECT_EQ(database.verify(), std::vector<std::string>{});
}

TEST(RunWithHashOrders, KeepsAllConditions) {
  Scale scale = test::kSmallScale;
  scale.hash_orders = true;
  Database database({.nodes = 2, .workers = 2}, 4, scale);
  EXPECT_EQ(database.tables->order.storage().type, StorageType::hash);
  uint64_t committed = 0;
  for (int round = 0; round < 2; ++round) {
    for (const RunResult& result : database.run(300)) committed += result.total_commits();
    EXPECT_EQ(database.verify(), std::vector<std::string>{});
  }
  EXPECT_GT(committed, 0u);
}

TEST(RunWithoutItsDatabase, IsAnError) {
  test::MiniCluster cluster({});
  JobInput input;
  input.times.run_ms = 10;
  const auto results = cluster.run_job(kRunJob, input.to_json());
  EXPECT_FALSE(results[0].has_value());
}

TEST(RunWithTooFewWarehouses, IsAnErrorOnTheNodeWithoutOne) {
  test::MiniCluster cluster({.nodes = 2, .workers = 1});
  JobInput input;
  input.scale = test::kSmallScale;
  cluster.create(storage_specs(1, input.scale));
  ASSERT_TRUE(cluster.run_job(kLoadJob, input.to_json())[0].has_value());
  input.times.run_ms = 10;
  const auto results = cluster.run_job(kRunJob, input.to_json());
  EXPECT_TRUE(results[0].has_value());
  ASSERT_FALSE(results[1].has_value());
  EXPECT_EQ(results[1].error().code, ExitCode::usage);
  EXPECT_NE(results[1].error().message.find("node 1 has no warehouse"), std::string::npos);
}

}  // namespace
}  // namespace atolldb::tpcc
