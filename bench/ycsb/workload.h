// Parameters of YCSB: operations, how they choose keys, and the named workloads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace atolldb::ycsb {

enum class Operation : uint8_t { read = 0, update, insert, scan, read_modify_write };
inline constexpr uint32_t kOperations = 5;

/// Number of types of transactions: one per operation, and one for transactions of several
/// operations.
inline constexpr uint32_t kTypes = kOperations + 1;
inline constexpr uint32_t kManyOperations = kOperations;
inline constexpr const char* kTypeNames[kTypes] = {
    "read", "update", "insert", "scan", "read_modify_write", "transaction"};

/// Percent of each operation, in the order of `Operation`; the sum is 100.
using Mix = std::array<uint32_t, kOperations>;

enum class Distribution : uint8_t { uniform = 0, zipfian, latest };
inline constexpr const char* kDistributionNames[] = {"uniform", "zipfian", "latest"};

struct Workload {
  std::string_view name;
  Mix mix;
  Distribution distribution;
};

/// A to F are the core workloads of YCSB. `silor` is the variant of [SILOR14] section 6.2: 70 %
/// reads and 30 % updates of keys drawn uniformly, records of 100 bytes.
inline constexpr Workload kWorkloads[] = {
    {"A", {50, 50, 0, 0, 0}, Distribution::zipfian},
    {"B", {95, 5, 0, 0, 0}, Distribution::zipfian},
    {"C", {100, 0, 0, 0, 0}, Distribution::zipfian},
    {"D", {95, 0, 5, 0, 0}, Distribution::latest},
    {"E", {0, 0, 5, 95, 0}, Distribution::zipfian},
    {"F", {50, 0, 0, 0, 50}, Distribution::zipfian},
    {"silor", {70, 30, 0, 0, 0}, Distribution::uniform},
};

/// Returns null if there is no workload of that name.
constexpr const Workload* find_workload(std::string_view name) {
  for (const Workload& workload : kWorkloads) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

constexpr uint32_t percent_of(const Mix& mix, Operation operation) {
  return mix[static_cast<uint32_t>(operation)];
}

}  // namespace atolldb::ycsb
