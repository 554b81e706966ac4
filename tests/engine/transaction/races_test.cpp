// The bodies of races.h on the ordinary engine.
#include "tests/engine/transaction/races.h"

#include <gtest/gtest.h>

#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

TEST(Races, CountersSumUp) { EXPECT_EQ(counters_sum_up(rounds(20'000, 1'000'000)), ""); }

TEST(Races, RecordsAreNeverTorn) {
  EXPECT_EQ(records_are_never_torn(rounds(20'000, 1'000'000)), "");
}

TEST(Races, AHalfWrittenRecordIsWaitedFor) { EXPECT_EQ(half_written_record_is_waited_for(), ""); }

}  // namespace
}  // namespace atolldb::test
