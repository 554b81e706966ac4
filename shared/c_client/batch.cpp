// Batches, and single operations, which are batches of one operation.
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/c_client/request.h"

namespace atolldb::c_client {
namespace {

/// Checks that a request has room for one more operation with `bytes` bytes of names and data.
Checked<void> check_room(const KvRequest& request, size_t bytes) {
  DCHECK(request.count() <= kMaxKvOperations);
  if (request.count() == kMaxKvOperations) {
    return fail(ATOLL_TRANSACTION_TOO_LARGE,
                "batch: has " + std::to_string(kMaxKvOperations) + " operations, the most");
  }
  const size_t total = request.bytes().size() + sizeof(KvOperation) + bytes;
  if (total > kMaxKvRequestBytes) {
    return fail(ATOLL_PAYLOAD_TOO_LONG, "batch: would have " + std::to_string(total) +
                                            " bytes, more than " +
                                            std::to_string(kMaxKvRequestBytes));
  }
  return {};
}

Checked<void> add_get(KvRequest& request, const char* storage, atoll_bytes key) {
  ATOLL_ASSIGN(const std::string_view name, storage_of(storage));
  ATOLL_ASSIGN(const KvBytes at, key_of(key));
  ATOLL_TRY(check_room(request, name.size() + at.size()));
  request.get(name, at);
  return {};
}

/// Adds an operation that takes a key and a value. `add` puts it into the request.
template <typename Add>
Checked<void> add_with_value(KvRequest& request, const char* storage, atoll_bytes key,
                             atoll_bytes value, Add add) {
  ATOLL_ASSIGN(const std::string_view name, storage_of(storage));
  ATOLL_ASSIGN(const KvBytes at, key_of(key));
  ATOLL_ASSIGN(const KvBytes bytes, value_of(value));
  ATOLL_TRY(check_room(request, name.size() + at.size() + bytes.size()));
  [[maybe_unused]] const uint32_t count = request.count();
  add(name, at, bytes);
  DCHECK(request.count() == count + 1 && !request.bytes().empty());
  return {};
}

Checked<void> add_put(KvRequest& request, const char* storage, atoll_bytes key, uint32_t offset,
                      atoll_bytes value) {
  return add_with_value(request, storage, key, value,
                        [&](std::string_view name, KvBytes at, KvBytes bytes) {
                          request.put(name, at, bytes, offset);
                        });
}

Checked<void> add_insert(KvRequest& request, const char* storage, atoll_bytes key,
                         atoll_bytes value, bool require) {
  return add_with_value(request, storage, key, value,
                        [&](std::string_view name, KvBytes at, KvBytes bytes) {
                          request.insert(name, at, bytes, require);
                        });
}

Checked<void> add_delete(KvRequest& request, const char* storage, atoll_bytes key, bool require) {
  return add_with_value(
      request, storage, key, atoll_bytes{},
      [&](std::string_view name, KvBytes at, KvBytes) { request.erase(name, at, require); });
}

Checked<void> add_addition(KvRequest& request, const char* storage, atoll_bytes key, int number,
                           const void* delta, uint32_t offset, bool returns_value) {
  ATOLL_ASSIGN(const KvBytes bytes, delta_of(number, delta));
  return add_with_value(request, storage, key, atoll_make_bytes(bytes.data(), bytes.size()),
                        [&](std::string_view name, KvBytes at, KvBytes value) {
                          DCHECK(value.size() == bytes.size());
                          request.add(name, at, static_cast<KvNumber>(number), value, offset,
                                      returns_value);
                        });
}

Checked<void> add_append(KvRequest& request, const char* storage, atoll_bytes value) {
  return add_with_value(request, storage, atoll_bytes{}, value,
                        [&](std::string_view name, KvBytes key, KvBytes bytes) {
                          DCHECK(key.empty());
                          request.append(name, bytes);
                        });
}

Checked<void> add_scan(KvRequest& request, const char* storage, const atoll_range* range) {
  ATOLL_ASSIGN(const std::string_view name, storage_of(storage));
  ATOLL_ASSIGN(KvScan scan, range_of(range));
  const uint64_t limit = limit_of(range);
  if (limit > kMaxKvScanRows) {
    return fail(ATOLL_INVALID_ARGUMENT, "range.limit: " + std::to_string(limit) +
                                            " rows are more than " +
                                            std::to_string(kMaxKvScanRows) + " of a batch");
  }
  scan.limit = static_cast<uint32_t>(limit);
  ATOLL_TRY(check_room(request, name.size() + scan.low.size() + scan.high.size()));
  request.scan(name, scan);
  return {};
}

/// Runs the body of a function that adds an operation to a batch.
template <typename Add>
atoll_status extend(atoll_batch* batch, Add add) noexcept {
  return guarded([&]() -> atoll_status {
    if (batch == nullptr) return record_status(null_argument("batch").error());
    ATOLL_C_TRY(add(batch->request));
    return ATOLL_OK;
  });
}

/// Sends a request with one operation or more, and finishes the call.
atoll_status run_now(atoll_connection* connection, const Request& request,
                     const atoll_options* options, atoll_result** result) {
  DCHECK(connection != nullptr && !request.procedure.empty());
  const auto call = options_of(options, connection->connection->target().answer_at);
  if (!call) return finish(outcome_of(call.error()), result);
  const auto session = connection->connection->session();
  if (!session) return finish(outcome_of(session.error()), result);
  return finish(send(**session, request, *call), result);
}

/// Runs the body of a function for a single operation. Its status is that of the operation.
template <typename Add>
atoll_status run_single(atoll_connection* connection, const atoll_options* options,
                        atoll_result** result, Add add) noexcept {
  return guarded([&]() -> atoll_status {
    if (result != nullptr) *result = nullptr;
    if (connection == nullptr)
      return finish(outcome_of(null_argument("connection").error()), result);
    KvRequest kv;
    const Checked<void> added = add(kv);
    if (!added) return finish(outcome_of(added.error()), result);
    DCHECK(kv.count() == 1);
    const auto call = options_of(options, connection->connection->target().answer_at);
    if (!call) return finish(outcome_of(call.error()), result);
    const auto session = connection->connection->session();
    if (!session) return finish(outcome_of(session.error()), result);
    Outcome outcome = send(**session, kv_request_of(kv), *call);
    if (outcome.status == ATOLL_OK && !call->only_sends) {
      CHECK(outcome.results.size() == 1);
      outcome.status = status_of(outcome.results.front().status);
    }
    return finish(std::move(outcome), result);
  });
}

}  // namespace
}  // namespace atolldb::c_client

