// The bodies of random_shapes.h: composers with fence maps that no real tree has.
#include <gtest/gtest.h>

#include "tests/engine/compose/random_shapes.h"

namespace atolldb::test {
namespace {

TEST(TreeShapes, AnyShapeMakesASoundSnapshot) {
  trees_of_any_shape_against_a_map(rounds(20, 500), 500);
}

}  // namespace
}  // namespace atolldb::test
