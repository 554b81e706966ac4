// Procedure "tpcc.call": one transaction with the input of a client.
#include <atomic>
#include <cstddef>
#include <optional>
#include <span>

#include "bench/tpcc/call.h"
#include "bench/tpcc/prefetch.h"
#include "bench/tpcc/tables.h"
#include "bench/tpcc/transactions.h"
#include "soc/procedure/procedure.h"

namespace atolldb::tpcc {
namespace {

/// Handles of the storages, which a worker opens again after each change of the catalog.
struct OpenTables {
  const ControlSegment* control = nullptr;
  uint32_t catalog_version = 0;
  std::optional<Tables> tables;
};

thread_local OpenTables opened;

/// Returns the open tables, or null if they are of another catalog version or scale.
const Tables* current_tables(const ControlSegment& control, const Scale& scale) {
  // Acquire pairs with the catalog's release. If a storage changes later, its handle is refused.
  const uint32_t version = control.catalog_version.load(std::memory_order_acquire);
  const bool is_current = opened.tables && opened.control == &control &&
                          opened.catalog_version == version && opened.tables->scale == scale;
  return is_current ? &*opened.tables : nullptr;
}

Result<const Tables*> open_tables(ControlSegment& control, const Scale& scale) {
  if (const Tables* current = current_tables(control, scale)) return current;
  // Acquire: as above. Loaded before the storages are opened, so a later change is noticed.
  const uint32_t version = control.catalog_version.load(std::memory_order_acquire);
  opened.tables.reset();
  Result<Tables> tables = Tables::open(control, scale, 0);
  if (!tables) return std::unexpected(tables.error());
  opened.tables.emplace(*std::move(tables));
  opened.control = &control;
  opened.catalog_version = version;
  return &*opened.tables;
}

// The node trusts no client. An input may name records that do not exist; the transaction then
// fails. But numbers of lines and truth values must be possible ones.

bool is_truth(const bool& value) { return reinterpret_cast<const unsigned char&>(value) <= 1; }
bool is_district(uint32_t w, uint32_t d) {
  return w >= 1 && w <= kMaxWarehouses && d >= 1 && d <= kDistricts;
}
bool is_possible(const CustomerChoice& choice, const Scale& scale) {
  if (!is_truth(choice.by_last_name) || !is_district(choice.w_id, choice.d_id)) return false;
  return choice.by_last_name || (choice.c_id >= 1 && choice.c_id <= scale.customers);
}
bool is_possible(const NewOrderInput& input, const Scale& scale) {
  if (!is_truth(input.all_local) || !is_district(input.w_id, input.d_id)) return false;
  if (input.ol_cnt < kMinLines || input.ol_cnt > kMaxLines) return false;
  for (const NewOrderInput::Line& line : std::span(input.lines).first(input.ol_cnt)) {
    if (line.i_id < 1 || line.i_id > kMaxItems + 1 || line.supply_w_id < 1) return false;
  }
  return input.c_id >= 1 && input.c_id <= scale.customers;
}
bool is_possible(const PaymentInput& input, const Scale& scale) {
  return is_district(input.w_id, input.d_id) && is_possible(input.customer, scale);
}
bool is_possible(const OrderStatusInput& input, const Scale& scale) {
  return is_possible(input.customer, scale);
}
bool is_possible(const DeliveryInput& input, const Scale& /*scale*/) {
  return is_district(input.w_id, 1);
}
bool is_possible(const StockLevelInput& input, const Scale& /*scale*/) {
  return is_district(input.w_id, input.d_id);
}
bool is_possible(const Scale& scale) {
  return is_truth(scale.hash_orders) && scale.items >= 1 && scale.items <= kMaxItems &&
         scale.customers >= 1 && scale.customers <= kMaxCustomers;
}

/// Returns the bytes of an output that have a content.
template <typename Output>
std::span<const std::byte> content_of(const Output& output) {
  return std::as_bytes(std::span(&output, 1));
}
std::span<const std::byte> content_of(const OrderStatusOutput& output) {
  const size_t lines = output.line_count * sizeof(OrderLineRow);
  return std::as_bytes(std::span(&output, 1)).first(offsetof(OrderStatusOutput, lines) + lines);
}

template <typename Input, typename Output>
Status call_one(ProcedureContext& context, const Tables& tables,
                Status (*body)(Transaction&, const Tables&, const Input&, Output&)) {
  Input input;
  if (!read_call_input(context.input(), input) || !is_possible(input, tables.scale)) {
    context.set_message("the input is not one of this version of TPC-C");
    return Status::invalid_argument;
  }
  thread_local Output output;
  const Status status = body(context.transaction(), tables, input, output);
  if (status == Status::ok) context.set_output(content_of(output));
  return status;
}

Status call(ProcedureContext& context) {
  CallHead head;
  if (!read_call_head(context.input(), head) || !is_possible(head.scale)) {
    return Status::invalid_argument;
  }
  const Result<const Tables*> tables =
      open_tables(*context.transaction().worker().view().control, head.scale);
  if (!tables) {
    context.set_message(tables.error().message);
    return Status::storage_not_found;
  }
  switch (head.type) {
    case TransactionType::new_order:
      return call_one(context, **tables, new_order);
    case TransactionType::payment:
      return call_one(context, **tables, payment);
    case TransactionType::order_status:
      return call_one(context, **tables, order_status);
    case TransactionType::delivery:
      return call_one(context, **tables, delivery);
    case TransactionType::stock_level:
      return call_one(context, **tables, stock_level);
  }
  return Status::invalid_argument;
}

template <typename Input>
void prefetch_one(const PrefetchContext& next, const Tables& tables) {
  Input input;
  if (read_call_input(next.input(), input) && is_possible(input, tables.scale)) {
    prefetch(next, tables, input);
  }
}

/// Prefetches only if the open tables fit. To open others would take longer than the prefetch
/// saves, and would delay the commit of the running transaction. The next call opens them.
void prefetch_call(PrefetchContext& next) {
  CallHead head;
  if (!read_call_head(next.input(), head) || !is_possible(head.scale)) return;
  const Tables* tables = current_tables(next.control(), head.scale);
  if (tables == nullptr) return;
  if (head.type == TransactionType::new_order) return prefetch_one<NewOrderInput>(next, *tables);
  if (head.type == TransactionType::payment) return prefetch_one<PaymentInput>(next, *tables);
  if (head.type == TransactionType::order_status) {
    return prefetch_one<OrderStatusInput>(next, *tables);
  }
}

ATOLL_REGISTER_PREFETCHED_PROCEDURE(kCall, kCallProcedure, call, prefetch_call);

}  // namespace

}  // namespace atolldb::tpcc
