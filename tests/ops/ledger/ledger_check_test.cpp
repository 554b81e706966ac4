// Checker of the ledger: sound histories, and every kind of violation planted and named.
#include "ops/ledger/ledger_check.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>

namespace atolldb {
namespace {

uint64_t version(uint64_t epoch, uint64_t ordinal) { return epoch << 28 | ordinal << 6; }

LedgerTransaction writer(std::vector<LedgerKey> keys, uint64_t written,
                         AnswerAt at = AnswerAt::durable) {
  LedgerOutcome outcome{Status::ok, at, written >> 28, written, 1, {}};
  return {std::move(keys), outcome};
}
LedgerTransaction ended(std::vector<LedgerKey> keys, Status status) {
  LedgerOutcome outcome;
  outcome.status = status;
  return {std::move(keys), outcome};
}
LedgerTransaction reader(std::map<LedgerKey, LedgerValue> reads, AnswerAt at = AnswerAt::durable) {
  return {{}, LedgerOutcome{Status::ok, at, 9, 0, 1, std::move(reads)}};
}

/// Transaction 1 writes keys 1 and 2. Transaction 2 overwrites key 2 and writes 3. Transaction 3 is
/// unknown and present, 4 is unknown and absent, 5 has failed, 6 has only read.
struct History {
  Ledger ledger;
  LedgerState state;

  History() {
    ledger[1] = writer({1, 2}, version(5, 1));
    ledger[2] = writer({2, 3}, version(6, 1));
    ledger[3] = ended({4, 5}, Status::outcome_unknown);
    ledger[4] = {{6, 7}, std::nullopt};
    ledger[5] = ended({1, 6}, Status::read_conflict);
    ledger[6] = reader({{1, {1, version(5, 1)}}, {2, {1, version(5, 1)}}, {6, {}}});
    state[1] = {1, version(5, 1)};
    state[2] = {2, version(6, 1)};
    state[3] = {2, version(6, 1)};
    state[4] = {3, version(7, 1)};
    state[5] = {3, version(7, 1)};
  }
  std::vector<LedgerViolation> check() const { return check_ledger(ledger, state); }
};

TEST(LedgerCheckTest, AHistoryWithoutViolationsPasses) {
  const History history;
  for (const LedgerViolation& one : history.check()) ADD_FAILURE() << one.text;
}

TEST(LedgerCheckTest, WhatWasOnlyPrecommittedMayBeLostButNotInPart) {
  History history;
  history.ledger[7] = writer({8, 9}, version(8, 1), AnswerAt::precommitted);
  history.ledger[8] = reader({{8, {7, version(8, 1)}}}, AnswerAt::precommitted);
  EXPECT_TRUE(history.check().empty());
  history.state[8] = {7, version(8, 1)};
  const auto violations = history.check();
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].fault, LedgerFault::torn);
  EXPECT_EQ(violations[0].key, 9u);
}

