#include "bench/tpcc/terminals.h"

#include "shared/base/check.h"

namespace atolldb::tpcc {
namespace {

constexpr double kNsPerSecond = 1e9;

}  // namespace

Terminals::Terminals(std::span<const uint32_t> warehouses, double scale, uint64_t seed,
                     const std::function<TransactionType()>& next_type)
    : scale_(scale), random_(seed), next_type_(next_type) {
  CHECK(scale > 0 && scale <= kMaxThinkScale);
  for (const uint32_t warehouse : warehouses) {
    for (uint32_t terminal = 0; terminal < kTerminalsPerWarehouse; ++terminal) {
      const TransactionType type = next_type_();
      const auto cycle =
          static_cast<double>(think_ns(type, scale_, random_) + keying_ns(type, scale_));
      queue_.push({static_cast<uint64_t>(random_.unit() * cycle), type, warehouse});
    }
  }
}

void Terminals::end_first(uint64_t ended_ns) {
  CHECK(!empty());
  Next next = queue_.top();
  queue_.pop();
  const uint64_t thought = think_ns(next.type, scale_, random_);
  next.type = next_type_();
  next.due_ns = ended_ns + thought + keying_ns(next.type, scale_);
  queue_.push(next);
}

uint64_t think_ns(TransactionType type, double scale, bench::Random& random) {
  const double mean = kThinkSeconds[static_cast<size_t>(type)];
  return static_cast<uint64_t>(random.think_time(mean) * scale * kNsPerSecond);
}

uint64_t keying_ns(TransactionType type, double scale) {
  return static_cast<uint64_t>(kKeyingSeconds[static_cast<size_t>(type)] * scale * kNsPerSecond);
}

}  // namespace atolldb::tpcc
