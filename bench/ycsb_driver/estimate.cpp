#include "bench/ycsb_driver/estimate.h"

#include <algorithm>

#include "bench/ycsb/table.h"

namespace atolldb::ycsb {

namespace {

/// Assumed operations per second and core if some of them insert. It is an upper limit, so that
/// pools do not fill up on a fast machine.
constexpr double kOperationsPerCore = 1'500'000;

}  // namespace

bench::Estimate estimate_memory(const Options& options, const JobInput& input, uint32_t nodes,
                                uint32_t workers, uint32_t cores) {
  const double record = bench::tree_bytes(1, input.shape.record_bytes);
  bench::Estimate estimate;
  estimate.add(kRecordsStorage,
               input.is_array ? bench::array_bytes(storage_specs(input, nodes)[0])
                              : static_cast<uint64_t>(static_cast<double>(input.records) * record));
  const double busy = std::max(1u, std::min(workers, cores));
  const double inserts = percent_of(input.mix, Operation::insert) * 0.01 * input.operations;
  estimate.add_inserts(options, busy, kOperationsPerCore / input.operations, inserts * record);
  estimate.size_pools(static_cast<double>(estimate.base_bytes) / nodes, nodes);
  return estimate;
}

}  // namespace atolldb::ycsb
