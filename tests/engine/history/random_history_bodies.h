// The same random histories for the ordinary and the tiny-page engine.
#pragma once

#include <gtest/gtest.h>

#include "tests/engine/history/random_history.h"
#include "tests/support/seed.h"

namespace atolldb::test {

inline void random_histories(bool processes, uint32_t nodes, uint32_t workers_per_node,
                             uint64_t key_count) {
  const RandomHistoryOptions options{.nodes = nodes,
                                     .workers_per_node = workers_per_node,
                                     .processes = processes,
                                     .seed = seed() % 1'000'000'000,
                                     .key_count = key_count};
  EXPECT_EQ(run_random_histories(options, rounds(6, 1000)), "");
}

}  // namespace atolldb::test
