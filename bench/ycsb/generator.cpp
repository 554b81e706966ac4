#include "bench/ycsb/generator.h"

#include <algorithm>

namespace atolldb::ycsb {

Generator::Generator(const JobInput& input, uint32_t node, uint32_t nodes, uint32_t worker,
                     uint64_t seed)
    : input_(input),
      keyspace_(input.keyspace(nodes)),
      node_(node),
      worker_(worker),
      random_(seed),
      inserted_of_(nodes) {
  for (const uint32_t smallest_first : {nodes - 1, 0u}) {
    zipfian_.emplace_back(keyspace_.records_of(smallest_first), input.theta);
    scatter_.emplace_back(keyspace_.records_of(smallest_first));
  }
}

void Generator::set_inserted_of(uint32_t of_node, std::vector<uint64_t> by_worker) {
  inserted_of_[of_node] = std::move(by_worker);
}

void Generator::plan(std::span<Planned> operations) {
  uint64_t inserts = inserted_;
  for (Planned& planned : operations) {
    uint32_t left = random_.uniform(0, 99);
    uint32_t operation = 0;
    while (left >= input_.mix[operation]) left -= input_.mix[operation++];
    planned.operation = static_cast<Operation>(operation);
    if (planned.operation == Operation::insert) {
      planned.id = keyspace_.id_of(node_, number_of(1 + worker_, inserts++));
      continue;
    }
    const uint32_t node = choose_node();
    planned.id = keyspace_.id_of(node, choose_number(node));
    if (planned.operation == Operation::scan) {
      planned.scan_length = static_cast<uint16_t>(random_.uniform(1, input_.scan_length));
    } else if (input_.shape.fields > 1) {
      planned.field = static_cast<uint16_t>(random_.uniform(0, input_.shape.fields - 1));
    } else {
      planned.field = 0;
    }
  }
}

void Generator::committed(std::span<const Planned> operations) {
  for (const Planned& planned : operations) {
    if (planned.operation == Operation::insert) ++inserted_;
  }
}

uint32_t Generator::choose_node() {
  const uint32_t nodes = keyspace_.nodes();
  if (nodes == 1) return 0;
  if (input_.remote_percent == kAllNodesAlike) return random_.uniform(0, nodes - 1);
  if (!random_.percent(input_.remote_percent)) return node_;
  const uint32_t other = random_.uniform(0, nodes - 2);
  return other < node_ ? other : other + 1;
}

uint64_t Generator::choose_number(uint32_t of_node) {
  const uint64_t count = keyspace_.records_of(of_node);
  if (input_.distribution == Distribution::uniform) {
    return random_.uniform(0, static_cast<uint32_t>(count - 1));
  }
  const size_t size = count == keyspace_.records_of(keyspace_.nodes() - 1) ? 0 : 1;
  const uint64_t rank = zipfian_[size].next(random_);
  if (input_.distribution == Distribution::latest) return latest_number(of_node, rank);
  // Popular ranks must not share pages. Scrambled keys are far apart already; dense keys are not.
  const bool is_dense = keyspace_.is_array() || keyspace_.is_ordered();
  return is_dense ? scatter_[size].of(rank) : rank;
}

/// Returns the number of a record that was inserted about `rank` inserts ago. Takes the newest
/// records of the lanes of all workers in turn. If a lane is used up, takes loaded records instead.
uint64_t Generator::latest_number(uint32_t of_node, uint64_t rank) const {
  const std::vector<uint64_t>& lanes = inserted_of_[of_node];
  const uint64_t last_loaded = keyspace_.records_of(of_node) - 1;
  if (lanes.empty()) return last_loaded - rank;
  const auto lane = static_cast<uint32_t>(rank % lanes.size());
  const uint64_t back = rank / lanes.size();
  const uint64_t inserted = of_node == node_ && lane == worker_ ? inserted_ : lanes[lane];
  if (back < inserted) return number_of(1 + lane, inserted - 1 - back);
  return last_loaded - std::min(last_loaded, (back - inserted) * lanes.size() + lane);
}

}  // namespace atolldb::ycsb
