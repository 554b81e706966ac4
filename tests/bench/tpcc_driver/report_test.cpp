// Report of `atoll bench tpcc`: keys of the JSON, the median, and the remarks beside figures.
#include "bench/tpcc_driver/report.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "bench/tpcc_driver/driver.h"

namespace atolldb::tpcc {
namespace {

/// Returns the output of a worker that committed `commits` transactions of each type in two
/// seconds.
std::string output_of(uint32_t node, uint64_t commits, const std::string& ended_early = "") {
  RunResult result;
  result.node = node;
  result.seconds = 2.0;
  result.commits.assign(kTransactionTypes, commits);
  result.user_aborts = 3;
  result.ended_early = ended_early;
  for (auto& latency : result.latency) {
    for (uint64_t i = 0; i < commits; ++i) latency.add(1'000 * (i + 1));
  }
  result.engine.aborts[static_cast<size_t>(Status::user_abort)] = 3;
  result.engine.aborts[static_cast<size_t>(Status::read_conflict)] = 7;
  result.engine.remote_accesses = 11;
  result.engine.local_accesses = 100;
  return result.to_json();
}

Report report_of(const std::vector<uint64_t>& commits_of_run) {
  Report report;
  report.nodes = 2;
  report.workers = 2;
  report.warehouses = 2;
  report.mode = "processes";
  report.durability = "off";
  report.machine.cpu = "a processor";
  for (const uint64_t commits : commits_of_run) {
    auto summary = summarize({output_of(0, commits), output_of(1, commits)}, 2);
    EXPECT_TRUE(summary.has_value());
    report.runs.push_back(*std::move(summary));
  }
  return report;
}

TEST(Report, ThroughputIsTheMedianOfTheRuns) {
  // A run with n commits of each type by two workers in two seconds has 5 n commits per second.
  EXPECT_DOUBLE_EQ(report_of({100}).median_tps(), 500);
  EXPECT_DOUBLE_EQ(report_of({300, 100, 200}).median_tps(), 1'000);
  EXPECT_DOUBLE_EQ(report_of({400, 100, 200, 300}).median_tps(), 1'250);
  EXPECT_DOUBLE_EQ(report_of({300, 100, 200}).median_run().tps, 1'000);
}

TEST(Report, UserRollbacksAreNoThroughputAndNoAborts) {
  const nlohmann::json json = report_of({100}).json();
  EXPECT_EQ(json["user_rollbacks"], 6);
  EXPECT_EQ(json["aborts"]["read_conflict"], 14);
  EXPECT_FALSE(json["aborts"].contains("user_abort"));
  EXPECT_DOUBLE_EQ(json["throughput_tps"], 500.0);
}

TEST(Report, JsonHasTheKeysThatProgramsRelyOn) {
  const nlohmann::json json = report_of({100, 200}).json();
  for (const char* key :
       {"throughput_tps", "runs", "durability", "nodes", "aborts", "remote_accesses", "latency_us",
        "config", "machine", "verified", "schema_version"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["nodes"], 2);
  EXPECT_EQ(json["durability"], "off");
  EXPECT_EQ(json["runs"].size(), 2u);
  EXPECT_EQ(json["remote_accesses"], 22);
  EXPECT_EQ(json["verified"], false) << "nothing was verified";
  for (const char* quantile : {"p50", "p95", "p99", "p99.9", "max"}) {
    EXPECT_GT(json["latency_us"]["new_order"][quantile], 0.0) << quantile;
  }
  EXPECT_EQ(json["runs"][0]["per_node"].size(), 2u);
}

TEST(Report, TheLatencyOfAllTypesCountsEachTransactionOnce) {
  constexpr std::array<const char*, 2> kNames = {"often", "seldom"};
  bench::RunSummary run(1, kNames.size());
  run.seconds = 1;
  run.commits = {1'999, 1};
  for (uint64_t i = 0; i < run.commits[0]; ++i) run.durable_latency[0].add(1'000'000);
  run.durable_latency[1].add(1'000'000'000);
  run.log_wait.add(1);
  const auto us = bench::all_latency_json(run.durable_latency);
  EXPECT_NEAR(us["p99.9"].get<double>(), 1e3, 50) << "one of 2,000 is above";
  EXPECT_NEAR(us["max"].get<double>(), 1e6, 5e4);
  EXPECT_NE(bench::durable_text(run, kNames).find("\n  all  "), std::string::npos);
  run.commits[1] = 0;
  EXPECT_EQ(bench::durable_text(run, kNames).find("\n  all  "), std::string::npos) << "of one type";
}

TEST(Report, EveryFigureOfTransactionsPerSecondHasItsDurabilityMode) {
  const std::string text = report_of({100}).text();
  size_t figures = 0;
  for (size_t at = 0; (at = text.find("transactions/s", at)) != std::string::npos; ++at) {
    ++figures;
    const std::string line = text.substr(at, text.find('\n', at) - at);
    EXPECT_NE(line.find("durability off"), std::string::npos) << line;
  }
  EXPECT_EQ(figures, 3u);
}

TEST(Report, ViolationsAndEarlyEndsDecideTheExitCode) {
  Report report = report_of({100});
  EXPECT_EQ(exit_code_of(report), ExitCode::success);
  report.runs[0]->ended_early = "the volatile pool of node 1 is full";
  EXPECT_EQ(exit_code_of(report), ExitCode::resources);
  EXPECT_NE(report.text().find("run ended early after 2.0 s: the volatile pool of node 1 is full"),
            std::string::npos);
  report.verify_done = true;
  report.violations = {"condition 1: ..."};
  EXPECT_EQ(exit_code_of(report), ExitCode::corruption);
  EXPECT_EQ(report.json()["verified"], false);
  report.violations.clear();
  EXPECT_EQ(report.json()["verified"], true);
}

TEST(Summary, KeepsTheReasonOfWhoStoppedFirst) {
  const auto summary = summarize(
      {output_of(0, 5, "another worker had to stop"), output_of(1, 5, "the pool is full")}, 2);
  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ((*summary)->ended_early, "the pool is full");
}

TEST(Summary, GarbageOfAWorkerIsAnErrorNotACrash) {
  EXPECT_FALSE(summarize({"{}"}, 2).has_value());
  EXPECT_FALSE(summarize({""}, 2).has_value());
  EXPECT_FALSE(summarize({output_of(5, 1)}, 2).has_value());
}

}  // namespace
}  // namespace atolldb::tpcc
