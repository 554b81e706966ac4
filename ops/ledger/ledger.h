// What a client outside the cluster knows of its transactions: what each wanted to write, what it
// read, and what it was told. Kept in a file that the cluster cannot touch.
//
// Every writing transaction has a token of its own and puts it, and nothing else, into 2 to 4 keys.
// So whoever finds a token knows the whole transaction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/error.h"
#include "shared/session/session_layout.h"
#include "shared/status.h"

namespace atolldb {

using LedgerToken = uint64_t;  // 0: none
using LedgerKey = uint32_t;

/// What one key held when it was looked at.
struct LedgerValue {
  LedgerToken token = 0;  // 0: the key did not exist
  uint64_t version = 0;   // VID of the write; later writes of a key have larger ones
  bool operator==(const LedgerValue&) const = default;
};

/// What the cluster said of a transaction.
struct LedgerOutcome {
  Status status = Status::outcome_unknown;
  AnswerAt answered_at = AnswerAt::durable;
  uint64_t commit_epoch = 0;
  uint64_t version = 0;  // VID of what it wrote
  uint64_t incarnation = 0;
  std::map<LedgerKey, LedgerValue> reads;

  /// The cluster has promised that it survives.
  bool is_promised() const { return status == Status::ok && answered_at == AnswerAt::durable; }
};

struct LedgerTransaction {
  std::vector<LedgerKey> writes;  // empty: it only reads
  /// Nothing: no answer was noted, as if it were unknown.
  std::optional<LedgerOutcome> outcome;
};

/// By token; transactions that only read have tokens, too.
using Ledger = std::map<LedgerToken, LedgerTransaction>;

/// Lines of the file: `S <token> <keys...>` before a transaction is sent, `A <token> <status>
/// <answered at> <epoch> <version> <incarnation> <key=token@version...>` after its answer.
std::string submit_line(LedgerToken token, const std::vector<LedgerKey>& writes);
std::string answer_line(LedgerToken token, const LedgerOutcome& outcome);
/// Adds one line; the error tells what is wrong with it.
Result<void> add_ledger_line(Ledger& ledger, std::string_view line);

/// The file of one client. A line is given to the kernel in one write before the call returns, so
/// it survives the client's death (not the machine's).
class LedgerFile {
 public:
  LedgerFile() = default;
  LedgerFile(const LedgerFile&) = delete;
  LedgerFile& operator=(const LedgerFile&) = delete;
  ~LedgerFile();
  /// Creates it, or goes on behind what is there; a last line that was cut is ended.
  Result<void> open(const std::string& path);
  Result<void> append(const std::string& line) const;

 private:
  int fd_ = -1;
  std::string path_;
};

/// Reads a whole file; a last line without an end was cut by the client's death and is left out,
/// and so is one that was ended later.
Result<Ledger> read_ledger(const std::string& path);

}  // namespace atolldb
