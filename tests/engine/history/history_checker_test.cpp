// The checker against histories written by hand: one for each phenomenon, and their near misses.
#include "tests/engine/history/history_checker.h"

#include <gtest/gtest.h>

namespace atolldb::test {
namespace {

constexpr Item kX{1, 10};
constexpr Item kY{1, 20};

/// Transaction number `id`, committed at `order` (0: aborted).
class T {
 public:
  T(uint64_t id, uint64_t order) {
    record_.id = id;
    record_.order = order;
    record_.committed = order != 0;
  }
  T& reads(Item item, Version version) {
    record_.reads.push_back({item, version});
    return *this;
  }
  T& writes(Item item, Version version) {
    record_.writes.push_back({item, version});
    return *this;
  }
  T& erases(Item item, Version version) {
    record_.writes.push_back({.item = item, .version = version, .erases = true});
    return *this;
  }
  T& overwrites_itself(Item item, Version version) {
    record_.writes.push_back({.item = item, .version = version, .intermediate = true});
    return *this;
  }
  T& scans(uint64_t first, uint64_t last, std::vector<std::pair<uint64_t, Version>> found,
           std::vector<uint64_t> own = {}) {
    record_.predicates.push_back({1, first, last, std::move(found), std::move(own)});
    return *this;
  }
  operator TransactionRecord() const { return record_; }  // NOLINT(google-explicit-constructor)

