// The limit of whole versions (R107), and another one for measurements.
#include "soc/node/whole_version_limit.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/mastertree/mastertree.h"
#include "engine/transaction/transaction.h"

namespace atolldb::test {
namespace {

TEST(WholeVersionLimit, IsTheConstantUnlessTheVariableHasANumber) {
  EXPECT_EQ(whole_version_limit(nullptr).value(), kWholeVersionBytes);
  EXPECT_EQ(whole_version_limit("0").value(), 0u);
  EXPECT_EQ(whole_version_limit("512").value(), 512u);
  EXPECT_EQ(whole_version_limit("2048").value(), MasterTree::kMaxPayloadBytes);
}

TEST(WholeVersionLimit, OfAnyOtherTextIsAnErrorThatNamesIt) {
  for (const char* text : {"", "-1", "64 ", "64B", "much", "2049", "99999999999"}) {
    const auto limit = whole_version_limit(text);
    ASSERT_FALSE(limit) << text;
    EXPECT_EQ(limit.error().code, ExitCode::usage);
    EXPECT_TRUE(limit.error().message.contains(std::string("\"") + text + "\"")) << text;
  }
}

}  // namespace
}  // namespace atolldb::test
