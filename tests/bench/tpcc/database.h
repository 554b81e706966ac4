// A small loaded TPC-C database on a cluster in this process.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/tpcc/job_input.h"
#include "bench/tpcc/run_result.h"
#include "bench/tpcc/tables.h"
#include "tests/bench/tpcc/mini_cluster.h"

namespace atolldb::test {

class Database {
 public:
  explicit Database(const MiniCluster::Options& options = {}, uint32_t warehouses = 0,
                    const tpcc::Scale& scale = kSmallScale)
      : cluster(options) {
    input.warehouses = warehouses != 0 ? warehouses : options.nodes * options.workers;
    input.scale = scale;
    cluster.create(tpcc::storage_specs(input.warehouses, scale));
    for (const auto& result : cluster.run_job(tpcc::kLoadJob, input.to_json())) {
      EXPECT_TRUE(result.has_value()) << result.error().message;
    }
    tables.emplace(*tpcc::Tables::open(cluster.control(), scale, input.warehouses));
  }

  /// Runs the transaction mix on all workers.
  std::vector<tpcc::RunResult> run(uint64_t milliseconds) {
    input.times.run_ms = milliseconds;
    std::vector<tpcc::RunResult> results;
    for (const auto& output : cluster.run_job(tpcc::kRunJob, input.to_json())) {
      EXPECT_TRUE(output.has_value()) << output.error().message;
      if (output) results.push_back(*tpcc::RunResult::parse(*output));
    }
    ++input.times.run_number;
    return results;
  }

  /// Returns the messages of all workers about violated conditions.
  std::vector<std::string> verify() {
    std::vector<std::string> messages;
    violated.clear();
    for (const auto& output : cluster.run_job(tpcc::kVerifyJob, input.to_json())) {
      EXPECT_TRUE(output.has_value()) << output.error().message;
      if (!output) continue;
      const auto json = nlohmann::json::parse(*output);
      for (const auto& violation : json.at("violations")) {
        violated.insert(violation.at("condition").get<uint32_t>());
        messages.push_back(violation.at("message"));
      }
    }
    return messages;
  }

  /// Runs a transaction on worker 0, and expects it to commit.
  void transact(const std::function<Status(Transaction&)>& body) {
    const Status status = cluster.transact(body);
    EXPECT_EQ(status, Status::ok) << to_string(status);
  }

  MiniCluster cluster;
  tpcc::JobInput input;
  std::optional<tpcc::Tables> tables;
  std::set<uint32_t> violated;  // conditions violated in the latest verify
};

}  // namespace atolldb::test
