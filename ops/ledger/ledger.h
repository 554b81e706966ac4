// Records a client's transactions in a file that the cluster does not touch: the planned writes,
// the values read, and the reply of each transaction.
//
// Each writing transaction has a unique token, and puts only this token into 2 to 4 keys. So a
// token that is found in the database identifies the whole transaction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/error.h"
#include "shared/base/status.h"
#include "shared/session/session_layout.h"

namespace atolldb {

using LedgerToken = uint64_t;  // 0: none
using LedgerKey = uint32_t;

/// The value of one key when it was read.
struct LedgerValue {
  LedgerToken token = 0;  // token of the writer; 0: the key did not exist
  uint64_t version = 0;   // VID of the write; newer writes of a key have larger ones
  bool operator==(const LedgerValue&) const = default;
};

/// The cluster's reply to a transaction.
struct LedgerOutcome {
  Status status = Status::outcome_unknown;
  AnswerAt answered_at = AnswerAt::durable;
  uint64_t commit_epoch = 0;
  uint64_t version = 0;  // VID of its writes
  uint64_t incarnation = 0;
  std::map<LedgerKey, LedgerValue> reads;

  /// Returns whether the cluster has promised that the transaction survives a failure.
  bool is_promised() const { return status == Status::ok && answered_at == AnswerAt::durable; }
};

struct LedgerTransaction {
  std::vector<LedgerKey> writes;  // empty: a read-only transaction
  /// No value: no reply was recorded, so the outcome is unknown.
  std::optional<LedgerOutcome> outcome;
};

/// Transactions by token. Read-only transactions have tokens, too.
using Ledger = std::map<LedgerToken, LedgerTransaction>;

/// Lines of the file. Before a transaction is sent: `S <token> <keys...>`. After its reply: `A
/// <token> <status> <answered at> <epoch> <version> <incarnation> <key=token@version...>`.
std::string submit_line(LedgerToken token, const std::vector<LedgerKey>& writes);
std::string answer_line(LedgerToken token, const LedgerOutcome& outcome);
/// Adds one line. Returns an error that says what is wrong with the line.
Result<void> add_ledger_line(Ledger& ledger, std::string_view line);

/// The file of one client. The kernel gets each line in one write before the call returns. So the
/// line survives the death of the client, but not of the machine.
class LedgerFile {
 public:
  LedgerFile() = default;
  LedgerFile(const LedgerFile&) = delete;
  LedgerFile& operator=(const LedgerFile&) = delete;
  ~LedgerFile();
  /// Creates the file, or continues it. Ends an incomplete last line.
  Result<void> open(const std::string& path);
  Result<void> append(const std::string& line) const;

 private:
  int fd_ = -1;
  std::string path_;
};

/// Reads a whole file. Ignores lines that were cut when the client died: a last line without an
/// end, and lines that LedgerFile::open has ended.
Result<Ledger> read_ledger(const std::string& path);

}  // namespace atolldb
