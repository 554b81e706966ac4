#include "ops/export/import_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"

namespace atolldb {
namespace {

static_assert(kMaxBatchRows <= kMaxKvOperations);

/// Maximum time for which a cluster may answer `unavailable` or `recovering`, because it is busy or
/// recovers.
constexpr std::chrono::seconds kImportPatience{60};
constexpr std::chrono::milliseconds kImportPause{50};

/// A row as a record, and its line.
struct ImportRow {
  uint64_t line = 0;
  TableRecord record;
};

/// Returns whether a single row may have caused the status.
bool is_fault_of_row(Status status) {
  return status == Status::out_of_range || status == Status::key_too_long ||
         status == Status::payload_too_long || status == Status::invalid_argument;
}

class TableImport {
 public:
  TableImport(const TableSchema& table, ImportSource& source, const ImportRequest& request,
              ImportCounts& counts)
      : table_(table), source_(source), request_(request), counts_(counts) {}

  Result<void> run() {
    {
      std::vector<std::jthread> threads;
      for (uint32_t i = 0; i < std::clamp(request_.connections, 1u, kMaxImportConnections); ++i) {
        threads.emplace_back([this, i] {
          const Result<void> done = import_batches(i);
          if (!done) fail(done.error());
        });
      }
    }
    const std::lock_guard lock(mutex_);
    counts_.left_out = source_.rows_left_out();
    if (failure_) return std::unexpected(*failure_);
    return {};
  }

 private:
  void fail(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = error;
    // Relaxed: the flag orders no other accesses.
    has_failed_.store(true, std::memory_order_relaxed);
  }

  Result<void> import_batches(uint32_t connection) {
    ATOLL_ASSIGN(const auto session, request_.connect(connection));
    while (!has_failed_.load(std::memory_order_relaxed)) {
      ATOLL_ASSIGN(const ImportBatch batch, source_.next());
      if (batch.rows.empty()) return {};
      ATOLL_ASSIGN(const auto rows, parse_batch(batch));
      ATOLL_TRY(write_rows(*session, batch, rows));
      ATOLL_TRY(source_.finish(batch));
      const std::lock_guard lock(mutex_);
      if (request_.on_progress) ATOLL_TRY(request_.on_progress(counts_));
    }
    return {};
  }

  /// Reports a wrong row. Returns an error if a wrong row ends the import.
  Result<void> report_wrong(size_t file, uint64_t line, const std::string& reason) {
    const std::string text = fmt::format("{}:{}: {}", source_.file(file).path, line, reason);
    if (!request_.skips_wrong_rows) return make_error(ExitCode::failed, text);
    const std::lock_guard lock(mutex_);
    ++counts_.wrong;
    if (request_.on_wrong_row) request_.on_wrong_row(text);
    return {};
  }

  Result<std::vector<ImportRow>> parse_batch(const ImportBatch& batch) {
    std::vector<ImportRow> rows;
    const FieldOrder& order = source_.file(batch.file).order;
    for (const CsvRow& row : batch.rows) {
      auto record = parse_row(table_, order, row.fields);
      if (record) {
        rows.push_back({row.line, *std::move(record)});
      } else {
        ATOLL_TRY(report_wrong(batch.file, row.line, record.error()));
      }
    }
    return rows;
  }

  void add_operation(KvRequest& request, const TableRecord& record) const {
    switch (table_.type) {
      case StorageType::array:
        request.put(table_.storage, kv_bytes(record.key), record.payload);
        break;
      case StorageType::sequential:
        request.append(table_.storage, record.payload);
        break;
      case StorageType::mastertree:
      case StorageType::hash:
        if (request_.is_upsert) {
          request.put(table_.storage, kv_bytes(record.key), record.payload);
        } else {
          request.insert(table_.storage, kv_bytes(record.key), record.payload, false);
        }
        break;
      case StorageType::none:
        CHECK(false);
    }
  }

  size_t bytes_of(const ImportRow& row) const {
    return sizeof(KvOperation) + table_.storage.size() + row.record.key.size() +
           row.record.payload.size();
  }

