// Interactive transactions and scans behind the handles of the C interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shared/c_client/request.h"
#include "shared/client/kv_transaction.h"

namespace atolldb::c_client {

/// A transaction and the session in which it runs. Scans of the transaction share it. Thread: one
/// at a time.
struct Transaction {
  Transaction(std::shared_ptr<Session> its_session, uint32_t snapshot, AnswerAt when)
      : session(std::move(its_session)), kv(session->client(), snapshot), answer_at(when) {}

  const std::shared_ptr<Session> session;
  KvTransaction kv;
  const AnswerAt answer_at;
  bool has_ended = false;
};

/// Returns the failure of a call within a transaction.
Failure failure_of(const KvFailure& failure);

/// Rows of a scan, read page by page: from a transaction, or each page as a request of its own.
class Scan {
 public:
  /// Row of the current page.
  struct Row {
    KvBytes key;
    KvBytes value;
    uint64_t version = 0;
  };

  /// `limit`: most rows; 0: no limit. The keys of `range` are copied.
  Scan(std::shared_ptr<Connection> connection, std::string storage, const KvScan& range,
       uint64_t limit, CallOptions options);
  Scan(std::shared_ptr<Transaction> transaction, std::string storage, const KvScan& range,
       uint64_t limit);

  /// Returns the next row, or ATOLL_END_OF_SCAN. The row is valid until the next call.
  Checked<Row> next();

 private:
  struct Page {
    std::vector<Row> rows;
    bool has_more = false;
  };

  Scan(std::string storage, const KvScan& range, uint64_t limit);
  /// Reads the next page. If that fails, the position does not change.
  Checked<void> read_page();
  Checked<Page> page_of_transaction(const KvScan& range);
  Checked<Page> page_of_request(const KvScan& range);
  /// Moves the start of the rest of the range past a row. Returns false if no key can follow.
  bool continue_after(KvBytes key);

  std::shared_ptr<Connection> connection_;    // either this one
  std::shared_ptr<Transaction> transaction_;  // or this one is set
  CallOptions options_;
  const std::string storage_;
  std::vector<std::byte> low_;
  std::vector<std::byte> high_;
  KvScan range_;                 // its keys are low_ and high_
  uint64_t left_;                // most rows that may follow
  Outcome reply_;                // of a request: the rows of the page point into it
  std::vector<KvRecord> owned_;  // of a transaction: rows of the page
  Page page_{.rows = {}, .has_more = true};
  size_t at_ = 0;  // next row of the page
};

}  // namespace atolldb::c_client

struct AtollTransaction {
  std::shared_ptr<atolldb::c_client::Transaction> transaction;
};

struct AtollScan {
  atolldb::c_client::Scan scan;
};
