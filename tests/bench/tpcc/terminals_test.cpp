// Terminals with keying and think times.
#include "bench/tpcc/terminals.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/support/seed.h"

namespace atolldb::tpcc {
namespace {

constexpr double kNs = 1e9;

TEST(TpccTerminalsTest, EachWarehouseHasTenTerminalsThatStartWithinOneCycle) {
  const std::vector<uint32_t> warehouses = {3, 5};
  Terminals terminals(warehouses, 1, test::seed(), [] { return TransactionType::payment; });
  std::map<uint32_t, int> count;
  uint64_t last_ns = 0;
  for (int i = 0; i < 20; ++i) {
    const Terminals::Next next = terminals.first();
    EXPECT_GE(next.due_ns, last_ns) << "in the order of time";
    EXPECT_LE(static_cast<double>(next.due_ns), (3 + bench::Random::kMaxThinkFactor * 12) * kNs);
    last_ns = next.due_ns;
    ++count[next.home];
    // Not before all others are due.
    terminals.end_first(static_cast<uint64_t>(1'000 * kNs));
  }
  EXPECT_EQ(count, (std::map<uint32_t, int>{{3, 10}, {5, 10}}));
  EXPECT_GE(static_cast<double>(terminals.first().due_ns), 1'003 * kNs) << "the keying time passes";
}

TEST(TpccTerminalsTest, TheMeanCycleIsThatOfTheSpecification) {
  for (const auto& [type, cycle] : {std::pair{TransactionType::new_order, 18.0 + 12},
                                    {TransactionType::payment, 3.0 + 12},
                                    {TransactionType::order_status, 2.0 + 10},
                                    {TransactionType::delivery, 2.0 + 5},
                                    {TransactionType::stock_level, 2.0 + 5}}) {
    constexpr double kTimeScale = 0.01;
    const std::vector<uint32_t> one = {1};
    Terminals terminals(one, kTimeScale, test::seed(), [type = type] { return type; });
    constexpr int kRounds = 20'000;
    uint64_t last_ns = 0;
    for (int i = 0; i < kRounds; ++i) {
      last_ns = terminals.first().due_ns;
      terminals.end_first(last_ns);
    }
    const double mean = static_cast<double>(last_ns) * kTerminalsPerWarehouse / kRounds / kNs;
    EXPECT_NEAR(mean, cycle * kTimeScale, cycle * kTimeScale * 0.05);
  }
}

TEST(TpccTerminalsTest, WithoutWarehousesThereAreNoTerminals) {
  EXPECT_TRUE(Terminals({}, 1, 1, [] { return TransactionType::payment; }).empty());
}

}  // namespace
}  // namespace atolldb::tpcc