  /// Writes the rows in as few transactions as their requests allow.
  Result<void> write_rows(SessionClient& session, const ImportBatch& batch,
                          std::span<const ImportRow> rows) {
    while (!rows.empty()) {
      size_t count = 0;
      size_t bytes = sizeof(KvRequestHeader);
      while (count < rows.size() && bytes + bytes_of(rows[count]) <= kMaxKvRequestBytes) {
        bytes += bytes_of(rows[count++]);
      }
      CHECK(count != 0);
      ATOLL_TRY(write_at_once(session, batch.file, rows.first(count)));
      rows = rows.subspan(count);
    }
    return {};
  }

  /// Writes the rows in one transaction. If their content prevents this, writes both halves, so
  /// that only wrong rows are skipped.
  Result<void> write_at_once(SessionClient& session, size_t file, std::span<const ImportRow> rows) {
    KvRequest request;
    for (const ImportRow& row : rows) add_operation(request, row.record);
    const SessionReply reply = call(session, request);
    if (reply.status == Status::ok) return take_results(file, rows, reply, request);
    const bool is_fault = is_fault_of_row(reply.status);
    if (rows.size() > 1 && (is_fault || reply.status == Status::transaction_too_large)) {
      const size_t half = rows.size() / 2;
      ATOLL_TRY(write_at_once(session, file, rows.first(half)));
      return write_at_once(session, file, rows.subspan(half));
    }
    const std::string why =
        reply.message.empty() ? std::string(to_string(reply.status)) : reply.message;
    if (is_fault) return report_wrong(file, rows.front().line, why);
    return failed(file, rows, reply.status, why);
  }

  std::unexpected<Error> failed(size_t file, std::span<const ImportRow> rows, Status status,
                                const std::string& why) const {
    const std::string lines = fmt::format("{}: lines {} to {}", source_.file(file).path,
                                          rows.front().line, rows.back().line);
    if (status == Status::outcome_unknown) {
      return make_error(ExitCode::coordinator_unreachable,
                        fmt::format("{}: the cluster failed, so these may be committed or not: "
                                    "start it again, then import again",
                                    lines));
    }
    return make_error(ExitCode::failed,
                      fmt::format("{}: nothing of these was committed: {}", lines, why));
  }

  SessionReply call(SessionClient& session, const KvRequest& request) const {
    const auto give_up = std::chrono::steady_clock::now() + kImportPatience;
    for (;;) {
      SessionReply reply = session.call("kv.txn", request.bytes());
      const bool is_rejected =
          reply.status == Status::unavailable || reply.status == Status::recovering;
      const bool may_retry = session.is_open() && std::chrono::steady_clock::now() < give_up &&
                             !has_failed_.load(std::memory_order_relaxed);
      if (!is_rejected || !may_retry) return reply;
      std::this_thread::sleep_for(kImportPause);
    }
  }

  /// Counts the rows of a committed transaction. Rows whose key exists are wrong.
  Result<void> take_results(size_t file, std::span<const ImportRow> rows, const SessionReply& reply,
                            const KvRequest& request) {
    const auto results = read_kv_reply(reply.output, request.bytes());
    if (!results || results->size() != rows.size()) {
      return make_error(ExitCode::failed, "import: a reply of the cluster is not valid");
    }
    uint64_t written = 0;
    for (const KvResultView& result : *results) written += result.status == Status::ok ? 1 : 0;
    {
      const std::lock_guard lock(mutex_);
      counts_.rows += written;
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const Status status = (*results)[i].status;
      if (status == Status::ok) continue;
      const std::string why = status == Status::already_exists
                                  ? "the key exists already: import with --mode upsert"
                                  : std::string(to_string(status));
      ATOLL_TRY(report_wrong(file, rows[i].line, why));
    }
    return {};
  }

  const TableSchema& table_;
  ImportSource& source_;
  const ImportRequest& request_;
  std::atomic<bool> has_failed_{false};
  std::mutex mutex_;
  ImportCounts& counts_;          // guarded by mutex_
  std::optional<Error> failure_;  // guarded by mutex_; the first failure
};

}  // namespace

Result<void> import_table(const TableSchema& table, ImportSource& source,
                          const ImportRequest& request, ImportCounts& counts) {
  CHECK(request.connect != nullptr);
  return TableImport(table, source, request, counts).run();
}

}  // namespace atolldb