using namespace atolldb;
using namespace atolldb::c_client;

atoll_status atoll_batch_new(atoll_batch** batch) {
  return guarded([&]() -> atoll_status {
    if (batch == nullptr) return record_status(null_argument("batch").error());
    *batch = nullptr;
    *batch = new AtollBatch();
    DCHECK((*batch)->request.count() == 0);
    return ATOLL_OK;
  });
}

void atoll_batch_free(atoll_batch* batch) { delete batch; }

void atoll_batch_clear(atoll_batch* batch) {
  if (batch == nullptr) return;
  guarded([&] {
    batch->request.clear();
    return ATOLL_OK;
  });
}

size_t atoll_batch_count(const atoll_batch* batch) {
  return batch == nullptr ? 0 : batch->request.count();
}

atoll_status atoll_batch_get(atoll_batch* batch, const char* storage, atoll_bytes key) {
  return extend(batch, [&](KvRequest& request) { return add_get(request, storage, key); });
}

atoll_status atoll_batch_put(atoll_batch* batch, const char* storage, atoll_bytes key,
                             atoll_bytes value) {
  return extend(batch,
                [&](KvRequest& request) { return add_put(request, storage, key, 0, value); });
}

atoll_status atoll_batch_put_at(atoll_batch* batch, const char* storage, atoll_bytes key,
                                uint32_t offset, atoll_bytes value) {
  return extend(batch,
                [&](KvRequest& request) { return add_put(request, storage, key, offset, value); });
}

atoll_status atoll_batch_insert(atoll_batch* batch, const char* storage, atoll_bytes key,
                                atoll_bytes value) {
  return extend(batch,
                [&](KvRequest& request) { return add_insert(request, storage, key, value, true); });
}

atoll_status atoll_batch_delete(atoll_batch* batch, const char* storage, atoll_bytes key) {
  return extend(batch, [&](KvRequest& request) { return add_delete(request, storage, key, true); });
}

