// Tests of the checker: one hand-written history per anomaly, and a similar sound history for each.
#include "tests/engine/serializability/checker.h"

#include <gtest/gtest.h>

namespace atolldb::test {
namespace {

constexpr uint64_t kX = 1;
constexpr uint64_t kY = 2;

/// Builds one transaction of a history. Each transaction has its own worker, unless the test builds
/// a session. All transactions run at the same time, unless the test sets times.
class Builder {
 public:
  explicit Builder(uint64_t worker, uint64_t attempt = 1) {
    txn_.name = make_value(worker, attempt, 0);
    txn_.committed = true;
    txn_.begin_ns = 0;
    txn_.end_ns = 1000;
  }
  Builder& at(int64_t begin_ns, int64_t end_ns) {
    txn_.begin_ns = begin_ns;
    txn_.end_ns = end_ns;
    return *this;
  }
  Builder& vid(uint64_t vid) {
    vid_ = vid;
    return *this;
  }
  Builder& aborts() {
    txn_.committed = false;
    return *this;
  }
  Builder& reads(uint64_t key, uint64_t value) {
    txn_.reads.push_back({key, value, 0});
    return *this;
  }
  Builder& scans(uint64_t key, uint64_t value = kAbsent) {
    txn_.reads.push_back({key, value, 1});
    return *this;
  }
  Builder& writes(uint64_t key, uint64_t number, bool intermediate = false) {
    txn_.writes.push_back({key, txn_.name + number, 0, intermediate ? 1u : 0u, vid_});
    return *this;
  }
  Builder& erases(uint64_t key, uint64_t number) {
    txn_.writes.push_back({key, txn_.name + number, 1, 0, vid_});
    return *this;
  }
  operator HistoryTransaction() const { return txn_; }

