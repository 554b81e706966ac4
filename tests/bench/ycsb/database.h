// A small loaded YCSB database on a cluster in this process.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "bench/ycsb/table.h"
#include "bench/ycsb_driver/report.h"
#include "soc/procedure/procedure.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

class YcsbDatabase {
 public:
  YcsbDatabase(uint32_t nodes, uint32_t workers, const ycsb::JobInput& job_input)
      : input(job_input), cluster(nodes, workers), workers_(workers) {
    for (const bench::StorageSpec& spec : ycsb::storage_specs(input, nodes)) {
      cluster.create(std::string(spec.name), spec.type, spec.payload_bytes, spec.record_count);
    }
    run_job(ycsb::kLoadJob);
  }

  std::vector<std::string> run_job(const std::string& name) {
    std::vector<std::string> texts;
    for (Result<std::string>& output : try_job(name)) {
      EXPECT_TRUE(output.has_value()) << output.error().message;
      texts.push_back(output.value_or(""));
    }
    return texts;
  }

  /// Runs the job, which may fail.
  std::vector<Result<std::string>> try_job(const std::string& name) {
    JobFunction job = nullptr;
    for (const auto* entry = ProcedureRegistration::first(); entry; entry = entry->next()) {
      if (name == entry->entry().name) job = entry->entry().job;
    }
    CHECK(job != nullptr);
    const std::string text = input.to_json();
    std::vector<Result<std::string>> outputs(cluster.worker_count());
    cluster.run_threads([&](uint32_t index, TestWorker& worker) {
      JobContext context(*worker.transaction, worker.backoff, text, index % workers_, workers_,
                         stop);
      outputs[index] = job(context);
    });
    return outputs;
  }

  const ycsb::RunSummary& run(uint64_t milliseconds) {
    input.times.run_ms = milliseconds;
    auto summary = ycsb::summarize(run_job(ycsb::kRunJob), cluster.node_count());
    CHECK(summary.has_value());
    ++input.times.run_number;
    runs.push_back(*std::move(summary));
    return *runs.back();
  }

  std::vector<std::string> verify() {
    std::vector<ycsb::VerifyResult> found;
    for (const std::string& output : run_job(ycsb::kVerifyJob)) {
      found.push_back(*ycsb::VerifyResult::parse(output));
    }
    return ycsb::find_violations(found, runs, input, cluster.node_count());
  }

  /// Runs a transaction on worker 0, and expects it to commit.
  template <typename Body>
  void transact(Body&& body) {
    const Status status = cluster.worker(0).run(body);
    EXPECT_EQ(status, Status::ok) << to_string(status);
    cluster.worker(0).context->leave();
  }

  ycsb::Table table() {
    return *ycsb::Table::open(*cluster.view().control, input, cluster.node_count());
  }
  uint64_t id_of(uint32_t node, uint64_t number) {
    return input.keyspace(cluster.node_count()).id_of(node, number);
  }

  ycsb::JobInput input;
  TestCluster cluster;
  std::vector<std::unique_ptr<ycsb::RunSummary>> runs;
  std::atomic<bool> stop{false};  // of all jobs

 private:
  uint32_t workers_;
};

}  // namespace atolldb::test
