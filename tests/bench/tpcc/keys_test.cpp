// Keys and placement of the TPC-C storages.
#include "bench/tpcc/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "bench/tpcc/job_input.h"
#include "bench/tpcc/random.h"
#include "bench/tpcc/tables.h"
#include "tests/support/seed.h"

namespace atolldb::tpcc {
namespace {

int compare(uint64_t left, uint64_t right) {
  const Key a = ordered_key(left);
  const Key b = ordered_key(right);
  return std::memcmp(a.data(), b.data(), a.size());
}

/// The bytes of make(a...) and make(b...) must order like the tuples a and b.
template <typename Make, typename Draw>
void expect_same_order(Make make, Draw draw) {
  Random random(test::seed());
  for (int i = 0; i < 100'000; ++i) {
    const auto a = draw(random);
    auto b = draw(random);
    // Half of the pairs share their leading fields, so that the last fields decide the order.
    if (i % 2 == 0) std::get<0>(b) = std::get<0>(a), std::get<1>(b) = std::get<1>(a);
    const int order = compare(std::apply(make, a), std::apply(make, b));
    ASSERT_EQ(a < b, order < 0);
    ASSERT_EQ(a == b, order == 0);
  }
}

uint32_t any_order(Random& random) {
  return random.percent(10) ? ~uint32_t{0} : random.uniform(0, 100'000);
}

TEST(Keys, OrdersSortByWarehouseDistrictAndNumber) {
  expect_same_order(order_key, [](Random& random) {
    return std::tuple(random.uniform(1, kMaxWarehouses), random.uniform(1, 10), any_order(random));
  });
}

TEST(Keys, OrderLinesSortByWarehouseDistrictOrderAndLine) {
  expect_same_order(order_line_key, [](Random& random) {
    return std::tuple(random.uniform(1, kMaxWarehouses), random.uniform(1, 10), any_order(random),
                      random.uniform(0, 255));
  });
}

TEST(Keys, OrdersByCustomerSortByCustomerAndNumber) {
  expect_same_order(customer_order_key, [](Random& random) {
    return std::tuple(random.uniform(1, kMaxWarehouses), random.uniform(1, 10),
                      random.uniform(0, kMaxCustomers), any_order(random));
  });
}

TEST(Keys, NamesSortByWarehouseDistrictHashAndCustomer) {
  expect_same_order(customer_name_key, [](Random& random) {
    return std::tuple(random.uniform(1, kMaxWarehouses), random.uniform(1, 10), any_order(random),
                      random.uniform(0, kMaxCustomers));
  });
}

TEST(Keys, FieldsCanBeReadBack) {
  const uint64_t line = order_line_key(65'535, 10, ~uint32_t{0}, 15);
  EXPECT_EQ(order_of_line_key(line), ~uint32_t{0});
  EXPECT_EQ(line_of_line_key(line), 15u);
  EXPECT_EQ(order_of_order_key(order_key(65'535, 10, 123'456'789)), 123'456'789u);
  EXPECT_EQ(order_of_customer_order_key(customer_order_key(65'535, 10, 3'000, 77)), 77u);
  EXPECT_EQ(customer_of_name_key(customer_name_key(65'535, 10, 0xffffffff, 3'000)), 3'000u);
  EXPECT_EQ(key_value(ordered_key(line)), line);
}

TEST(Keys, TheThousandLastNamesHaveDifferentHashes) {
  std::vector<uint32_t> hashes;
  for (uint32_t i = 0; i < 1'000; ++i) hashes.push_back(last_name_hash(last_name(i)));
  std::sort(hashes.begin(), hashes.end());
  // Equal hashes would make look-ups slower, but not wrong.
  EXPECT_EQ(std::unique(hashes.begin(), hashes.end()), hashes.end());
}

TEST(Placement, PagesBelongToOneWarehouse) {
  const Scale scale;
  for (const StorageSpec& spec : storage_specs(7, scale)) {
    if (spec.type != StorageType::array || spec.name == "tpcc_item" ||
        spec.name == "tpcc_control") {
      continue;
    }
    EXPECT_EQ(spec.record_count % 7, 0u) << spec.name;
    EXPECT_EQ(spec.record_count / 7 % records_per_leaf(spec.payload_bytes), 0u) << spec.name;
  }
}

TEST(Placement, EveryWarehouseHasOneOwnerAndIsServed) {
  for (uint32_t nodes = 1; nodes <= 4; ++nodes) {
    for (uint32_t workers = 1; workers <= 4; ++workers) {
      for (uint32_t warehouses = nodes; warehouses <= 17; ++warehouses) {
        std::vector<int> owners(warehouses + 1);
        for (uint32_t node = 0; node < nodes; ++node) {
          for (uint32_t worker = 0; worker < workers; ++worker) {
            for (const uint32_t w : owned_warehouses(warehouses, node, nodes, worker, workers)) {
              ++owners[w];
              EXPECT_EQ((w - 1) % nodes, node);
            }
            const auto served = served_warehouses(warehouses, node, nodes, worker, workers);
            ASSERT_FALSE(served.empty());
            for (const uint32_t w : served) EXPECT_EQ((w - 1) % nodes, node);
          }
        }
        EXPECT_EQ(std::count(owners.begin() + 1, owners.end(), 1), warehouses);
      }
    }
  }
}

TEST(JobInputs, SurviveTheWayThroughJson) {
  JobInput input;
  input.warehouses = 12;
  input.load_seed = ~uint64_t{0};
  input.scale = {.items = 10, .customers = 20, .new_orders = 5, .last_names = 4};
  input.seed = 99;
  input.remote_line_percent = 100;
  input.remote_payment_percent = 0;
  input.mix = {20, 20, 20, 20, 20};
  input.times.run_number = 3;
  input.times.start_ns = 123'456'789'012'345;
  input.times.warmup_ms = 2;
  input.times.run_ms = 10'000;
  const Result<JobInput> parsed = JobInput::parse(input.to_json());
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->to_json(), input.to_json());
  EXPECT_EQ(parsed->load_seed, ~uint64_t{0});
}

TEST(JobInputs, OutOfRangeOrMalformedOnesAreErrorsNotCrashes) {
  EXPECT_FALSE(JobInput::parse("").has_value());
  EXPECT_FALSE(JobInput::parse("{}").has_value());
  EXPECT_FALSE(JobInput::parse("[1,2").has_value());
  JobInput input;
  input.warehouses = 65'536;
  EXPECT_FALSE(JobInput::parse(input.to_json()).has_value());
  input = JobInput();
  input.scale.customers = 4'096;
  EXPECT_FALSE(JobInput::parse(input.to_json()).has_value());
  input = JobInput();
  input.scale.new_orders = input.scale.customers + 1;
  EXPECT_FALSE(JobInput::parse(input.to_json()).has_value());
}

}  // namespace
}  // namespace atolldb::tpcc
