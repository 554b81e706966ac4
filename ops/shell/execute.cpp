#include "ops/shell/execute.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "ops/shell/value_format.h"
#include "shared/base/try.h"

namespace atolldb::shell {
namespace {

using Bytes = std::vector<std::byte>;

/// Names statements that run as one request, in errors.
constexpr std::string_view kTogether = "txn";
/// Part of a reply that the rows of a scan may fill when an array is read record by record.
constexpr uint64_t kArrayReplyBytes = kMaxKvReplyBytes / 2;

ExitCode exit_code_of(Status status) {
  switch (status) {
    case Status::not_found:
    case Status::already_exists:
    case Status::user_abort:
      return ExitCode::condition;
    case Status::invalid_argument:
    case Status::key_too_long:
    case Status::payload_too_long:
    case Status::out_of_range:
    case Status::operation_not_supported:
    case Status::transaction_too_large:
      return ExitCode::usage;
    case Status::recovering:
      return ExitCode::recovering;
    case Status::outcome_unknown:
    case Status::cluster_failed:
      return ExitCode::coordinator_unreachable;
    default:
      return ExitCode::failed;
  }
}

/// Returns what the user can do about a status. Empty: the message says it, or nothing helps.
std::string_view advice_for(Status status) {
  switch (status) {
    case Status::storage_not_found:
      return "`atoll storage ls`, or `storages` in the shell, lists them";
    case Status::unavailable:
    case Status::recovering:
      return "it had no effect: try again later, `atoll status` shows the state of the cluster";
    case Status::outcome_unknown:
      return "the session has ended: it may have committed: read the records to find out";
    case Status::read_conflict:
    case Status::write_conflict:
    case Status::phantom:
    case Status::deadline_exceeded:
    case Status::volatile_pool_exhausted:
      return "nothing was committed: try again";
    case Status::snapshot_not_found:
      return "a newer snapshot has replaced it, or it never existed: `atoll snapshot pin` keeps "
             "one";
    default:
      return "";
  }
}

SessionOptions session_options(const RunOptions& options) {
  SessionOptions session{.answer_at = options.answer_at};
  session.isolation = options.isolation;
  session.snapshot = options.snapshot;
  return session;
}

KvRecord record_of(const KvRowView& row) {
  return {Bytes(row.key.begin(), row.key.end()), Bytes(row.value.begin(), row.value.end()),
          row.version};
}

/// A request with its reply, and the results, which point into the reply.
struct Answered {
  SessionReply reply;
  std::vector<KvResultView> results;
};

/// Sends a request of kv.txn and waits for the reply, or for an interrupt by the user.
Result<SessionReply> call_until_interrupt(const Connection& connection, ClientTransport& session,
                                          const KvRequest& request, const RunOptions& options,
                                          const std::string& what) {
  constexpr std::chrono::milliseconds kInterruptCheck{100};
  const auto ticket = session.submit("kv.txn", request.bytes(), session_options(options));
  if (!ticket) return std::unexpected(error_of(what, ticket.error(), ""));
  for (;;) {
    auto reply = session.wait_for(*ticket, kInterruptCheck);
    if (reply) return *std::move(reply);
    if (connection.is_interrupted()) {
      return make_error(ExitCode::failed,
                        what + ": interrupted: a write may still be committed: read the record");
    }
  }
}

Result<Answered> send(Connection& connection, const KvRequest& request, const RunOptions& options,
                      const std::string& what) {
  ATOLL_ASSIGN(ClientTransport * session, connection.session());
  Answered answered;
  ATOLL_ASSIGN(answered.reply, call_until_interrupt(connection, *session, request, options, what));
  if (answered.reply.status != Status::ok) {
    return std::unexpected(error_of(what, answered.reply.status, answered.reply.message));
  }
  auto results = read_kv_reply(answered.reply.output, request.bytes());
  if (!results || results->size() != request.count()) {
    return make_error(ExitCode::failed, what +
                                            ": the reply does not fit the request: use programs "
                                            "of one build");
  }
  answered.results = *std::move(results);
  for (const KvResultView& result : answered.results) {
    if (result.status != Status::ok) return std::unexpected(error_of(what, result.status, ""));
  }
  return answered;
}

StatementResult result_of(const BoundStatement& statement, const KvResultView& result) {
  StatementResult done;
  const bool has_value =
      statement.code == KvCode::get || (statement.code == KvCode::add && statement.returns_value);
  if (has_value) done.value = Bytes(result.value.begin(), result.value.end());
  if (statement.code == KvCode::get) done.version = result.version;
  done.has_more = result.has_more;
  return done;
}

/// Moves the start of the rest of a scan past a row. Returns false if no key can follow.
bool continue_after(BoundStatement& rest, KvBytes key) {
  if (rest.reverse) {
    rest.high.assign(key.begin(), key.end());
    rest.has_high = true;
    return !rest.high.empty();
  }
  rest.low = key_after(key);
  rest.has_low = true;
  return !rest.low.empty();
}

/// The options of a scan over several replies: all of them read the same snapshot.
Result<RunOptions> options_of_scan(Connection& connection, const RunOptions& options) {
  RunOptions scan = options;
  if (options.isolation == Isolation::snapshot_read_only && options.snapshot == 0) {
    ATOLL_ASSIGN(scan.snapshot, connection.newest_snapshot());
  }
  return scan;
}

std::unexpected<Error> interrupted(const BoundStatement& statement) {
  return make_error(ExitCode::failed, name_of(statement) + ": interrupted: more rows follow");
}

Result<RunResult> scan_tree(Connection& connection, const BoundStatement& statement,
                            const RunOptions& options, const OnRow& on_row) {
  ATOLL_ASSIGN(const RunOptions scan, options_of_scan(connection, options));
  RunResult done;
  BoundStatement rest = statement;
  uint64_t left = statement.limit == 0 ? UINT64_MAX : statement.limit;
  for (;;) {
    KvRequest request;
    rest.add_to(request, static_cast<uint32_t>(std::min<uint64_t>(left, kMaxKvScanRows)));
    ATOLL_ASSIGN(const Answered answered, send(connection, request, scan, name_of(statement)));
    const KvResultView& result = answered.results.front();
    done.commit_epoch = std::max(done.commit_epoch, answered.reply.commit_epoch);
    done.results.assign(1, {.value = {}, .has_more = result.has_more});
    for (const KvRowView& row : result.rows) {
      if (!on_row(record_of(row))) return done;
    }
    left -= result.rows.size();
    if (!result.has_more || left == 0 || result.rows.empty()) return done;
    if (connection.is_interrupted()) return interrupted(statement);
    if (!continue_after(rest, result.rows.back().key)) return done;
  }
}

/// Returns the index that a bound of an array scan means: the first one at or after the key.
uint64_t index_at(const Bytes& key) {
  const uint64_t index = array_index(key);
  return key.size() > sizeof(index) && index != UINT64_MAX ? index + 1 : index;
}

Result<RunResult> scan_array(Connection& connection, const BoundStatement& statement,
                             const RunOptions& options, const OnRow& on_row) {
  ATOLL_ASSIGN(const RunOptions scan, options_of_scan(connection, options));
  const uint64_t end = statement.storage.record_count;
  uint64_t low = statement.has_low ? std::min(index_at(statement.low), end) : 0;
  uint64_t high = statement.has_high ? std::min(index_at(statement.high), end) : end;
  const uint64_t rows_per_reply = std::min<uint64_t>(
      kMaxKvOperations, kArrayReplyBytes / (statement.storage.payload_bytes + 16));
  uint64_t left = statement.limit == 0 ? UINT64_MAX : statement.limit;
  RunResult done;
  done.results.assign(1, {});
  while (low < high && left != 0) {
    const uint64_t rows = std::min({rows_per_reply, high - low, left});
    const uint64_t first = statement.reverse ? high - rows : low;
    KvRequest request;
    for (uint64_t i = 0; i < rows; ++i) {
      request.get(statement.storage.name, ordered_index_key(first + i), true);
    }
    ATOLL_ASSIGN(const Answered answered, send(connection, request, scan, name_of(statement)));
    done.commit_epoch = std::max(done.commit_epoch, answered.reply.commit_epoch);
    for (uint64_t i = 0; i < rows; ++i) {
      const uint64_t at = statement.reverse ? rows - 1 - i : i;
      const KvResultView& result = answered.results[at];
      const auto key = ordered_index_key(first + at);
      KvRecord record{Bytes(key.begin(), key.end()), {}, result.version};
      if (!statement.keys_only) record.value.assign(result.value.begin(), result.value.end());
      if (!on_row(record)) return done;
    }
    (statement.reverse ? high : low) = statement.reverse ? first : first + rows;
    left -= rows;
    if (low < high && left != 0 && connection.is_interrupted()) return interrupted(statement);
  }
  done.results.front().has_more = low < high;
  return done;
}

template <typename Value>
std::unexpected<Error> failed(const BoundStatement& statement, const KvOutcome<Value>& outcome) {
  return std::unexpected(
      error_of(name_of(statement), outcome.error().status, outcome.error().message));
}

Result<StatementResult> get_within(KvTransaction& transaction, const BoundStatement& statement,
                                   KvStorage storage) {
  auto record = transaction.get(storage, statement.key);
  if (!record) return failed(statement, record);
  if (statement.code == KvCode::compare) {
    const bool holds = statement.is_absent ? !*record : *record && **record == statement.value;
    if (!holds) {
      return std::unexpected(error_of(name_of(statement), Status::user_abort,
                                      !*record              ? "the key does not exist"
                                      : statement.is_absent ? "the key exists"
                                                            : "the value differs"));
    }
    return StatementResult{};
  }
  if (!*record) return std::unexpected(error_of(name_of(statement), Status::not_found, ""));
  return StatementResult{.value = **std::move(record)};
}

Result<StatementResult> scan_within(KvTransaction& transaction, const BoundStatement& statement,
                                    KvStorage storage, const OnRow& on_row) {
  BoundStatement rest = statement;
  uint64_t left = statement.limit == 0 ? UINT64_MAX : statement.limit;
  for (;;) {
    const auto limit = static_cast<uint32_t>(std::min<uint64_t>(left, kMaxKvScanRows));
    const auto found = transaction.scan(storage, rest.range(limit));
    if (!found) return failed(statement, found);
    StatementResult done{.value = {}, .has_more = found->has_more};
    for (const KvRecord& row : found->rows) {
      if (!on_row(row)) return done;
    }
    left -= found->rows.size();
    if (!found->has_more || left == 0) return done;
    if (!continue_after(rest, found->rows.back().key)) return done;
  }
}

}  // namespace

Error error_of(const std::string& what, Status status, const std::string& message) {
  std::string text = what + ": ";
  // A message of kv.* names the operation, then the status. `what` already names a single one.
  const std::string name(to_string(status));
  const size_t named = what == kTogether ? std::string::npos : message.find("): ");
  const std::string why = named == std::string::npos ? message : message.substr(named + 3);
  text += why.contains(name) ? why : name + (why.empty() ? "" : ": " + why);
  const std::string_view advice = advice_for(status);
  if (!advice.empty()) text += ": " + std::string(advice);
  return {exit_code_of(status), std::move(text)};
}

std::string name_of(const BoundStatement& statement) {
  constexpr size_t kMost = 60;
  const std::string verb = statement.code == KvCode::erase ? "del"
                           : statement.code == KvCode::compare
                               ? "check"
                               : std::string(to_string(statement.code));
  std::string text = verb + " " + statement.storage.name;
  if (statement.key.empty()) return text;
  if (statement.storage.is_array() && statement.key.size() == 8) {
    return text + " " + std::to_string(index_at(statement.key));
  }
  const bool is_long = statement.key.size() > kMost;
  const KvBytes shown = KvBytes(statement.key).first(std::min(statement.key.size(), kMost));
  return text + " \"" + escape_text(shown) + (is_long ? "..." : "") + "\"";
}

Result<RunResult> run_statement(Connection& connection, const BoundStatement& statement,
                                const RunOptions& options, const OnRow& on_row) {
  if (statement.code == KvCode::scan) {
    return statement.storage.is_array() ? scan_array(connection, statement, options, on_row)
                                        : scan_tree(connection, statement, options, on_row);
  }
  KvRequest request;
  statement.add_to(request, 0);
  ATOLL_ASSIGN(const Answered answered, send(connection, request, options, name_of(statement)));
  return RunResult{{result_of(statement, answered.results.front())},
                   answered.reply.commit_epoch,
                   answered.reply.commit_version};
}

Result<RunResult> run_together(Connection& connection,
                               const std::vector<BoundStatement>& statements,
                               const RunOptions& options,
                               const std::function<bool(size_t, const KvRecord&)>& on_row) {
  KvRequest request;
  for (const BoundStatement& statement : statements) {
    statement.add_to(request,
                     static_cast<uint32_t>(std::min<uint64_t>(statement.limit, kMaxKvScanRows)));
  }
  ATOLL_ASSIGN(const Answered answered, send(connection, request, options, std::string(kTogether)));
  RunResult done{{}, answered.reply.commit_epoch, answered.reply.commit_version};
  for (size_t i = 0; i < statements.size(); ++i) {
    const KvResultView& result = answered.results[i];
    done.results.push_back(result_of(statements[i], result));
    for (const KvRowView& row : result.rows) {
      if (!on_row(i, record_of(row))) return done;
    }
  }
  return done;
}

Result<StatementResult> run_within(KvTransaction& transaction, const BoundStatement& statement,
                                   const OnRow& on_row) {
  const KvStorage storage{statement.storage.name, statement.storage.is_array()};
  KvOutcome<void> done;
  switch (statement.code) {
    case KvCode::get:
    case KvCode::compare:
      return get_within(transaction, statement, storage);
    case KvCode::scan:
      return scan_within(transaction, statement, storage, on_row);
    case KvCode::put:
      done = statement.offset == 0
                 ? transaction.put(storage, statement.key, statement.value)
                 : transaction.put_at(storage, statement.key, statement.offset, statement.value);
      break;
    case KvCode::insert:
      done = transaction.insert(storage, statement.key, statement.value);
      break;
    case KvCode::erase:
      done = transaction.erase(storage, statement.key);
      break;
    case KvCode::add: {
      if (statement.is_blind) {
        return std::unexpected(error_of(name_of(statement), Status::invalid_argument,
                                        "use --blind outside of begin and commit"));
      }
      if (statement.returns_value) {
        // Reads before it adds: if the read fails, nothing is added.
        const auto before = transaction.get(storage, statement.key);
        if (!before) return failed(statement, before);
        if (!*before) return std::unexpected(error_of(name_of(statement), Status::not_found, ""));
      }
      done = transaction.add(storage, statement.key, statement.number, statement.value,
                             statement.offset);
      if (!done || !statement.returns_value) break;
      auto record = transaction.get(storage, statement.key);
      if (!record) return failed(statement, record);
      if (!*record) return std::unexpected(error_of(name_of(statement), Status::not_found, ""));
      const size_t from = std::min<size_t>(statement.offset, (*record)->size());
      const size_t bytes = std::min<size_t>(statement.value.size(), (*record)->size() - from);
      const auto begin = (*record)->begin() + static_cast<ptrdiff_t>(from);
      return StatementResult{.value = Bytes(begin, begin + static_cast<ptrdiff_t>(bytes))};
    }
    default:
      done = transaction.append(storage, statement.value);
  }
  if (!done) return failed(statement, done);
  return StatementResult{};
}

}  // namespace atolldb::shell
