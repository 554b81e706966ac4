// The limit of whole versions (R107), and another one for measurements.
#include "soc/node/whole_version_limit.h"

#include <gtest/gtest.h>

#include "engine/mastertree/mastertree.h"
#include "engine/transaction/transaction.h"

namespace atolldb::test {
namespace {

TEST(WholeVersionLimit, IsTheConstantUnlessTheVariableHasANumber) {
  EXPECT_EQ(whole_version_limit(nullptr), kWholeVersionBytes);
  EXPECT_EQ(whole_version_limit("0"), 0u);
  EXPECT_EQ(whole_version_limit("512"), 512u);
  EXPECT_EQ(whole_version_limit("100000"), MasterTree::kMaxPayloadBytes);
  for (const char* text : {"", "-1", "64 ", "64B", "much", "99999999999"}) {
    EXPECT_EQ(whole_version_limit(text), kWholeVersionBytes) << text;
  }
}

}  // namespace
}  // namespace atolldb::test
