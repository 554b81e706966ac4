#include "shared/c_client/transaction.h"

#include <utility>

#include "shared/base/check.h"

namespace atolldb::c_client {
namespace {

/// Why a commit has failed. A failed comparison, or a conflict that the node could not resolve, is
/// a conflict of the transaction.
Failure commit_failure(const KvFailure& failure) {
  DCHECK(failure.status != Status::ok);
  Failure found = failure_of(failure);
  if (failure.status == Status::user_abort || is_retryable(failure.status)) {
    found.status = ATOLL_CONFLICT;
    found.message =
        "nothing was committed, because other transactions have changed what this one "
        "has read: run it again: " +
        found.message;
  }
  return found;
}

/// Returns the transaction, or why it cannot be used.
Checked<Transaction*> open_transaction(atoll_transaction* transaction) {
  if (transaction == nullptr) return null_argument("transaction");
  CHECK(transaction->transaction != nullptr);
  if (transaction->transaction->has_ended) {
    return fail(ATOLL_CLOSED, "the transaction has ended: begin another one");
  }
  return transaction->transaction.get();
}

/// Runs the body of a function that writes. `write` returns a KvOutcome<void>.
template <typename Write>
atoll_status write_within(atoll_transaction* transaction, const char* storage, atoll_bytes key,
                          atoll_bytes value, Write write) noexcept {
  return guarded([&]() -> atoll_status {
    const auto open = open_transaction(transaction);
    ATOLL_C_TRY(open);
    const auto name = storage_of(storage);
    ATOLL_C_TRY(name);
    const auto at = key_of(key);
    ATOLL_C_TRY(at);
    const auto bytes = value_of(value);
    ATOLL_C_TRY(bytes);
    const KvOutcome<void> written = write((*open)->kv, KvStorage{*name}, *at, *bytes);
    DCHECK((*open)->kv.operations() <= kMaxKvOperations);
    return written ? ATOLL_OK : record_status(failure_of(written.error()));
  });
}

Checked<std::shared_ptr<Transaction>> begin(const atoll_connection& connection,
                                            const CallOptions& options) {
  if (options.timeout || options.session.affinity != 0) {
    return fail(ATOLL_INVALID_ARGUMENT,
                "options: timeout_ms and affinity of a transaction are not supported: set them "
                "to 0");
  }
  const Isolation isolation = options.session.isolation.value_or(Isolation::serializable);
  const uint32_t snapshot = options.session.snapshot;
  if (isolation == Isolation::snapshot ||
      (isolation == Isolation::snapshot_read_only && snapshot == 0)) {
    return fail(ATOLL_OPERATION_NOT_SUPPORTED,
                "options.isolation: a transaction is serializable, or it is snapshot_read_only "
                "with the id of a snapshot");
  }
  DCHECK(snapshot == 0 || isolation == Isolation::snapshot_read_only);
  auto session = connection.connection->session();
  if (!session) return std::unexpected(std::move(session).error());
  CHECK(*session != nullptr);
  return std::make_shared<Transaction>(*std::move(session), snapshot, options.session.answer_at);
}

}  // namespace

Failure failure_of(const KvFailure& failure) {
  CHECK(failure.status != Status::ok);
  return {status_of(failure.status), failure.message};
}

}  // namespace atolldb::c_client

using namespace atolldb;
using namespace atolldb::c_client;

atoll_status atoll_begin(atoll_connection* connection, const atoll_options* options,
                         atoll_transaction** transaction) {
  return guarded([&]() -> atoll_status {
    if (transaction == nullptr) return record_status(null_argument("transaction").error());
    *transaction = nullptr;
    if (connection == nullptr) return record_status(null_argument("connection").error());
    const auto call = options_of(options, connection->connection->target().answer_at);
    ATOLL_C_TRY(call);
    auto begun = begin(*connection, *call);
    ATOLL_C_TRY(begun);
    *transaction = new AtollTransaction{*std::move(begun)};
    DCHECK((*transaction)->transaction->kv.operations() == 0);
    return ATOLL_OK;
  });
}

atoll_status atoll_transaction_get(atoll_transaction* transaction, const char* storage,
                                   atoll_bytes key, atoll_result** result) {
  return guarded([&]() -> atoll_status {
    if (result != nullptr) *result = nullptr;
    const auto open = open_transaction(transaction);
    if (!open) return finish(outcome_of(open.error()), result);
    const auto name = storage_of(storage);
    if (!name) return finish(outcome_of(name.error()), result);
    const auto at = key_of(key);
    if (!at) return finish(outcome_of(at.error()), result);
    auto record = (*open)->kv.get({*name}, *at);
    if (!record) return finish(outcome_of(failure_of(record.error())), result);
    Outcome outcome;
    outcome.reply.status = Status::ok;
    outcome.reply.answered_at = AnswerAt::precommitted;  // the commit waits for durability
    outcome.reply.incarnation = (*open)->session->client().incarnation();
    KvResultView view;
    if (*record) {
      outcome.reply.output = **std::move(record);
      view.value = outcome.reply.output;
    } else {
      outcome.status = ATOLL_NOT_FOUND;
      view.status = Status::not_found;
    }
    DCHECK(view.value.size() <= kMaxKvValueBytes);
    outcome.results.push_back(std::move(view));
    return finish(std::move(outcome), result);
  });
}

