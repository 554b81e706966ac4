// Interleavings of installations that need sync points (engine/hooks/sync_points.h) and have no
// mutant. Interleavings with a mutant are in tests/engine/rules_mutant_test.cpp.
#include <gtest/gtest.h>

#include "tests/engine/install/drop_races.h"
#include "tests/engine/install/install_races.h"
#include "tests/engine/install/reclaim_walk_rules.h"

namespace atolldb::test {
namespace {

TEST(DropRaces, ADropThatIsGivenUpLeavesAllAsItWas) {
  EXPECT_EQ(a_drop_that_is_given_up_leaves_all_as_it_was(), "");
}

TEST(DropRaces, ALinkOfAMovedPageLeadsToADroppedLayer) {
  EXPECT_EQ(a_link_of_a_moved_page_leads_to_a_dropped_layer(), "");
}

TEST(DropRaces, ASlowInstallerHoldsNoEpoch) { EXPECT_EQ(a_slow_installer_holds_no_epoch(), ""); }

}  // namespace
}  // namespace atolldb::test
