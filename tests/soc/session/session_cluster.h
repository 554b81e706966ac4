// The small cluster of the tests of sessions: one node with two workers, as threads of the test.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "ops/cluster/cluster.h"

namespace atolldb::test {

/// Without a log. A call may take a minute, so that a slow machine does not end it.
inline Config session_config() {
  Config config = default_config();
  config.durability.mode = DurabilityMode::off;
  config.nodes.assign(1, NodeConfig{});
  config.nodes[0].workers = 2;
  config.memory.volatile_pool = uint64_t{16} << 20;
  config.memory.log_buffer = uint64_t{2} << 20;
  config.memory.exchange = uint64_t{2} << 20;
  config.cluster.epoch = std::chrono::milliseconds(2);
  config.procedures.time_limit = std::chrono::milliseconds(60'000);
  return config;
}

/// Returns the running cluster, or null after a failure, which fails the test.
inline std::unique_ptr<Cluster> launch_session_cluster() {
  auto launched = Cluster::launch(session_config(), LaunchMode::thread);
  if (!launched) ADD_FAILURE() << launched.error().message;
  return launched ? *std::move(launched) : nullptr;
}

}  // namespace atolldb::test