 private:
  TransactionRecord record_;
};

TEST(HistoryChecker, AcceptsTheEmptyHistory) {
  EXPECT_EQ(check_history({}).phenomenon, Phenomenon::none);
}

TEST(HistoryChecker, AcceptsASerialHistory) {
  const History history{T(1, 1).reads(kX, 0).writes(kX, 101).writes(kY, 102),
                        T(2, 2).reads(kX, 101).reads(kY, 102).writes(kX, 201),
                        T(3, 3).reads(kX, 201).reads(kY, 102)};
  EXPECT_EQ(check_history(history).text, "");
}

TEST(HistoryChecker, AcceptsAReaderBetweenTwoWriters) {
  const History history{T(3, 3).reads(kX, 101).reads(kY, 0),
                        T(2, 2).writes(kX, 201).writes(kY, 202), T(1, 1).writes(kX, 101)};
  EXPECT_EQ(check_history(history).text, "");
}

TEST(HistoryChecker, FindsAReadOfAnAbortedWrite) {
  const History history{T(1, 0).writes(kX, 101), T(2, 2).reads(kX, 101)};
  EXPECT_EQ(check_history(history).phenomenon, Phenomenon::g1a);
}

TEST(HistoryChecker, FindsAReadOfAnIntermediateWrite) {
  const History history{T(1, 1).overwrites_itself(kX, 101).writes(kX, 102), T(2, 2).reads(kX, 101)};
  EXPECT_EQ(check_history(history).phenomenon, Phenomenon::g1b);
}

TEST(HistoryChecker, FindsAReadOfAVersionThatNobodyWroteThere) {
  EXPECT_EQ(check_history({T(1, 1).reads(kX, 999)}).phenomenon, Phenomenon::unknown);
  EXPECT_EQ(check_history({T(1, 1).writes(kY, 101), T(2, 2).reads(kX, 101)}).phenomenon,
            Phenomenon::unknown);
}

TEST(HistoryChecker, FindsWritesInDifferentOrders) {
  TransactionRecord first = T(1, 1).writes(kX, 101).writes(kY, 102);
  TransactionRecord second = T(2, 2).writes(kX, 201).writes(kY, 202);
  first.writes[1].order = 3;
  EXPECT_EQ(check_history({first, second}).phenomenon, Phenomenon::g0);
}

TEST(HistoryChecker, FindsAReadOfALaterWrite) {
  const History history{T(1, 1).writes(kX, 101).reads(kY, 202),
                        T(2, 2).writes(kX, 201).writes(kY, 202)};
  EXPECT_EQ(check_history(history).phenomenon, Phenomenon::g1c);
}

TEST(HistoryChecker, FindsCircularInformationFlow) {
  const History history{T(1, 1).writes(kX, 101).reads(kY, 201),
                        T(2, 2).writes(kY, 201).reads(kX, 101)};
  const Verdict verdict = check_history(history);
  EXPECT_EQ(verdict.phenomenon, Phenomenon::g1c);
  EXPECT_NE(verdict.text.find("T1 -wr[table 1 key 10]-> T2"), std::string::npos) << verdict.text;
}

TEST(HistoryChecker, FindsALostUpdate) {
  const History history{T(1, 1).reads(kX, 0).writes(kX, 101), T(2, 2).reads(kX, 0).writes(kX, 201)};
  EXPECT_EQ(check_history(history).phenomenon, Phenomenon::g_single);
}

TEST(HistoryChecker, FindsReadSkew) {
  const History history{T(1, 1).writes(kX, 101).writes(kY, 102),
                        T(2, 2).reads(kX, 0).reads(kY, 102)};
  EXPECT_EQ(check_history(history).phenomenon, Phenomenon::g_single);
}

TEST(HistoryChecker, FindsWriteSkew) {
  const History history{T(1, 1).reads(kX, 0).reads(kY, 0).writes(kX, 101),
                        T(2, 2).reads(kX, 0).reads(kY, 0).writes(kY, 201)};
  const Verdict verdict = check_history(history);
  EXPECT_EQ(verdict.phenomenon, Phenomenon::g2_item);
  EXPECT_NE(verdict.text.find("-rw["), std::string::npos) << verdict.text;
}

TEST(HistoryChecker, FindsAPhantom) {
  // T2 scanned before T1's insert, and read what T1 wrote elsewhere.
  const History history{T(1, 1).writes(kX, 101).writes({2, 1}, 102),
                        T(2, 2).scans(0, 15, {}).reads({2, 1}, 102)};
  EXPECT_EQ(check_history(history).phenomenon, Phenomenon::g2);
}

TEST(HistoryChecker, FindsWriteSkewOnAbsence) {
  const History history{T(1, 1).scans(0, 30, {}).writes(kX, 101),
                        T(2, 2).scans(0, 30, {}).writes(kY, 201)};
  EXPECT_EQ(check_history(history).phenomenon, Phenomenon::g2);
}

TEST(HistoryChecker, FindsANotFoundThatWasStale) {
  const History history{T(1, 1).writes(kX, 101).writes(kY, 102),
                        T(2, 2).reads(kX, kAbsent).reads(kY, 102)};
  EXPECT_EQ(check_history(history).phenomenon, Phenomenon::g2);
}

TEST(HistoryChecker, AcceptsScansAroundInsertsAndErases) {
  const History history{T(1, 1).scans(0, 30, {}).writes(kX, 101),
                        T(2, 2).scans(0, 30, {{10, 101}}).writes(kY, 201),
                        T(3, 3).scans(0, 30, {{10, 101}, {20, 201}}).erases(kX, 301),
                        T(4, 4).scans(0, 30, {{20, 201}})};
  EXPECT_EQ(check_history(history).text, "");
}

TEST(HistoryChecker, AScanSaysNothingAboutOwnWritesNorOtherTables) {
  const History history{T(1, 1).writes({2, 10}, 101).writes(kY, 102),
                        T(2, 2).scans(0, 15, {}, {10}).writes(kX, 201).reads(kY, 102)};
  EXPECT_EQ(check_history(history).text, "");
}

TEST(HistoryChecker, FindsARecordThatAScanStillReturnsAfterItsErase) {
  const History history{T(1, 1).writes(kX, 101), T(2, 2).erases(kX, 201).writes(kY, 202),
                        T(3, 3).scans(0, 15, {{10, 101}}).reads(kY, 202)};
  EXPECT_EQ(check_history(history).phenomenon, Phenomenon::g_single);
}

TEST(HistoryChecker, AnAbsenceBeforeAnOwnInsertIsTheOneRightBeforeIt) {
  // T4 found nothing and inserted behind T3's erase, but read a value from before that erase.
  const History history{T(1, 1).writes(kX, 101), T(2, 2).erases(kX, 201),
                        T(3, 3).writes(kX, 301).writes(kY, 302), T(4, 4).erases(kX, 401),
                        T(5, 5).reads(kX, kAbsent).reads(kY, 0).writes(kX, 501)};
  EXPECT_NE(check_history(history).phenomenon, Phenomenon::none);
}

TEST(HistoryChecker, AnAmbiguousAbsenceRaisesNoAlarm) {
  const History history{T(1, 1).writes(kX, 101), T(2, 2).erases(kX, 201).writes(kY, 202),
                        T(3, 3).reads(kX, kAbsent).reads(kY, 202),
                        T(4, 4).reads(kX, kAbsent).reads(kY, 0)};
  EXPECT_EQ(check_history(history).text, "");
}

TEST(HistoryChecker, FindsLongCycles) {
  History history;
  constexpr uint64_t kCount = 1000;
  for (uint64_t i = 0; i < kCount; ++i) {
    history.push_back(T(i, i + 1).reads({1, i}, 0).writes({1, (i + 1) % kCount}, 100 + i));
  }
  const Verdict verdict = check_history(history);
  EXPECT_EQ(verdict.phenomenon, Phenomenon::g2_item);
}

}  // namespace
}  // namespace atolldb::test
