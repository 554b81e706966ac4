#include "bench/micro/loaded.h"

#include <algorithm>
#include <map>
#include <memory>

#include "bench/job/try.h"
#include "shared/base/check.h"

namespace atolldb::bench {

void expect_ok(Status status) { CHECK(status == Status::ok); }

Loaded::Loaded(uint64_t record_count)
    : cluster(2, 1, (uint64_t{64} << 20) + record_count * 1'000),
      records(record_count),
      tree(cluster.create("tree", kPayloadBytes, 0)),
      array(cluster.create("array", kPayloadBytes, record_count)) {
  constexpr uint64_t kBatch = 100;
  const Payload payload{};
  for (uint64_t first = 0; first < records; first += kBatch) {
    expect_ok(cluster.worker(0).run([&](Transaction& txn) {
      for (uint64_t i = first; i < std::min(records, first + kBatch); ++i) {
        BENCH_TRY(tree.insert(txn, ordered_key(i), payload));
        BENCH_TRY(array.update(txn, i, 0, kPayloadBytes, payload.data()));
      }
      return Status::ok;
    }));
  }
  // The loading worker leaves its begin epoch, so that it does not delay the reuse of pages.
  cluster.worker(0).context.leave();
}

Loaded& Loaded::of(uint64_t record_count) {
  static std::map<uint64_t, std::unique_ptr<Loaded>> databases;
  std::unique_ptr<Loaded>& database = databases[record_count];
  if (database == nullptr) database = std::make_unique<Loaded>(record_count);
  return *database;
}

}  // namespace atolldb::bench
