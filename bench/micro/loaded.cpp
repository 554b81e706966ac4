#include "bench/micro/loaded.h"

#include <algorithm>
#include <map>
#include <memory>

#include "bench/job/try.h"
#include "engine/hash/hash.h"
#include "engine/mastertree/inspect.h"
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

LoadedPoints::LoadedPoints(StorageType type, uint64_t record_count)
    : cluster(1, 1, (uint64_t{64} << 20) + record_count * 1'000),
      records(record_count),
      storage(&cluster.create("points", type, kPayloadBytes, 0)) {
  constexpr uint64_t kBatch = 100;
  // A factor that is a prime number visits each record once, if it does not divide their number.
  constexpr uint64_t kFactor = 7'778'777;
  CHECK(records % kFactor != 0 && records <= UINT64_MAX / kFactor);
  const Payload payload{};
  const Hash hash(*storage);
  for (uint64_t first = 0; first < records; first += kBatch) {
    expect_ok(cluster.worker(0).run([&](Transaction& txn) {
      for (uint64_t i = first; i < std::min(records, first + kBatch); ++i) {
        const auto key = ordered_key(i * kFactor % records);
        BENCH_TRY(is_hash() ? hash.insert(txn, key, payload)
                            : hash.tree().insert(txn, key, payload));
      }
      return Status::ok;
    }));
  }
}

double LoadedPoints::bytes_per_record() {
  TreeStatistics statistics;
  CHECK(check_tree(cluster.worker(0).context.view(), *storage, statistics).empty());
  CHECK(statistics.records == records);
  return static_cast<double>(statistics.pages() * kPageBytes) / static_cast<double>(records);
}

LoadedPoints& LoadedPoints::of(StorageType type, uint64_t record_count) {
  static std::unique_ptr<LoadedPoints> database;
  if (database == nullptr || database->storage->type != type || database->records != record_count) {
    database.reset();
    database = std::make_unique<LoadedPoints>(type, record_count);
  }
  return *database;
}

Loaded& Loaded::of(uint64_t record_count) {
  static std::map<uint64_t, std::unique_ptr<Loaded>> databases;
  std::unique_ptr<Loaded>& database = databases[record_count];
  if (database == nullptr) database = std::make_unique<Loaded>(record_count);
  return *database;
}

}  // namespace atolldb::bench
