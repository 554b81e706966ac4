#include "bench/line_counts/counted_ycsb.h"

#include <algorithm>
#include <span>
#include <utility>

#include "bench/job/try.h"
#include "bench/micro/loaded.h"
#include "shared/base/check.h"

namespace atolldb::bench {

CountedYcsb::CountedYcsb(LocalCluster& cluster, uint32_t nodes, uint32_t workers_per_node,
                         const ycsb::JobInput& input)
    : cluster_(cluster), nodes_(nodes), workers_per_node_(workers_per_node) {
  for (const StorageSpec& spec : ycsb::storage_specs(input, nodes)) {
    cluster.create(spec.name, spec.type, spec.payload_bytes, spec.record_count);
  }
  const Result<ycsb::Table> table = ycsb::Table::open(*cluster.view().control, input, nodes);
  CHECK(table.has_value());
  for (uint32_t i = 0; i < nodes * workers_per_node; ++i) {
    clients_.push_back(std::make_unique<Client>(
        Client{.generator = ycsb::Generator(input, i / workers_per_node, nodes,
                                            i % workers_per_node, input.seed * 1'000 + i),
               .table = *table,
               .observed = {}}));
  }
}

uint64_t CountedYcsb::pool_bytes(const ycsb::JobInput& input, uint32_t nodes) {
  const uint64_t records = (input.records + nodes - 1) / nodes;
  return (uint64_t{256} << 20) + records * (input.shape.record_bytes + 64) * 2;
}

void CountedYcsb::populate() {
  constexpr uint64_t kBatch = 64;
  for (uint32_t i = 0; i < nodes_ * workers_per_node_; ++i) {
    active_crew->become(i);
    LocalCluster::Worker& self = cluster_.worker(i);
    ycsb::Table& table = clients_[i]->table;
    const uint32_t node = i / workers_per_node_;
    const uint32_t ordinal = i % workers_per_node_;
    const uint64_t records = table.keyspace().records_of(node);
    const uint64_t end = records * (ordinal + 1) / workers_per_node_;
    for (uint64_t first = records * ordinal / workers_per_node_; first < end; first += kBatch) {
      expect_ok(self.run([&](Transaction& txn) {
        for (uint64_t item = first; item < std::min(end, first + kBatch); ++item) {
          const uint64_t id = table.keyspace().id_of(node, ycsb::number_of(0, item));
          BENCH_TRY(table.write_loaded(txn, id));
        }
        return Status::ok;
      }));
    }
    self.context.leave();
  }
}

Status CountedYcsb::transact(Transaction& txn, Client& client, const ycsb::Planned& planned) {
  switch (planned.operation) {
    case ycsb::Operation::read:
      return client.table.read(txn, planned.id, client.observed);
    case ycsb::Operation::update:
      return client.table.update(txn, planned.id, planned.field);
    case ycsb::Operation::insert:
      return client.table.insert(txn, planned.id);
    case ycsb::Operation::scan:
      return client.table.scan(txn, planned.id, planned.scan_length, client.observed);
    case ycsb::Operation::read_modify_write:
      return client.table.read_modify_write(txn, planned.id, planned.field, client.observed);
  }
  return Status::invalid_argument;
}

bool CountedYcsb::run_one(uint32_t worker) {
  Client& client = *clients_[worker];
  ycsb::Planned planned{};
  client.generator.plan(std::span(&planned, 1));
  uint32_t attempts = 0;
  expect_ok(cluster_.worker(worker).run([&](Transaction& txn) {
    if (attempts++ != 0) active_crew->pass();  // as in the time of the back-off
    return transact(txn, client, planned);
  }));
  aborts_ += attempts - 1;
  client.generator.committed(std::span(&planned, 1));
  CHECK(client.observed.torn == 0);
  return true;
}

}  // namespace atolldb::bench
