// Replies that wait for an event: when they are taken out, in which order, and with which answer.
#include "shared/message/pending_replies.h"

#include <gtest/gtest.h>

#include <string>

namespace atolldb::test {
namespace {

using ReplyClock = PendingReplies<>::Clock;

class PendingRepliesTest : public testing::Test {
 protected:
  /// Adds a reply that records its name and its answer.
  void add(const std::string& name,
           ReplyClock::time_point deadline = ReplyClock::time_point::max()) {
    pending_.add(
        [this, name](const Result<Json>& answer) {
          told_ += name + "=" + (answer ? answer->dump() : answer.error().message) + " ";
        },
        deadline);
  }

  const ReplyClock::time_point begin_ = ReplyClock::now();
  const ReplyClock::time_point later_ = begin_ + std::chrono::hours(1);
  PendingReplies<> pending_;
  std::string told_;
};

TEST_F(PendingRepliesTest, TheEventAnswersAllInTheOrderOfTheirArrival) {
  add("a", later_);
  add("b");
  add("c", begin_);
  EXPECT_FALSE(pending_.is_empty());
  const auto all = pending_.take_all();
  EXPECT_TRUE(pending_.is_empty());
  EXPECT_EQ(told_, "");
  PendingReplies<>::answer(all, Json(7));
  EXPECT_EQ(told_, "a=7 b=7 c=7 ");
  EXPECT_TRUE(pending_.take_all().empty());
}

TEST_F(PendingRepliesTest, ADeadlineAnswersOnlyThoseThatHaveReachedIt) {
  add("a", begin_);
  add("b", later_);
  add("c", begin_);
  add("d");
  EXPECT_TRUE(pending_.take_due(begin_ - std::chrono::nanoseconds(1)).empty());
  PendingReplies<>::answer(pending_.take_due(begin_), make_error(ExitCode::failed, "late"));
  EXPECT_EQ(told_, "a=late c=late ");
  PendingReplies<>::answer(pending_.take_due(later_), Json(1));
  EXPECT_EQ(told_, "a=late c=late b=1 ");
  PendingReplies<>::answer(pending_.take_all(), Json(2));
  EXPECT_EQ(told_, "a=late c=late b=1 d=2 ");
}

TEST_F(PendingRepliesTest, TheNextDeadlineIsTheEarliestAndRepliesWithoutOneHaveNone) {
  EXPECT_FALSE(pending_.next_deadline());
  add("a");
  EXPECT_FALSE(pending_.next_deadline());
  add("b", later_);
  add("c", begin_);
  EXPECT_EQ(pending_.next_deadline(), begin_);
  EXPECT_EQ(pending_.take_due(begin_).size(), 1u);
  EXPECT_EQ(pending_.next_deadline(), later_);
}

TEST_F(PendingRepliesTest, AReplyMayAddAnother) {
  pending_.add([this](const Result<Json>&) { add("second"); });
  PendingReplies<>::answer(pending_.take_all(), Json(1));
  PendingReplies<>::answer(pending_.take_all(), Json(2));
  EXPECT_EQ(told_, "second=2 ");
}

TEST(PendingRepliesOfNumbersTest, OtherAnswersThanJsonAreTypedAlike) {
  PendingReplies<uint32_t> pending;
  uint32_t told = 0;
  pending.add([&](const Result<uint32_t>& answer) { told = answer.value_or(1); });
  PendingReplies<uint32_t>::answer(pending.take_all(), 42u);
  EXPECT_EQ(told, 42u);
}

}  // namespace
}  // namespace atolldb::test
