// The bodies of random_shapes.h with tiny pages: many levels, many splits.
#include <gtest/gtest.h>

#include "tests/engine/compose/random_shapes.h"

namespace atolldb::test {
namespace {

TEST(TreeShapesStress, AnyShapeMakesASoundSnapshotOfTinyPages) {
  trees_of_any_shape_against_a_map(rounds(20, 500), 500);
}

}  // namespace
}  // namespace atolldb::test
