#include <algorithm>
#include <limits>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/c_client/transaction.h"

namespace atolldb::c_client {

Scan::Scan(std::string storage, const KvScan& range, uint64_t limit)
    : storage_(std::move(storage)),
      low_(range.low.begin(), range.low.end()),
      high_(range.high.begin(), range.high.end()),
      range_(range),
      left_(limit == 0 ? std::numeric_limits<uint64_t>::max() : limit) {
  CHECK(!storage_.empty() && storage_.size() <= kMaxKvStorageName);
  CHECK(low_.size() <= kMaxKvKeyBytes && high_.size() <= kMaxKvKeyBytes);
}

Scan::Scan(std::shared_ptr<Connection> connection, std::string storage, const KvScan& range,
           uint64_t limit, CallOptions options)
    : Scan(std::move(storage), range, limit) {
  CHECK(connection != nullptr);
  connection_ = std::move(connection);
  options_ = options;
  // Without bounds, the only bound is the one of continue_after.
  range_.unordered = !range.has_low && !range.has_high && !range.reverse;
}

Scan::Scan(std::shared_ptr<Transaction> transaction, std::string storage, const KvScan& range,
           uint64_t limit)
    : Scan(std::move(storage), range, limit) {
  CHECK(transaction != nullptr);
  transaction_ = std::move(transaction);
}

bool Scan::continue_after(KvBytes key) {
  DCHECK(key.size() <= kMaxKvKeyBytes);
  if (range_.reverse) {
    high_.assign(key.begin(), key.end());
    range_.has_high = true;
    return true;
  }
  low_ = key_after(key);  // without memory it fails here, before it changes anything
  range_.has_low = true;
  return !low_.empty();
}

Checked<Scan::Page> Scan::page_of_transaction(const KvScan& range) {
  DCHECK(connection_ == nullptr);
  if (transaction_->has_ended) return fail(ATOLL_CLOSED, "scan: its transaction has ended");
  auto scanned = transaction_->kv.scan({storage_}, range);
  if (!scanned) return std::unexpected(failure_of(scanned.error()));
  owned_ = std::move(scanned->rows);
  Page page{.rows = {}, .has_more = scanned->has_more};
  for (const KvRecord& record : owned_) {
    page.rows.push_back({record.key, record.value, record.version});
  }
  return page;
}

Checked<Scan::Page> Scan::page_of_request(const KvScan& range) {
  DCHECK(transaction_ == nullptr);
  KvRequest request;
  request.scan(storage_, range);
  DCHECK(request.count() == 1);
  ATOLL_ASSIGN(const auto session, connection_->session());
  Outcome outcome = send(*session, kv_request_of(request), options_);
  if (outcome.status != ATOLL_OK) return fail(outcome.status, std::move(outcome.message));
  CHECK(outcome.results.size() == 1);
  reply_ = std::move(outcome);
  const KvResultView& result = reply_.results.front();
  if (result.status != Status::ok) return fail(status_of(result.status), "");
  Page page{.rows = {}, .has_more = result.has_more};
  for (const KvRowView& row : result.rows) page.rows.push_back({row.key, row.value, row.version});
  return page;
}

Checked<void> Scan::read_page() {
  DCHECK(at_ == page_.rows.size() && page_.has_more && left_ != 0);
  KvScan range = range_;
  range.low = low_;
  range.high = high_;
  range.limit = static_cast<uint32_t>(std::min<uint64_t>(left_, kMaxKvScanRows));
  // The rows of the old page are gone from here on, and all of them were returned.
  page_.rows.clear();
  at_ = 0;
  ATOLL_ASSIGN(Page page,
               transaction_ != nullptr ? page_of_transaction(range) : page_of_request(range));
  DCHECK(page.rows.size() <= left_);
  if (page.rows.empty()) {
    page.has_more = false;  // else the same page would be read again and again
  } else {
    const bool may_follow = continue_after(page.rows.back().key);
    page.has_more = page.has_more && may_follow;
  }
  page_ = std::move(page);
  return {};
}

Checked<Scan::Row> Scan::next() {
  DCHECK((connection_ == nullptr) != (transaction_ == nullptr));
  DCHECK(at_ <= page_.rows.size());
  if (at_ == page_.rows.size()) {
    if (page_.has_more && left_ != 0) ATOLL_TRY(read_page());
    if (at_ == page_.rows.size()) return fail(ATOLL_END_OF_SCAN, "");
  }
  DCHECK(at_ < page_.rows.size() && left_ != 0);
  --left_;
  return page_.rows[at_++];
}

}  // namespace atolldb::c_client

using namespace atolldb;
using namespace atolldb::c_client;

atoll_status atoll_scan_start(atoll_connection* connection, const char* storage,
                              const atoll_range* range, const atoll_options* options,
                              atoll_scan** scan) {
  return guarded([&]() -> atoll_status {
    if (scan == nullptr) return record_status(null_argument("scan").error());
    *scan = nullptr;
    if (connection == nullptr) return record_status(null_argument("connection").error());
    const auto name = storage_of(storage);
    ATOLL_C_TRY(name);
    const auto read = range_of(range);
    ATOLL_C_TRY(read);
    const auto call = options_of(options, connection->connection->target().answer_at);
    ATOLL_C_TRY(call);
    ATOLL_C_TRY(connection->connection->session());
    *scan = new AtollScan{
        Scan(connection->connection, std::string(*name), *read, limit_of(range), *call)};
    return ATOLL_OK;
  });
}

atoll_status atoll_scan_next(atoll_scan* scan, atoll_bytes* key, atoll_bytes* value,
                             uint64_t* version) {
  return guarded([&]() -> atoll_status {
    if (scan == nullptr) return record_status(null_argument("scan").error());
    const auto row = scan->scan.next();
    ATOLL_C_TRY(row);
    if (key != nullptr) *key = atoll_make_bytes(row->key.data(), row->key.size());
    if (value != nullptr) *value = atoll_make_bytes(row->value.data(), row->value.size());
    if (version != nullptr) *version = row->version;
    return ATOLL_OK;
  });
}

void atoll_scan_free(atoll_scan* scan) { delete scan; }
