// Options of `atoll bench tpcc`, and its estimate of memory.
#include "bench/tpcc_driver/options.h"

#include <gtest/gtest.h>

#include <functional>

#include "bench/tpcc_driver/estimate.h"

namespace atolldb::tpcc {
namespace {

TEST(Mix, FivePercentagesWithTheSum100AreAccepted) {
  const auto mix = parse_mix("45/43/4/4/4");
  ASSERT_TRUE(mix.has_value());
  EXPECT_EQ(*mix, (std::array<uint32_t, 5>{45, 43, 4, 4, 4}));
  EXPECT_EQ(format_mix(*mix), "45/43/4/4/4");
  EXPECT_TRUE(parse_mix("100/0/0/0/0").has_value());
}

TEST(Mix, EverythingElseIsAUsageErrorThatSaysWhatIsExpected) {
  for (const char* text : {"", "45", "45/43/4/4", "45/43/4/4/4/0", "45/43/4/4/5", "45/43/4/4/3",
                           "-1/43/4/4/50", "101/0/0/0/0", "45 /43/4/4/4", "a/b/c/d/e",
                           "45,43,4,4,4", "45/43/4/4/4 ", "45//43/4/4/4", "99999999999/0/0/0/0"}) {
    const auto mix = parse_mix(text);
    ASSERT_FALSE(mix.has_value()) << text;
    EXPECT_EQ(mix.error().code, ExitCode::usage);
    EXPECT_NE(mix.error().message.find("bench tpcc: --mix: "), std::string::npos);
    EXPECT_NE(mix.error().message.find("45/43/4/4/4"), std::string::npos) << mix.error().message;
  }
}

TEST(Options, DefaultsAreTheDocumentedOnesAndValid) {
  const Options options;
  EXPECT_TRUE(check_options(options).has_value());
  EXPECT_EQ(options.seconds, 10u);
  EXPECT_EQ(options.warmup_seconds, 2u);
  EXPECT_EQ(options.remote_percent, 1u);
  EXPECT_EQ(options.remote_payment_percent, 15u);
  EXPECT_EQ(options.durability, "") << "the config's value";
  EXPECT_TRUE(options.verify);
  EXPECT_EQ(options.scale, Scale());
}

TEST(Options, EveryLimitIsCheckedOnBothSidesAndNamesItsFlag) {
  struct Case {
    const char* flag;
    std::function<void(Options&, uint32_t)> set;
    uint32_t low;
    uint32_t high;
  };
  const Case cases[] = {
      {"--nodes", [](Options& o, uint32_t v) { o.nodes = v; }, 0, 255},
      {"--workers-per-node", [](Options& o, uint32_t v) { o.workers_per_node = v; }, 0, 250},
      {"--warehouses", [](Options& o, uint32_t v) { o.warehouses = v; }, 0, 65'535},
      {"--seconds", [](Options& o, uint32_t v) { o.seconds = v; }, 1, 86'400},
      {"--warmup", [](Options& o, uint32_t v) { o.warmup_seconds = v; }, 0, 86'400},
      {"--repeat", [](Options& o, uint32_t v) { o.repeat = v; }, 1, 1'000},
      {"--remote-percent", [](Options& o, uint32_t v) { o.remote_percent = v; }, 0, 100},
      {"--remote-payment-percent", [](Options& o, uint32_t v) { o.remote_payment_percent = v; }, 0,
       100},
      {"--loaded-lines",
       [](Options& o, uint32_t v) {
         o.scale.max_lines = v;
         o.mix = {30, 30, 40, 0, 0};
       },
       15, 500},
  };
  for (const Case& each : cases) {
    for (const auto& [value, valid] :
         std::vector<std::pair<int64_t, bool>>{{each.low, true},
                                               {each.high, true},
                                               {int64_t{each.low} - 1, false},
                                               {int64_t{each.high} + 1, false}}) {
      if (value < 0) continue;
      Options options;
      each.set(options, static_cast<uint32_t>(value));
      const Result<void> checked = check_options(options);
      EXPECT_EQ(checked.has_value(), valid) << each.flag << " " << value;
      if (valid || checked) continue;
      EXPECT_EQ(checked.error().code, ExitCode::usage);
      EXPECT_NE(checked.error().message.find(each.flag), std::string::npos);
    }
  }
}

TEST(Options, OrdersOfMoreLinesAreNotForTransactionsThatReadManyOrders) {
  for (const auto& [mix, valid] :
       std::vector<std::pair<std::array<uint32_t, kTransactionTypes>, bool>>{
           {{0, 0, 100, 0, 0}, true},
           {{48, 48, 4, 0, 0}, true},
           {{0, 0, 99, 1, 0}, false},
           {{0, 0, 99, 0, 1}, false}}) {
    Options options;
    options.mix = mix;
    options.scale.max_lines = 15;
    EXPECT_TRUE(check_options(options).has_value());
    options.scale.max_lines = 16;
    const Result<void> checked = check_options(options);
    ASSERT_EQ(checked.has_value(), valid) << format_mix(mix);
    if (valid) continue;
    EXPECT_EQ(checked.error().code, ExitCode::usage);
    EXPECT_NE(checked.error().message.find("--loaded-lines"), std::string::npos);
  }
}

TEST(Options, DurabilityIsAModeOrWhatTheConfigSays) {
  Options options;
  for (const char* mode : {"", "off", "durable", "measure"}) {
    options.durability = mode;
    EXPECT_TRUE(check_options(options).has_value()) << mode;
  }
  options.durability = "sometimes";
  const Result<void> checked = check_options(options);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, ExitCode::usage);
  EXPECT_NE(checked.error().message.find("'sometimes'"), std::string::npos);
}

TEST(Warehouses, DefaultIsOneAWorkerAndEveryNodeNeedsOne) {
  Options options;
  EXPECT_EQ(choose_warehouses(options, 2, 6), 6u);
  options.warehouses = 2;
  EXPECT_EQ(choose_warehouses(options, 2, 6), 2u);
  options.warehouses = 1;
  const auto chosen = choose_warehouses(options, 2, 6);
  ASSERT_FALSE(chosen.has_value());
  EXPECT_EQ(chosen.error().code, ExitCode::usage);
}

TEST(Estimate, GrowsWithWarehousesTimeAndRepetitions) {
  Options options;
  const Estimate base = estimate_memory(options, 2, 2, 2, 2);
  EXPECT_EQ(base.pool_bytes % (uint64_t{2} << 20), 0u);
  // The loaded data of one warehouse have about 100 MiB.
  EXPECT_GT(base.bytes_of("tpcc_stock_static"), uint64_t{64} << 20);
  EXPECT_GT(estimate_memory(options, 8, 2, 2, 2).base_bytes, 3 * base.base_bytes);
  options.seconds = 20;
  EXPECT_GT(estimate_memory(options, 2, 2, 2, 2).insert_bytes, base.insert_bytes * 3 / 2);
  options.repeat = 3;
  EXPECT_GT(estimate_memory(options, 2, 2, 2, 2).insert_bytes, 4 * base.insert_bytes);
  EXPECT_EQ(base.bytes_of("no_such_storage"), 0u);
}

TEST(Estimate, MixesWithoutInsertsNeedNoRoomForThem) {
  Options options;
  options.mix = {0, 0, 50, 0, 50};
  EXPECT_EQ(inserted_bytes_per_transaction(options), 0.0);
}

}  // namespace
}  // namespace atolldb::tpcc
