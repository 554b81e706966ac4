// Statistics of procedures: concurrent writers, the limit of procedures, names, and the scrape.
#include "shared/metrics/procedure_metrics.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

constexpr uint64_t kMs = 1'000'000;

std::string procedures_scrape(const ProcedureMetrics& procedures) {
  MetricFamilies families(MetricFamilies::Labels{{"node", "3"}});
  add_procedures(families, procedures);
  return prometheus::TextSerializer().Serialize(families.take());
}

std::vector<std::string> numbered_names(uint32_t count) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < count; ++i) names.push_back("p" + std::to_string(i));
  return names;
}

uint64_t result_of(const ProcedureTotals& totals, Status status) {
  return totals.results[static_cast<uint32_t>(status)];
}

TEST(ProcedureMetricsTest, BucketsIncludeTheirUpperLimit) {
  for (uint32_t i = 0; i < LatencyCounts::kBoundsNs.size(); ++i) {
    EXPECT_EQ(LatencyCounts::bucket_of(LatencyCounts::kBoundsNs[i]), i);
    EXPECT_EQ(LatencyCounts::bucket_of(LatencyCounts::kBoundsNs[i] + 1), i + 1);
  }
  EXPECT_EQ(LatencyCounts::bucket_of(0), 0u);
  EXPECT_EQ(LatencyCounts::bucket_of(UINT64_MAX), LatencyCounts::kBuckets - 1);
}

TEST(ProcedureMetricsTest, ConcurrentWorkersLoseNoCallAndTotalsOnlyGrow) {
  constexpr uint32_t kWorkers = 4;
  constexpr uint64_t kCalls = 20'000;
  const std::vector<std::string> names = {"a", "b"};
  ProcedureMetrics procedures(names, kWorkers);
  std::atomic<bool> is_over{false};
  std::thread reader([&] {
    uint64_t before = 0;
    while (!is_over.load(std::memory_order_relaxed)) {
      const uint64_t calls = procedures.totals(0).calls();
      EXPECT_GE(calls, before);
      before = calls;
    }
  });
  std::vector<std::thread> threads;
  for (uint32_t worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&, worker] {
      for (uint64_t i = 0; i < kCalls; ++i) {
        const Status status = i % 4 == 0 ? Status::user_abort : Status::ok;
        procedures.add_result(worker, 0, status, i % 2, 3 * kMs);
        procedures.add_result(worker, 1, Status::ok, 0, kMs);
        if (i % 2 == 0) procedures.add_durable(worker, 0, 7 * kMs);
      }
    });
  }
  threads.emplace_back([&] {
    for (uint64_t i = 0; i < kCalls; ++i) {
      procedures.add_durable(procedures.answers_thread(), 0, 70 * kMs);
    }
  });
  for (std::thread& thread : threads) thread.join();
  is_over.store(true, std::memory_order_relaxed);
  reader.join();

  const ProcedureTotals a = procedures.totals(0);
  constexpr uint64_t kAll = kWorkers * kCalls;
  EXPECT_EQ(result_of(a, Status::ok), kAll / 4 * 3);
  EXPECT_EQ(result_of(a, Status::user_abort), kAll / 4);
  EXPECT_EQ(a.calls(), kAll);
  EXPECT_EQ(a.retries, kAll / 2);
  EXPECT_EQ(a.execution.counts[LatencyCounts::bucket_of(3 * kMs)], kAll);
  EXPECT_EQ(a.execution.sum_ns, kAll * 3 * kMs);
  EXPECT_EQ(a.durable.counts[LatencyCounts::bucket_of(7 * kMs)], kAll / 2);
  EXPECT_EQ(a.durable.counts[LatencyCounts::bucket_of(70 * kMs)], kCalls);
  EXPECT_EQ(a.durable.sum_ns, kAll / 2 * 7 * kMs + kCalls * 70 * kMs);
  const ProcedureTotals b = procedures.totals(1);
  EXPECT_EQ(b.calls(), kAll);
  EXPECT_EQ(b.durable.sum_ns, 0u);
}

