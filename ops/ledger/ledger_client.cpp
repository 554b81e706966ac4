#include "ops/ledger/ledger_client.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "shared/base/try.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"

namespace atolldb {
namespace {

constexpr uint32_t kSequenceBits = 48;

/// Returns the key in the storage. These keys have the order of the ledger's keys.
std::array<std::byte, 8> key_bytes(LedgerKey key) { return ordered_index_key(key); }

LedgerToken token_of(KvBytes value) {
  LedgerToken token = 0;
  if (value.size() == sizeof(token)) std::memcpy(&token, value.data(), sizeof(token));
  return token;
}

}  // namespace

Result<std::unique_ptr<LedgerClient>> LedgerClient::open(const LedgerClientOptions& options) {
  std::unique_ptr<LedgerClient> client(new LedgerClient(options));
  if (std::filesystem::exists(options.path)) {
    ATOLL_ASSIGN(const Ledger before, read_ledger(options.path));
    constexpr uint64_t kSequence = (uint64_t{1} << kSequenceBits) - 1;
    for (const auto& [token, transaction] : before) {
      client->next_ = std::max(client->next_, (token & kSequence) + 1);
    }
    // Skips one more token. A submission whose line was cut has used it, although that submission
    // was never sent.
    ++client->next_;
  }
  ATOLL_TRY(client->file_.open(options.path));
  return client;
}

void LedgerClient::note(LedgerToken token, const std::vector<LedgerKey>& reads,
                        const SessionReply& reply, const std::vector<std::byte>& request) {
  LedgerOutcome outcome;
  outcome.status = reply.status;
  outcome.answered_at = reply.answered_at;
  outcome.commit_epoch = reply.commit_epoch;
  outcome.version = reply.commit_version;
  outcome.incarnation = reply.incarnation;
  if (reply.status == Status::ok) {
    const auto results = read_kv_reply(reply.output, request);
    if (!results) {
      noted_ = make_error(ExitCode::failed, "ledger: an answer is not a reply to its request");
      return;
    }
    for (size_t i = 0; i < reads.size(); ++i) {
      const KvResultView& one = (*results)[i];
      if (one.status == Status::ok)
        outcome.reads[reads[i]] = {token_of(one.value), one.version};
      else
        outcome.reads[reads[i]] = {};
    }
  }
  const bool is_unknown = reply.status == Status::outcome_unknown;
  ++(reply.status == Status::ok ? counts_.ok : is_unknown ? counts_.unknown : counts_.failed);
  was_refused_ =
      was_refused_ || reply.status == Status::unavailable || reply.status == Status::recovering;
  const Result<void> written = file_.append(answer_line(token, outcome));
  if (!written) noted_ = written;
}

Result<void> LedgerClient::submit_one(SessionClient& session) {
  const LedgerToken token = (options_.client << kSequenceBits) | next_++;
  const bool reads_only = random_() % 100 < options_.read_only_percent;
  const size_t count = 2 + random_() % 3;
  std::vector<LedgerKey> keys;
  while (keys.size() < count) {
    const auto key = static_cast<LedgerKey>(random_() % options_.keys);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  // About half of the writers read first, so that both kinds of history are tested.
  const bool looks = reads_only || random_() % 2 == 0;
  KvRequest request;
  for (const LedgerKey key : keys) {
    if (looks) request.get(kLedgerStorage, key_bytes(key));
  }
  for (const LedgerKey key : keys) {
    if (!reads_only) {
      request.put(kLedgerStorage, key_bytes(key), std::as_bytes(std::span(&token, 1)));
    }
  }
  Result<void> noted =
      file_.append(submit_line(token, reads_only ? std::vector<LedgerKey>() : keys));
  if (!noted) return noted;
  SessionOptions how;
  if (random_() % 100 < options_.precommitted_percent) how.answer_at = AnswerAt::precommitted;
  std::vector<std::byte> bytes(request.bytes().begin(), request.bytes().end());
  const auto sent = session.submit(
      "kv.txn", bytes, how,
      [this, token, reads = looks ? keys : std::vector<LedgerKey>(), bytes](
          SessionTicket, const SessionReply& reply) { note(token, reads, reply, bytes); });
  ++counts_.submitted;
  if (!sent) {
    SessionReply refused;
    refused.status = sent.error();
    note(token, {}, refused, bytes);
  }
  return {};
}

Result<LedgerClientCounts> LedgerClient::run(SessionClient& session,
                                             const std::function<bool()>& stop,
                                             uint64_t max_transactions) {
  counts_ = {};
  was_refused_ = false;
  while (!stop() && !was_refused_ && noted_ && counts_.unknown == 0 &&
         (max_transactions == 0 || counts_.submitted < max_transactions)) {
    if (session.in_flight() >= options_.in_flight) {
      session.dispatch(std::chrono::milliseconds(100));
      continue;
    }
    ATOLL_TRY(submit_one(session));
  }
  while (session.in_flight() != 0) session.dispatch(SessionClient::kForEver);
  ATOLL_TRY(noted_);
  return counts_;
}

Result<LedgerClientCounts> LedgerClient::run_over_restarts(const Connect& connect,
                                                           const std::function<bool()>& stop,
                                                           uint64_t max_transactions) {
  LedgerClientCounts all;
  while (!stop() && (max_transactions == 0 || all.submitted < max_transactions)) {
    const auto session = connect();
    if (!session && stop()) break;
    if (!session) return std::unexpected(session.error());
    ++all.sessions;
    const uint64_t left = max_transactions == 0 ? 0 : max_transactions - all.submitted;
    ATOLL_ASSIGN(const auto counts, run(**session, stop, left));
    all.submitted += counts.submitted;
    all.ok += counts.ok;
    all.failed += counts.failed;
    all.unknown += counts.unknown;
  }
  return all;
}

Result<LedgerState> read_ledger_state(SessionClient& session) {
  LedgerState state;
  KvScan range;
  std::array<std::byte, 8> next{};
  for (;;) {
    KvRequest request;
    request.scan(kLedgerStorage, range);
    const SessionReply reply = session.call("kv.scan", request.bytes());
    const auto results = read_kv_reply(reply.output, request.bytes());
    if (reply.status != Status::ok || !results) {
      return make_error(ExitCode::failed,
                        "ledger: the storage \"" + std::string(kLedgerStorage) +
                            "\" cannot be read: " + std::string(to_string(reply.status)) + " " +
                            reply.message);
    }
    LedgerKey last = 0;
    for (const KvRowView& row : results->front().rows) {
      uint64_t index = 0;
      if (row.key.size() != sizeof(index)) {
        return make_error(ExitCode::corruption, "ledger: a key of the storage has " +
                                                    std::to_string(row.key.size()) + " bytes");
      }
      std::memcpy(&index, row.key.data(), sizeof(index));
      last = static_cast<LedgerKey>(__builtin_bswap64(index));
      state[last] = {token_of(row.value), row.version};
    }
    if (!results->front().has_more) return state;
    next = key_bytes(last + 1);
    range.low = next;
    range.has_low = true;
  }
}

}  // namespace atolldb