atoll_status atoll_batch_add(atoll_batch* batch, const char* storage, atoll_bytes key, int number,
                             const void* delta, uint32_t offset, int returns_value) {
  return extend(batch, [&](KvRequest& request) {
    return add_addition(request, storage, key, number, delta, offset, returns_value != 0);
  });
}

atoll_status atoll_batch_append(atoll_batch* batch, const char* storage, atoll_bytes value) {
  return extend(batch, [&](KvRequest& request) { return add_append(request, storage, value); });
}

atoll_status atoll_batch_check(atoll_batch* batch, const char* storage, atoll_bytes key,
                               atoll_bytes value) {
  return extend(batch, [&](KvRequest& request) {
    return add_with_value(request, storage, key, value,
                          [&](std::string_view name, KvBytes at, KvBytes bytes) {
                            request.compare(name, at, bytes);
                          });
  });
}

atoll_status atoll_batch_check_absent(atoll_batch* batch, const char* storage, atoll_bytes key) {
  return extend(batch, [&](KvRequest& request) {
    return add_with_value(
        request, storage, key, atoll_bytes{},
        [&](std::string_view name, KvBytes at, KvBytes) { request.compare_absent(name, at); });
  });
}

atoll_status atoll_batch_scan(atoll_batch* batch, const char* storage, const atoll_range* range) {
  return extend(batch, [&](KvRequest& request) { return add_scan(request, storage, range); });
}

atoll_status atoll_batch_run(atoll_connection* connection, const atoll_batch* batch,
                             const atoll_options* options, atoll_result** result) {
  return guarded([&]() -> atoll_status {
    if (result != nullptr) *result = nullptr;
    if (connection == nullptr)
      return finish(outcome_of(null_argument("connection").error()), result);
    const auto request = batch_request_of(batch);
    if (!request) return finish(outcome_of(request.error()), result);
    return run_now(connection, *request, options, result);
  });
}

atoll_status atoll_call(atoll_connection* connection, const char* procedure, atoll_bytes input,
                        const atoll_options* options, atoll_result** result) {
  return guarded([&]() -> atoll_status {
    if (result != nullptr) *result = nullptr;
    if (connection == nullptr)
      return finish(outcome_of(null_argument("connection").error()), result);
    const auto request = procedure_request_of(procedure, input);
    if (!request) return finish(outcome_of(request.error()), result);
    return run_now(connection, *request, options, result);
  });
}

atoll_status atoll_get(atoll_connection* connection, const char* storage, atoll_bytes key,
                       const atoll_options* options, atoll_result** result) {
  return run_single(connection, options, result,
                    [&](KvRequest& request) { return add_get(request, storage, key); });
}

atoll_status atoll_put(atoll_connection* connection, const char* storage, atoll_bytes key,
                       atoll_bytes value, const atoll_options* options, atoll_result** result) {
  return run_single(connection, options, result,
                    [&](KvRequest& request) { return add_put(request, storage, key, 0, value); });
}

atoll_status atoll_put_at(atoll_connection* connection, const char* storage, atoll_bytes key,
                          uint32_t offset, atoll_bytes value, const atoll_options* options,
                          atoll_result** result) {
  return run_single(connection, options, result, [&](KvRequest& request) {
    return add_put(request, storage, key, offset, value);
  });
}

atoll_status atoll_insert(atoll_connection* connection, const char* storage, atoll_bytes key,
                          atoll_bytes value, const atoll_options* options, atoll_result** result) {
  return run_single(connection, options, result, [&](KvRequest& request) {
    return add_insert(request, storage, key, value, false);
  });
}

atoll_status atoll_delete(atoll_connection* connection, const char* storage, atoll_bytes key,
                          const atoll_options* options, atoll_result** result) {
  return run_single(connection, options, result,
                    [&](KvRequest& request) { return add_delete(request, storage, key, false); });
}

atoll_status atoll_add(atoll_connection* connection, const char* storage, atoll_bytes key,
                       int number, const void* delta, uint32_t offset, const atoll_options* options,
                       atoll_result** result) {
  return run_single(connection, options, result, [&](KvRequest& request) {
    return add_addition(request, storage, key, number, delta, offset, false);
  });
}

atoll_status atoll_append(atoll_connection* connection, const char* storage, atoll_bytes value,
                          const atoll_options* options, atoll_result** result) {
  return run_single(connection, options, result,
                    [&](KvRequest& request) { return add_append(request, storage, value); });
}
