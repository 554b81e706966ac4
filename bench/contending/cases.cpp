#include "bench/contending/cases.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "bench/job/try.h"
#include "bench/micro/loaded.h"
#include "shared/base/check.h"

namespace atolldb::bench {

namespace {

constexpr Case kCases[] = {
    {.name = "hot", .rows = 50, .reads = 8, .writes = 2},
    {.name = "zipf", .rows = 1'000'000, .reads = 0, .writes = 8, .theta = 0.99},
    {.name = "increment", .rows = 1, .reads = 0, .writes = 1, .increments = true},
    {.name = "counter", .rows = 1, .reads = 0, .writes = 1},
    // For the costs of the simulation: one worker, so no transaction meets another one.
    {.name = "read8", .rows = 50, .reads = 8, .writes = 0},
    {.name = "read16", .rows = 50, .reads = 16, .writes = 0},
    {.name = "write8", .rows = 50, .reads = 8, .writes = 8},
};

using Row = std::array<std::byte, kRowBytes>;

}  // namespace

const Case* find_case(std::string_view name) {
  const auto* found =
      std::ranges::find_if(kCases, [&](const Case& its_case) { return its_case.name == name; });
  return found == std::end(kCases) ? nullptr : found;
}

std::string case_names() {
  std::string names;
  for (const Case& each : kCases) {
    if (!names.empty()) names += ", ";
    names += each.name;
  }
  return names;
}

Rows::Rows(const Case& its_case, uint32_t workers)
    : case_(its_case),
      cluster_(1, workers, (uint64_t{64} << 20) + its_case.rows * 1'000),
      tree_(cluster_.create("rows", kRowBytes, 0)),
      zipfian_(its_case.rows, its_case.theta == 0 ? 0.99 : its_case.theta) {
  CHECK(case_.reads + case_.writes <= std::min<uint64_t>(kMostRows, case_.rows));
  constexpr uint64_t kBatch = 100;
  const Row row{};
  LocalCluster::Worker& loader = cluster_.worker(0);
  for (uint64_t first = 0; first < case_.rows; first += kBatch) {
    expect_ok(loader.run([&](Transaction& txn) {
      for (uint64_t i = first; i < std::min(case_.rows, first + kBatch); ++i) {
        BENCH_TRY(tree_.insert(txn, ordered_key(i), row));
      }
      return Status::ok;
    }));
  }
  loader.context.leave();
}

uint64_t Rows::sum() {
  uint64_t sum = 0;
  LocalCluster::Worker& reader = cluster_.worker(0);
  for (uint64_t row = 0; row < case_.rows; ++row) {
    uint64_t counter = 0;
    expect_ok(reader.run([&](Transaction& txn) {
      return tree_.get_range(txn, ordered_key(row), 0, sizeof counter, &counter);
    }));
    sum += counter;
  }
  reader.context.leave();
  return sum;
}

void Visitor::draw() {
  const Case& its_case = rows_->case_;
  const uint32_t count = its_case.reads + its_case.writes;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t* const end = chosen_.data() + i;
    do {
      *end = its_case.theta == 0 ? random_.uniform(0, static_cast<uint32_t>(its_case.rows - 1))
                                 : rows_->zipfian_.next(random_);
    } while (std::find(chosen_.data(), end, *end) != end);
  }
}

Status Visitor::visit(Transaction& txn) const {
  const Case& its_case = rows_->case_;
  uint32_t reads = its_case.reads;
  uint32_t writes = its_case.writes;
  // Spreads the writes among the reads.
  for (uint32_t i = 0; reads + writes > 0; ++i) {
    const bool is_write = writes * its_case.reads >= reads * its_case.writes && writes != 0;
    BENCH_TRY(is_write ? write(txn, chosen_[i]) : read(txn, chosen_[i]));
    --(is_write ? writes : reads);
  }
  return Status::ok;
}

Status Visitor::read(Transaction& txn, uint64_t row) const {
  Row bytes;
  uint32_t length = 0;
  return rows_->tree_.get(txn, ordered_key(row), bytes.data(), kRowBytes, length);
}

Status Visitor::write(Transaction& txn, uint64_t row) const {
  const auto key = ordered_key(row);
  if (rows_->case_.increments) {
    const uint64_t one = 1;
    return rows_->tree_.increment(txn, key, 0, IncrementType::u64, &one);
  }
  Row bytes;
  uint32_t length = 0;
  RecordRef ref;
  BENCH_TRY(rows_->tree_.get_for_update(txn, key, bytes.data(), kRowBytes, length, ref));
  uint64_t counter = 0;
  std::memcpy(&counter, bytes.data(), sizeof counter);
  ++counter;
  return rows_->tree_.update_range(txn, ref, key, 0, std::as_bytes(std::span(&counter, 1)));
}

}  // namespace atolldb::bench