TEST(ProcedureMetricsTest, AtTheLimitEachProcedureHasItsOwnRowAndPastItTheRestShareOne) {
  constexpr uint32_t kLimit = ProcedureMetrics::kMaxProcedures;
  ProcedureMetrics full(numbered_names(kLimit), 1);
  full.add_result(0, kLimit - 1, Status::ok, 0, kMs);
  EXPECT_EQ(full.named_rows(), kLimit);
  const std::string last = "procedure=\"p" + std::to_string(kLimit - 1) + "\"";
  EXPECT_NE(procedures_scrape(full).find(last), std::string::npos);
  EXPECT_EQ(procedures_scrape(full).find("procedure=\"other\""), std::string::npos);

  ProcedureMetrics past(numbered_names(kLimit + 3), 1);
  EXPECT_EQ(past.named_rows(), kLimit);
  past.add_result(0, 0, Status::ok, 0, kMs);
  past.add_result(0, kLimit - 1, Status::ok, 0, kMs);
  past.add_result(0, kLimit, Status::ok, 0, kMs);
  past.add_result(0, kLimit + 2, Status::not_found, 2, kMs);
  const std::string text = procedures_scrape(past);
  for (const char* line :
       {"atoll_procedure_commits_total{node=\"3\",procedure=\"p0\"} 1\n",
        "atoll_procedure_commits_total{node=\"3\",procedure=\"other\"} 1\n",
        "atoll_procedure_retries_total{node=\"3\",procedure=\"other\"} 2\n",
        "atoll_procedure_aborts_total{node=\"3\",procedure=\"other\",reason=\"not_found\"} 1\n",
        "atoll_procedure_seconds_count{node=\"3\",procedure=\"other\",stage=\"execution\"} 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  }
  EXPECT_EQ(text.find("procedure=\"p" + std::to_string(kLimit)), std::string::npos) << text;
}

TEST(ProcedureMetricsTest, AProcedureThatAReloadAddsGetsARowWhileThereAreAny) {
  constexpr uint32_t kLimit = ProcedureMetrics::kMaxProcedures;
  ProcedureMetrics metrics(numbered_names(2), 1);
  metrics.add_result(0, 1, Status::ok, 0, kMs);
  metrics.add_result(0, 2, Status::ok, 0, kMs);  // it has no name yet
  metrics.add_result(0, 4000, Status::ok, 0, kMs);
  metrics.add_names(numbered_names(3));
  metrics.add_result(0, 2, Status::ok, 0, kMs);
  std::string text = procedures_scrape(metrics);
  EXPECT_NE(text.find("procedure=\"p1\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("procedure=\"p2\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("procedure=\"other\"} 2\n"), std::string::npos) << text;
  metrics.add_names(numbered_names(kLimit + 1));
  metrics.add_result(0, kLimit - 1, Status::ok, 0, kMs);
  metrics.add_result(0, kLimit, Status::ok, 0, kMs);
  text = procedures_scrape(metrics);
  EXPECT_EQ(metrics.named_rows(), kLimit);
  EXPECT_NE(text.find("procedure=\"p" + std::to_string(kLimit - 1) + "\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("procedure=\"other\"} 3\n"), std::string::npos) << text;
}

TEST(ProcedureMetricsTest, ScrapesDuringAReloadCountEachCallOnce) {
  constexpr uint32_t kNames = ProcedureMetrics::kMaxProcedures;
  ProcedureMetrics metrics(numbered_names(1), 1);
  metrics.add_result(0, 0, Status::ok, 0, kMs);
  metrics.add_result(0, kNames - 1, Status::ok, 0, kMs);  // in the shared row
  std::thread reload([&] {
    for (uint32_t names = 2; names <= kNames; ++names) metrics.add_names(numbered_names(names));
  });
  uint32_t named = 0;
  while (named < kNames) {
    named = metrics.named_rows();
    uint64_t calls = metrics.totals(ProcedureMetrics::kSharedRow).calls();
    for (uint32_t row = 0; row < named; ++row) {
      EXPECT_EQ(metrics.row_name(row), "p" + std::to_string(row));
      calls += metrics.totals(row).calls();
    }
    ASSERT_EQ(calls, 2u) << named;
  }
  reload.join();
}

TEST(ProcedureMetricsTest, NamesOfUsersNeverMakeAScrapeInvalid) {
  const std::vector<std::string> names = {"say \"hi\"\n\\", "other", "\xff\xfe", "plain"};
  ProcedureMetrics procedures(names, 1);
  EXPECT_EQ(procedures.named_rows(), 2u);
  for (uint32_t i = 0; i < names.size(); ++i) procedures.add_result(0, i, Status::ok, 0, kMs);
  const std::string text = procedures_scrape(procedures);
  for (const char* line :
       {"atoll_procedure_commits_total{node=\"3\",procedure=\"say \\\"hi\\\"\\n\\\\\"} 1\n",
        "atoll_procedure_commits_total{node=\"3\",procedure=\"plain\"} 1\n",
        "atoll_procedure_commits_total{node=\"3\",procedure=\"other\"} 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  }
  EXPECT_EQ(text.find('\xff'), std::string::npos);
}

TEST(ProcedureMetricsTest, AScrapeHasTheCalledProceduresWithAllReasonsAndBuckets) {
  const std::vector<std::string> names = {"called", "idle"};
  ProcedureMetrics procedures(names, 2);
  EXPECT_EQ(procedures_scrape(procedures), "");
  procedures.add_result(0, 0, Status::ok, 1, kMs / 2);
  procedures.add_result(1, 0, Status::user_abort, 0, 30'000 * kMs);
  procedures.add_durable(procedures.answers_thread(), 0, 2 * kMs);
  const std::string text = procedures_scrape(procedures);
  const std::string execution = "{node=\"3\",procedure=\"called\",stage=\"execution\"";
  const std::string durable = "{node=\"3\",procedure=\"called\",stage=\"durable\"";
  for (const std::string& line :
       {std::string("# TYPE atoll_procedure_seconds histogram\n"),
        std::string("atoll_procedure_retries_total{node=\"3\",procedure=\"called\"} 1\n"),
        std::string("atoll_procedure_aborts_total{node=\"3\",procedure=\"called\","
                    "reason=\"user_abort\"} 1\n"),
        std::string("atoll_procedure_aborts_total{node=\"3\",procedure=\"called\","
                    "reason=\"deadline_exceeded\"} 0\n"),
        "atoll_procedure_seconds_bucket" + execution + ",le=\"0.0002\"} 0\n",
        "atoll_procedure_seconds_bucket" + execution + ",le=\"0.0005\"} 1\n",
        "atoll_procedure_seconds_bucket" + execution + ",le=\"10\"} 1\n",
        "atoll_procedure_seconds_bucket" + execution + ",le=\"+Inf\"} 2\n",
        "atoll_procedure_seconds_count" + execution + "} 2\n",
        "atoll_procedure_seconds_sum" + execution + "} 30.0005\n",
        "atoll_procedure_seconds_bucket" + durable + ",le=\"0.001\"} 0\n",
        "atoll_procedure_seconds_bucket" + durable + ",le=\"0.002\"} 1\n",
        "atoll_procedure_seconds_count" + durable + "} 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  }
  EXPECT_EQ(text.find("idle"), std::string::npos) << text;
}

}  // namespace
}  // namespace atolldb
