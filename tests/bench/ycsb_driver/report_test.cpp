// Report of `atoll bench ycsb`: keys of the JSON, and the remarks beside figures.
#include "bench/ycsb_driver/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/ycsb_driver/driver.h"

namespace atolldb::ycsb {
namespace {

/// Returns the output of a worker that committed `commits` transactions in two seconds.
std::string output_of(uint32_t node, uint32_t type, uint64_t commits) {
  RunResult result;
  result.node = node;
  result.seconds = 2.0;
  result.commits[type] = commits;
  for (uint64_t i = 0; i < commits; ++i) result.latency[type].add(1'000 * (i + 1));
  result.engine.aborts[static_cast<size_t>(Status::read_conflict)] = 7;
  result.engine.remote_accesses = 11;
  result.updates = 5;
  result.inserted = 9;
  result.pauses = {{1'000'000, 161'000'000 - 100'000'000 * node},
                   {900'000'000, 950'000'000 + node}};
  return result.to_json();
}

Report report_of(uint32_t type, uint32_t operations) {
  Report report;
  report.options.operations = operations;
  report.input = *job_input(report.options);
  report.nodes = 2;
  report.workers = 2;
  report.mode = "processes";
  report.durability = "off";
  report.machine.cpu = "a processor";
  report.storage_bytes = {{"ycsb_records", 1 << 20}};
  auto summary = summarize({output_of(0, type, 100), output_of(1, type, 300)}, 2);
  EXPECT_TRUE(summary.has_value());
  report.runs.push_back(*std::move(summary));
  return report;
}

TEST(Report, JsonHasTheKeysThatProgramsRelyOn) {
  const nlohmann::json json = report_of(0, 1).json();
  for (const char* key : {"throughput_tps", "operations_per_second", "runs", "durability", "nodes",
                          "aborts", "remote_accesses", "latency_us", "config", "machine",
                          "verified", "schema_version", "storage_bytes", "benchmark"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["benchmark"], "ycsb");
  EXPECT_EQ(json["durability"], "off");
  EXPECT_EQ(json["aborts"]["read_conflict"], 14);
  EXPECT_EQ(json["verified"], false) << "nothing was verified";
  EXPECT_EQ(json["config"]["remote_percent"], 50.0);
  EXPECT_EQ(json["config"]["workload"], "A");
  EXPECT_GT(json["latency_us"]["read"]["p99.9"], 0.0);
  EXPECT_FALSE(json["latency_us"].contains("scan")) << "there was none";
  EXPECT_EQ(json["runs"][0]["types"]["read"]["committed"], 400);
  EXPECT_EQ(json["runs"][0]["longest_pause_ms"], 60.0) << "the other worker paused for longer";
}

TEST(Report, OperationsAreCountedBesideTransactions) {
  const nlohmann::json json = report_of(kManyOperations, 10).json();
  EXPECT_DOUBLE_EQ(json["throughput_tps"], 200.0);
  EXPECT_DOUBLE_EQ(json["operations_per_second"], 2'000.0);
  EXPECT_TRUE(json["latency_us"].contains("transaction"));
}

TEST(Report, EveryFigureOfTransactionsPerSecondHasItsDurabilityMode) {
  const std::string text = report_of(0, 1).text();
  size_t figures = 0;
  for (size_t at = 0; (at = text.find("transactions/s", at)) != std::string::npos; ++at) {
    ++figures;
    const std::string line = text.substr(at, text.find('\n', at) - at);
    EXPECT_NE(line.find("durability off"), std::string::npos) << line;
  }
  EXPECT_EQ(figures, 3u);
}

TEST(Report, ViolationsAndEarlyEndsDecideTheExitCode) {
  Report report = report_of(0, 1);
  EXPECT_EQ(exit_code_of(report), ExitCode::success);
  report.runs[0]->ended_early = "the volatile pool of node 1 is full";
  EXPECT_EQ(exit_code_of(report), ExitCode::resources);
  report.verify_done = true;
  report.violations = {"record 0x1: ..."};
  EXPECT_EQ(exit_code_of(report), ExitCode::corruption);
  EXPECT_NE(report.text().find("verify: FAILED\n  record 0x1: ..."), std::string::npos);
}

TEST(Summary, AddsWhatTheVerificationNeeds) {
  const auto summary = summarize({output_of(0, 0, 1), output_of(1, 0, 1)}, 2);
  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ((*summary)->updates, 10u);
  EXPECT_EQ((*summary)->inserted, (std::vector<std::vector<uint64_t>>{{9}, {9}}));
}

TEST(Summary, GarbageOfAWorkerIsAnErrorNotACrash) {
  EXPECT_FALSE(summarize({"{}"}, 2).has_value());
  EXPECT_FALSE(summarize({""}, 2).has_value());
  EXPECT_FALSE(summarize({output_of(5, 0, 1)}, 2).has_value());
  EXPECT_FALSE(VerifyResult::parse("{}").has_value());
}

}  // namespace
}  // namespace atolldb::ycsb
