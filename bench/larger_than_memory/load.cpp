#include "bench/larger_than_memory/load.h"

#include <algorithm>
#include <vector>

#include "bench/larger_than_memory/record.h"

namespace atolldb::peers {

namespace {

/// Ids of about this number of records are in memory at a time, so that the load leaves the memory
/// of the store alone.
constexpr uint64_t kSliceRecords = 2'000'000;

void append(Store& store, uint64_t id) {
  Record record;
  record.fill(id, 0);
  store.append(Key(id).view(), record.view());
}

}  // namespace

void load(Store& store, const ycsb::Keyspace& keyspace) {
  std::vector<uint64_t> ids;
  for (uint32_t node = 0; node < keyspace.nodes(); ++node) {
    const uint64_t records = keyspace.records_of(node);
    if (keyspace.is_ordered()) {
      for (uint64_t number = 0; number < records; ++number) {
        append(store, keyspace.id_of(node, number));
      }
      continue;
    }
    const uint64_t slices = records / kSliceRecords + 1;
    const uint64_t slice_ids = ycsb::kNumberMask / slices + 1;
    for (uint64_t slice = 0; slice < slices; ++slice) {
      // Scrambled keys have no order by number, so each slice checks all numbers.
      ids.clear();
      for (uint64_t number = 0; number < records; ++number) {
        const uint64_t id = keyspace.id_of(node, number);
        if ((id & ycsb::kNumberMask) / slice_ids == slice) ids.push_back(id);
      }
      std::ranges::sort(ids);
      for (const uint64_t id : ids) append(store, id);
    }
  }
  store.end_load();
}

}  // namespace atolldb::peers
