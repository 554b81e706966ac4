// Chooses the operations of a worker and their records. Inputs are generated before the transaction
// and stay the same through its retries.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/common/random.h"
#include "bench/ycsb/job_input.h"
#include "bench/ycsb/zipfian.h"

namespace atolldb::ycsb {

struct Planned {
  Operation operation;
  uint16_t field;
  uint16_t scan_length;
  uint64_t id;
};

class Generator {
 public:
  /// Creates the generator of worker `worker` of node `node`.
  Generator(const JobInput& input, uint32_t node, uint32_t nodes, uint32_t worker, uint64_t seed);

  /// Plans the operations of the next transactions. Inserts use the worker's next keys.
  void plan(std::span<Planned> operations);
  /// Reports that a transaction of these operations has committed, so its inserts exist. REQUIRES:
  /// the calls are in the order of the plan.
  void committed(std::span<const Planned> operations);

  /// Returns the number of records that this worker has inserted over the life of the database.
  uint64_t inserted() const { return inserted_; }
  void set_inserted(uint64_t count) { inserted_ = count; }
  /// Sets how many records each worker of a node has inserted. Distribution `latest` uses these
  /// counts.
  void set_inserted_of(uint32_t of_node, std::vector<uint64_t> by_worker);

 private:
  uint32_t choose_node();
  uint64_t choose_number(uint32_t of_node);
  uint64_t latest_number(uint32_t of_node, uint64_t rank) const;

  JobInput input_;
  Keyspace keyspace_;
  uint32_t node_;
  uint32_t worker_;
  bench::Random random_;
  // The sizes of two partitions differ by one record at most. So each vector has two generators,
  // one per size.
  std::vector<Zipfian> zipfian_;
  std::vector<Scatter> scatter_;
  std::vector<std::vector<uint64_t>> inserted_of_;  // count of inserted records, by node and worker
  uint64_t inserted_ = 0;
};

}  // namespace atolldb::ycsb
