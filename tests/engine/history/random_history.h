// Random histories on a small cluster, checked for cycles.
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

#include "tests/engine/history/history_checker.h"
#include "tests/engine/history/random_worker.h"

namespace atolldb::test {

struct RandomHistoryOptions {
  uint32_t nodes = 2;
  uint32_t workers_per_node = 2;
  bool processes = false;
  uint64_t seed = 1;
  uint64_t key_count = 40;
  uint64_t transactions = 2000;  // of each worker
};

/// Empty, or the first thing that was wrong: a cycle, or a worker's own complaint.
std::string run_random_history(const RandomHistoryOptions& options);

/// Histories with ever new seeds: `rounds` of them, or up to the first that is wrong.
std::string run_random_histories(RandomHistoryOptions options, uint64_t rounds);

}  // namespace atolldb::test