TEST(LedgerCheckTest, EveryPlantedViolationIsNamedWithItsTransactionAndKey) {
  struct Plant {
    const char* what;
    LedgerFault fault;
    LedgerToken token;
    LedgerKey key;
    std::function<void(History&)> damage;
  };
  const Plant plants[] = {
      {"an acknowledged write is gone", LedgerFault::lost, 2, 3,
       [](History& h) { h.state.erase(3); }},
      {"an older write is back", LedgerFault::lost, 2, 2,
       [](History& h) { h.state[2] = {1, version(5, 1)}; }},
      {"half of an unknown one is there", LedgerFault::torn, 3, 5,
       [](History& h) { h.state.erase(5); }},
      {"an unknown token", LedgerFault::unknown_token, 99, 6,
       [](History& h) { h.state[6] = {99, version(8, 1)}; }},
      {"a token at a foreign key", LedgerFault::unknown_token, 3, 6,
       [](History& h) { h.state[6] = {3, version(8, 1)}; }},
      {"an aborted one is there", LedgerFault::revived, 5, 6,
       [](History& h) { h.state[1] = h.state[6] = {5, version(8, 1)}; }},
      {"a reader saw what is missing", LedgerFault::lost_read, 7, 8,
       [](History& h) {
         h.ledger[7] = reader({{8, {8, version(8, 1)}}});
         h.ledger[8] = ended({8, 9}, Status::outcome_unknown);
       }},
      {"a reader saw half of another", LedgerFault::fractured_read, 7, 3,
       [](History& h) { h.ledger[7] = reader({{2, {2, version(6, 1)}}, {3, {}}}); }},
      {"a write with another version than was told", LedgerFault::wrong_version, 2, 3,
       [](History& h) { h.state[3] = {2, version(6, 2)}; }},
      {"another content with the version that was told", LedgerFault::wrong_version, 2, 3,
       [](History& h) {
         h.state[3] = {7, version(6, 1)};
         h.ledger[7] = ended({3}, Status::outcome_unknown);
       }},
      {"an answer whose epoch is not its version's", LedgerFault::wrong_version, 1, 1,
       [](History& h) { h.ledger[1].outcome->commit_epoch = 6; }},
  };
  for (const Plant& plant : plants) {
    SCOPED_TRACE(plant.what);
    History history;
    plant.damage(history);
    bool is_named = false;
    for (const LedgerViolation& one : history.check()) {
      is_named |= one.fault == plant.fault && one.token == plant.token && one.key == plant.key &&
                  one.text.starts_with(std::string(to_string(plant.fault)) + ": transaction");
    }
    EXPECT_TRUE(is_named);
  }
}

TEST(LedgerCheckTest, ALogIsCheckedByItsLastWritesAndForEveryPromisedOne) {
  const History history;
  std::vector<LedgerWrite> log;
  for (const auto& [key, value] : history.state) log.push_back({key, value});
  EXPECT_EQ(check_ledger_log(history.ledger, log).size(), 1u) << "the overwritten one is not there";
  log.push_back({2, {1, version(5, 1)}});
  EXPECT_TRUE(check_ledger_log(history.ledger, log).empty());
  EXPECT_EQ(state_of_log(log), history.state);
}

TEST(LedgerTest, LinesSayWhatTheyWereMadeOf) {
  Ledger ledger;
  LedgerOutcome outcome{Status::ok, AnswerAt::precommitted, 5, version(5, 3), 2, {}};
  outcome.reads[7] = {12, version(4, 1)};
  outcome.reads[8] = {};
  ASSERT_TRUE(add_ledger_line(ledger, "S 3 1 2"));
  std::string line = answer_line(3, outcome);
  line.pop_back();
  ASSERT_TRUE(add_ledger_line(ledger, line));
  const LedgerOutcome& read = *ledger.at(3).outcome;
  EXPECT_EQ(ledger.at(3).writes, (std::vector<LedgerKey>{1, 2}));
  EXPECT_EQ(read.status, Status::ok);
  EXPECT_EQ(read.answered_at, AnswerAt::precommitted);
  EXPECT_EQ(read.version, version(5, 3));
  EXPECT_EQ(read.reads, outcome.reads);
  for (const char* bad :
       {"", "S", "S 0 1", "S 3 1", "S 4 x", "X 4", "A 9 ok durable 1 1 1", line.c_str(),
        "A 3 fine durable 1 1 1", "A 3 ok durable 1", "A 3 ok durable 1 1 1 7=5"}) {
    EXPECT_FALSE(add_ledger_line(ledger, bad)) << bad;
  }
}

TEST(LedgerTest, ALineThatItsWritersDeathHasCutCountsForNothing) {
  const std::string path = ::testing::TempDir() + "/ledger_cut_test.txt";
  std::remove(path.c_str());
  {
    LedgerFile file;
    ASSERT_TRUE(file.open(path));
    ASSERT_TRUE(file.append(submit_line(1, {1, 2})));
  }
  std::ofstream(path, std::ios::app) << "S 2 1";
  EXPECT_EQ(read_ledger(path)->size(), 1u);
  {
    LedgerFile file;
    ASSERT_TRUE(file.open(path));
    ASSERT_TRUE(file.append(submit_line(3, {})));
  }
  const auto ledger = read_ledger(path);
  ASSERT_TRUE(ledger) << ledger.error().message;
  EXPECT_EQ(ledger->size(), 2u);
  EXPECT_TRUE(ledger->contains(3));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace atolldb