atoll_status atoll_transaction_put(atoll_transaction* transaction, const char* storage,
                                   atoll_bytes key, atoll_bytes value) {
  return write_within(transaction, storage, key, value,
                      [](KvTransaction& kv, KvStorage place, KvBytes at, KvBytes bytes) {
                        return kv.put(place, at, bytes);
                      });
}

atoll_status atoll_transaction_put_at(atoll_transaction* transaction, const char* storage,
                                      atoll_bytes key, uint32_t offset, atoll_bytes value) {
  return write_within(transaction, storage, key, value,
                      [offset](KvTransaction& kv, KvStorage place, KvBytes at, KvBytes bytes) {
                        return kv.put_at(place, at, offset, bytes);
                      });
}

atoll_status atoll_transaction_insert(atoll_transaction* transaction, const char* storage,
                                      atoll_bytes key, atoll_bytes value) {
  return write_within(transaction, storage, key, value,
                      [](KvTransaction& kv, KvStorage place, KvBytes at, KvBytes bytes) {
                        return kv.insert(place, at, bytes);
                      });
}

atoll_status atoll_transaction_delete(atoll_transaction* transaction, const char* storage,
                                      atoll_bytes key) {
  return write_within(
      transaction, storage, key, atoll_bytes{},
      [](KvTransaction& kv, KvStorage place, KvBytes at, KvBytes) { return kv.erase(place, at); });
}

atoll_status atoll_transaction_add(atoll_transaction* transaction, const char* storage,
                                   atoll_bytes key, int number, const void* delta,
                                   uint32_t offset) {
  return guarded([&]() -> atoll_status {
    const auto bytes = delta_of(number, delta);
    ATOLL_C_TRY(bytes);
    return write_within(transaction, storage, key, atoll_make_bytes(bytes->data(), bytes->size()),
                        [&](KvTransaction& kv, KvStorage place, KvBytes at, KvBytes value) {
                          return kv.add(place, at, static_cast<KvNumber>(number), value, offset);
                        });
  });
}

atoll_status atoll_transaction_append(atoll_transaction* transaction, const char* storage,
                                      atoll_bytes value) {
  return write_within(transaction, storage, atoll_bytes{}, value,
                      [](KvTransaction& kv, KvStorage place, KvBytes, KvBytes bytes) {
                        return kv.append(place, bytes);
                      });
}

atoll_status atoll_transaction_scan(atoll_transaction* transaction, const char* storage,
                                    const atoll_range* range, atoll_scan** scan) {
  return guarded([&]() -> atoll_status {
    if (scan == nullptr) return record_status(null_argument("scan").error());
    *scan = nullptr;
    ATOLL_C_TRY(open_transaction(transaction));
    const auto name = storage_of(storage);
    ATOLL_C_TRY(name);
    const auto read = range_of(range);
    ATOLL_C_TRY(read);
    *scan =
        new AtollScan{Scan(transaction->transaction, std::string(*name), *read, limit_of(range))};
    return ATOLL_OK;
  });
}

atoll_status atoll_commit(atoll_transaction* transaction, atoll_result** result) {
  return guarded([&]() -> atoll_status {
    if (result != nullptr) *result = nullptr;
    const auto open = open_transaction(transaction);
    if (!open) return finish(outcome_of(open.error()), result);
    Transaction& ended = **open;
    DCHECK(!ended.has_ended);
    ended.has_ended = true;
    const auto committed = ended.kv.commit(ended.answer_at);
    if (!committed) return finish(outcome_of(commit_failure(committed.error())), result);
    Outcome outcome;
    outcome.reply.status = Status::ok;
    outcome.reply.answered_at = ended.answer_at;
    outcome.reply.commit_epoch = committed->epoch;
    outcome.reply.commit_version = committed->version;
    outcome.reply.incarnation = ended.session->client().incarnation();
    return finish(std::move(outcome), result);
  });
}

void atoll_abort(atoll_transaction* transaction) {
  // The writes are only in the client, so the node needs no message.
  if (transaction != nullptr) transaction->transaction->has_ended = true;
}

void atoll_transaction_free(atoll_transaction* transaction) {
  atoll_abort(transaction);
  delete transaction;
}
