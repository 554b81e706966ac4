// Merges the workers' results of a run and of the verification.
#include <fmt/format.h>

#include <algorithm>

#include "bench/ycsb_driver/report.h"
#include "shared/base/try.h"

namespace atolldb::ycsb {

Result<std::unique_ptr<RunSummary>> summarize(const std::vector<std::string>& outputs,
                                              uint32_t nodes) {
  auto summary = std::make_unique<RunSummary>(nodes);
  summary->inserted.resize(nodes);
  for (const std::string& output : outputs) {
    ATOLL_ASSIGN(const RunResult result, RunResult::parse(output));
    ATOLL_TRY(summary->merge(result, kCommand));
    summary->scanned_records += result.scanned_records;
    summary->updates += result.updates;
    summary->torn_reads += result.torn_reads;
    std::vector<uint64_t>& inserted = summary->inserted[result.node];
    inserted.resize(std::max<size_t>(inserted.size(), size_t{result.worker} + 1));
    inserted[result.worker] = result.inserted;
  }
  return summary;
}

std::vector<std::string> find_violations(const std::vector<VerifyResult>& found,
                                         const std::vector<std::unique_ptr<RunSummary>>& runs,
                                         const JobInput& input, uint32_t nodes) {
  const Keyspace keyspace = input.keyspace(nodes);
  std::vector<std::string> violations;
  std::vector<std::map<uint32_t, VerifyResult::Lane>> lanes(keyspace.nodes());
  uint64_t updates = 0;
  uint64_t left_out = 0;
  for (const VerifyResult& part : found) {
    updates += part.updates;
    violations.insert(violations.end(), part.violations.begin(), part.violations.end());
    left_out += part.violation_count - part.violations.size();
    for (const auto& [lane, records] : part.lanes) {
      VerifyResult::Lane& sum = lanes.at(part.node)[lane];
      sum.count += records.count;
      sum.end = std::max(sum.end, records.end);
    }
  }
  if (left_out != 0) violations.push_back(fmt::format("and {} more records", left_out));

  uint64_t committed = 0;
  uint64_t torn_reads = 0;
  for (const auto& run : runs) {
    committed += run->updates;
    torn_reads += run->torn_reads;
  }
  if (updates != committed && !input.blind_updates) {
    violations.push_back(
        fmt::format("the records count {} updates, but {} were committed: {}", updates, committed,
                    updates < committed ? "updates were lost" : "aborted updates were applied"));
  }
  if (torn_reads != 0) {
    violations.push_back(fmt::format("{} records were torn when a run read them", torn_reads));
  }
  // Keys are distinct. So the count and the greatest key of a lane together show gaps and surplus
  // records.
  for (uint32_t node = 0; node < keyspace.nodes(); ++node) {
    std::map<uint32_t, uint64_t> expected{{0, keyspace.records_of(node)}};
    if (!runs.empty()) {
      const std::vector<uint64_t>& inserted = runs.back()->inserted[node];
      for (uint32_t worker = 0; worker < inserted.size(); ++worker) {
        expected[1 + worker] = inserted[worker];
      }
    }
    for (const auto& [lane, records] : lanes[node]) expected.try_emplace(lane, 0);
    for (const auto& [lane, count] : expected) {
      const VerifyResult::Lane records = lanes[node][lane];
      if (records.count == count && records.end == count) continue;
      const std::string who =
          lane == 0 ? std::string("loaded") : fmt::format("inserted by worker {}", lane - 1);
      violations.push_back(
          fmt::format("node {}: {} records {}, numbers below {}: {} were found, numbers below {}",
                      node, count, who, count, records.count, records.end));
    }
  }
  return violations;
}

}  // namespace atolldb::ycsb
