// Finds customers by last name (clauses 2.5.2.2 and 2.6.2.2, case 2).
#include <algorithm>
#include <array>

#include "bench/job/try.h"
#include "bench/tpcc/keys.h"
#include "bench/tpcc/scan.h"
#include "bench/tpcc/transactions.h"

namespace atolldb::tpcc {

Status find_customer(Transaction& txn, const Tables& tables, const CustomerChoice& choice,
                     uint32_t& c_id) {
  if (!choice.by_last_name) {
    c_id = choice.c_id;
    return Status::ok;
  }
  struct Candidate {
    Text<16> first;
    uint32_t c_id;
  };
  // NURand makes some names frequent, but a district never has 1000 customers of one name.
  std::array<Candidate, 1'000> candidates;
  uint32_t count = 0;
  const uint32_t hash = last_name_hash(choice.last_name);
  KeyRange same_hash(customer_name_key(choice.w_id, choice.d_id, hash, 0),
                     customer_name_key(choice.w_id, choice.d_id, hash, 0xfff));
  MasterTreeCursor cursor(tables.customer_by_name, txn, same_hash.range(), true);
  for (;;) {
    const Status status = cursor.next();
    if (status == Status::end_of_scan) break;
    BENCH_TRY(status);
    CustomerNameRow row;
    BENCH_TRY(cursor.get(&row, sizeof(row)));
    // Another name may have the same hash.
    if (!(row.last == choice.last_name)) continue;
    if (count == candidates.size()) return Status::transaction_too_large;
    candidates[count++] = {row.first, customer_of_name_key(key_value(cursor.key()))};
  }
  if (count == 0) return Status::not_found;
  // The customer at position ceil(n/2), counted from 1, is the result.
  Candidate* middle = candidates.data() + (count + 1) / 2 - 1;
  std::nth_element(candidates.data(), middle, candidates.data() + count,
                   [](const Candidate& left, const Candidate& right) {
                     return left.first == right.first ? left.c_id < right.c_id
                                                      : left.first < right.first;
                   });
  c_id = middle->c_id;
  return Status::ok;
}

}  // namespace atolldb::tpcc
