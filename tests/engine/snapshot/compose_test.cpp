// The bodies of compose_rules.h with ordinary pages.
#include <gtest/gtest.h>

#include "tests/engine/snapshot/compose_rules.h"

namespace atolldb::test {
namespace {

TEST(Compose, TreesHoldWhatAMapHolds) { tree_rounds_against_a_map(rounds(12, 500), 3000); }

TEST(Compose, ArraysHoldWhatAMapHolds) { array_rounds_against_a_map(rounds(10, 300), 20'000); }

TEST(Compose, SequentialStoragesKeepAllAppends) {
  sequential_rounds_keep_all_appends(rounds(10, 100), 5000);
}

}  // namespace
}  // namespace atolldb::test
