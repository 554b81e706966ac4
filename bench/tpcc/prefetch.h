// Prefetches of the records that a transaction uses first. A worker calls them for its next
// transaction when the body of the current one has ended. So the cache misses overlap with the
// commit. They are hints, and change no transaction.
#pragma once

#include "bench/tpcc/inputs.h"
#include "bench/tpcc/tables.h"
#include "soc/procedure/procedure.h"

namespace atolldb::tpcc {

/// Prefetches records of stock and of the customer. The processor's caches usually have the pages
/// of districts, of items and of the ends of the order tables, so a prefetch would only take time.
void prefetch(const PrefetchContext& next, const Tables& tables, const NewOrderInput& input);

/// Prefetch the customer, or the customers with the same last name.
void prefetch(const PrefetchContext& next, const Tables& tables, const PaymentInput& input);
void prefetch(const PrefetchContext& next, const Tables& tables, const OrderStatusInput& input);

/// Do nothing. These inputs name no record that the transaction uses.
inline void prefetch(const PrefetchContext&, const Tables&, const DeliveryInput&) {}
inline void prefetch(const PrefetchContext&, const Tables&, const StockLevelInput&) {}

}  // namespace atolldb::tpcc