 private:
  HistoryTransaction txn_;
  uint64_t vid_ = 0;
};

uint64_t value(uint64_t worker, uint64_t number, uint64_t attempt = 1) {
  return make_value(worker, attempt, number);
}

void expect_sound(const History& history) {
  const Verdict verdict = check_history(history);
  EXPECT_EQ(verdict.anomaly, Anomaly::none) << verdict.text;
}

void expect_anomaly(const History& history, Anomaly anomaly, const std::string& mentions) {
  const Verdict verdict = check_history(history);
  EXPECT_EQ(to_text(verdict.anomaly), to_text(anomaly)) << verdict.text;
  EXPECT_NE(verdict.text.find(mentions), std::string::npos) << verdict.text;
}

TEST(HistoryChecker, ASerialHistoryIsSound) {
  expect_sound({Builder(1).at(0, 10).vid(1).writes(kX, 1).writes(kY, 2),
                Builder(2).at(20, 30).vid(2).reads(kX, value(1, 1)).writes(kX, 1),
                Builder(3).at(40, 50).reads(kX, value(2, 1)).reads(kY, value(1, 2))});
}

TEST(HistoryChecker, AReaderOfTheOldStateMayOverlapTheWriter) {
  expect_sound({Builder(1).vid(1).writes(kX, 1).writes(kY, 2),
                Builder(2).reads(kX, kAbsent).reads(kY, kAbsent)});
}

TEST(HistoryChecker, FindsAWriteCycleG0) {
  expect_sound({Builder(1).vid(1).writes(kX, 1).vid(5).writes(kY, 2),
                Builder(2).vid(2).writes(kX, 1).vid(6).writes(kY, 2)});
  expect_anomaly({Builder(1).vid(1).writes(kX, 1).vid(6).writes(kY, 2),
                  Builder(2).vid(2).writes(kX, 1).vid(5).writes(kY, 2)},
                 Anomaly::write_cycle, "w1#1 -> w2#1");
}

TEST(HistoryChecker, AnOrderThatContradictsTheSessionIsACycle) {
  expect_anomaly({Builder(1, 1).vid(9).writes(kX, 1), Builder(1, 2).vid(3).writes(kX, 1)},
                 Anomaly::information_cycle, "session");
}

TEST(HistoryChecker, FindsTwoVersionsWithOneVid) {
  expect_anomaly({Builder(1).vid(5).writes(kX, 1), Builder(2).vid(5).writes(kX, 1)},
                 Anomaly::lost_order, "key 0/1");
}

TEST(HistoryChecker, FindsAnAbortedReadG1a) {
  expect_anomaly({Builder(1).aborts().writes(kX, 1), Builder(2).reads(kX, value(1, 1))},
                 Anomaly::aborted_read, "w2#1 read key 0/1");
}

TEST(HistoryChecker, FindsAnIntermediateReadG1b) {
  expect_anomaly(
      {Builder(1).vid(1).writes(kX, 1, true).writes(kX, 2), Builder(2).reads(kX, value(1, 1))},
      Anomaly::intermediate_read, "w1#1");
}

TEST(HistoryChecker, FindsCircularInformationFlowG1c) {
  expect_anomaly({Builder(1).vid(1).reads(kY, value(2, 1)).writes(kX, 1),
                  Builder(2).vid(2).reads(kX, value(1, 1)).writes(kY, 1)},
                 Anomaly::information_cycle, "w1#1 -> w2#1");
}

TEST(HistoryChecker, FindsALostUpdate) {
  expect_anomaly({Builder(1).vid(1).reads(kX, kAbsent).writes(kX, 1),
                  Builder(2).vid(2).reads(kX, kAbsent).writes(kX, 1)},
                 Anomaly::single_cycle, "key 0/1");
}

TEST(HistoryChecker, FindsReadSkew) {
  expect_anomaly({Builder(1).vid(1).writes(kX, 1).writes(kY, 2),
                  Builder(2).reads(kX, kAbsent).reads(kY, value(1, 2))},
                 Anomaly::single_cycle, "w2#1 -> w1#1");
}

TEST(HistoryChecker, FindsWriteSkewG2Item) {
  const History skewed = {Builder(1).vid(1).reads(kX, kAbsent).reads(kY, kAbsent).writes(kX, 1),
                          Builder(2).vid(2).reads(kX, kAbsent).reads(kY, kAbsent).writes(kY, 1)};
  expect_anomaly(skewed, Anomaly::item_cycle, "w1#1 -> w2#1");
  expect_sound({Builder(1).vid(1).reads(kX, kAbsent).reads(kY, kAbsent).writes(kX, 1),
                Builder(2).vid(2).reads(kX, value(1, 1)).reads(kY, kAbsent).writes(kY, 1)});
}

TEST(HistoryChecker, FindsAPhantomG2) {
  expect_anomaly({Builder(1).vid(1).scans(kX).scans(kY).writes(kX, 1),
                  Builder(2).vid(2).scans(kX).scans(kY).writes(kY, 1)},
                 Anomaly::predicate_cycle, "predicate");
}

TEST(HistoryChecker, FindsAPhantomWithinOneScan) {
  // The scan saw the second of two inserts of one transaction, and missed the first.
  expect_anomaly(
      {Builder(1).vid(1).writes(kX, 1).writes(kY, 2), Builder(2).scans(kX).scans(kY, value(1, 2))},
      Anomaly::predicate_cycle, "w2#1 -> w1#1");
}

TEST(HistoryChecker, FindsThreeTransactionsInACycle) {
  // The read-only anomaly of snapshot isolation (Fekete et al.). The transactions are a batch, a
  // receipt and a report.
  const History history = {Builder(1).vid(1).reads(kX, kAbsent).writes(kX, 1),
                           Builder(2).vid(2).reads(kX, kAbsent).writes(kY, 1),
                           Builder(3).reads(kX, value(1, 1)).reads(kY, kAbsent)};
  expect_anomaly(history, Anomaly::item_cycle, "w3#1");
}

TEST(HistoryChecker, FindsAnAbsenceThatNeverWas) {
  expect_anomaly({Builder(1).at(0, 10).vid(1).writes(kX, 1), Builder(2).at(20, 30).scans(kX)},
                 Anomaly::impossible_read, "absent");
}

TEST(HistoryChecker, FindsAStaleReadAndAValueFromNowhere) {
  expect_anomaly(
      {Builder(1).at(0, 10).vid(1).writes(kX, 1), Builder(2).at(11, 12).vid(2).writes(kX, 1),
       Builder(3).at(20, 30).reads(kX, value(1, 1))},
      Anomaly::impossible_read, "overwritten by w2#1");
  expect_anomaly({Builder(3).reads(kX, value(1, 1))}, Anomaly::impossible_read, "never written");
  expect_anomaly({Builder(1).vid(1).writes(kX, 1), Builder(3).reads(kY, value(1, 1))},
                 Anomaly::impossible_read, "elsewhere");
}

TEST(HistoryChecker, ADeadRecordThatCameBackIsAPhantom) {
  // Reader 3 found x deleted and y new, although x was inserted again before y was written.
  const History history = {Builder(1).at(0, 1).vid(1).writes(kX, 1),
                           Builder(2).at(2, 3).vid(2).erases(kX, 1),
                           Builder(4).at(10, 90).vid(3).reads(kX, kAbsent).writes(kX, 1),
                           Builder(5).at(10, 90).vid(4).reads(kX, value(4, 1)).writes(kY, 1),
                           Builder(3).at(10, 90).scans(kX).reads(kY, value(5, 1))};
  expect_anomaly(history, Anomaly::predicate_cycle, "w3#1 -> w4#1");
}

TEST(HistoryChecker, AnAmbiguousAbsenceIsNotCalledAnAnomaly) {
  // x is absent before its insert and after its erase. The reader overlaps both, so it may have
  // seen either.
  expect_sound({Builder(1).vid(1).writes(kX, 1),
                Builder(2).vid(2).reads(kX, value(1, 1)).erases(kX, 1), Builder(3).scans(kX),
                Builder(4).reads(kX, value(1, 1))});
  // The reader saw another write of the transaction that erased x, and yet it saw x. No absence
  // explains this.
  expect_anomaly({Builder(1).vid(1).writes(kX, 1), Builder(2).vid(2).erases(kX, 1).writes(kY, 2),
                  Builder(3).scans(kX, value(1, 1)).reads(kY, value(2, 2))},
                 Anomaly::predicate_cycle, "w3#1 -> w2#1");
}

TEST(HistoryChecker, SessionsAreOrdered) {
  // Worker 2 sees the new state first, and the old state afterwards.
  expect_anomaly({Builder(1).vid(1).writes(kX, 1), Builder(2, 1).reads(kX, value(1, 1)),
                  Builder(2, 2).reads(kX, kAbsent)},
                 Anomaly::single_cycle, "session");
}

TEST(HistoryChecker, AHistorySurvivesPacking) {
  const History history = {Builder(1).vid(7).at(-5, 9).reads(kX, 3).scans(kY).writes(kX, 1),
                           Builder(2).aborts().erases(kY, 1)};
  History copy;
  unpack(pack(history), copy);
  ASSERT_EQ(copy.size(), 2u);
  EXPECT_EQ(pack(copy), pack(history));
  EXPECT_EQ(copy[0].begin_ns, -5);
  EXPECT_FALSE(copy[1].committed);
  EXPECT_EQ(copy[1].writes[0].erases, 1u);
}

}  // namespace
}  // namespace atolldb::test
