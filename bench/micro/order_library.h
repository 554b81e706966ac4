// Orders of bench/example_procedure/orders.cpp, for order_bench.cpp. They are compiled as a library
// of procedures: without link-time optimisation, and with calls through the node's table only.
#pragma once

#include <atoll/procedure.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace atolldb::bench {

/// The load function of the example.
atoll_api::Status load_orders(atoll_api::Library& library);
/// The procedure of the example.
atoll_api::Status order_by_example(atoll_api::Context& context);
/// The same transaction, with a call for each record.
atoll_api::Status order_by_single_calls(atoll_api::Context& context);

struct ParsedOrder {
  uint64_t branch = 0;
  size_t count = 0;
  std::array<uint64_t, 15> items;
  std::array<int64_t, 15> pieces;
};

/// Parses the input of an order as the example does. Returns false if it is not valid.
bool parse_order(atoll_api::Bytes input, ParsedOrder& order);

}  // namespace atolldb::bench
