#include "ops/demo/demo_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "bench/common/random.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "shared/memory/epoch_stages.h"

namespace atolldb::demo {
namespace {

/// The number of requests in flight per session. It bounds a burst after a pause of the client.
constexpr uint32_t kMostInFlight = 64;
constexpr std::chrono::milliseconds kTick{1};
constexpr int64_t kLargestAmount = 100;

KvBytes bytes_of(const int64_t& number) { return std::as_bytes(std::span(&number, 1)); }

/// Stores the accounts with their first balances.
Result<void> store_accounts(SessionClient& session) {
  for (uint32_t first = 0; first < kAccountCount; first += kMaxKvOperations) {
    KvRequest request;
    const uint32_t end = std::min(first + kMaxKvOperations, kAccountCount);
    for (uint32_t number = first; number < end; ++number) {
      request.put(kAccounts, kv_bytes(account_key(number)), bytes_of(kFirstBalance));
    }
    const SessionReply reply = session.call("kv.txn", request.bytes());
    if (reply.status == Status::ok) continue;
    return make_error(ExitCode::failed, fmt::format("demo: the accounts cannot be stored: {}: {}",
                                                    to_string(reply.status), reply.message));
  }
  return {};
}

}  // namespace

std::string account_key(uint32_t number) {
  CHECK(number < kAccountCount);
  return fmt::format("account-{:03}", number);
}

Result<std::unique_ptr<Load>> Load::start(Cluster& cluster, uint32_t per_second) {
  CHECK(per_second > 0);
  for (const char* storage : {kAccounts, kTransfers}) {
    ATOLL_TRY(cluster.create_storage(storage, StorageType::mastertree));
  }
  auto load = std::unique_ptr<Load>(new Load(per_second));
  ATOLL_ASSIGN(load->auditor_, cluster.connect_session(0));
  ATOLL_TRY(store_accounts(*load->auditor_));
  for (uint32_t node = 0; node < cluster.node_count(); ++node) {
    ATOLL_ASSIGN(auto session, cluster.connect_session(node));
    load->sessions_.push_back(std::move(session));
  }
  for (uint32_t node = 0; node < cluster.node_count(); ++node) {
    load->threads_.emplace_back([own = load.get(), node, nodes = cluster.node_count()] {
      own->run(*own->sessions_[node], node, nodes);
    });
  }
  return load;
}

void Load::stop() {
  ends_.store(true, std::memory_order_relaxed);
  threads_.clear();  // joins
}

void Load::run(SessionClient& session, uint32_t node, uint32_t nodes) {
  bench::Random random(node + 1);
  const double per_ns = static_cast<double>(per_second_) / nodes * 1e-9;
  const uint64_t started_ns = monotonic_time_ns();
  uint64_t submitted = 0;
  while (!ends_.load(std::memory_order_relaxed)) {
    if (!session.is_open()) {
      is_alive_.store(false, std::memory_order_relaxed);
      break;
    }
    const auto due = static_cast<uint64_t>(
        static_cast<double>(ns_since(started_ns, monotonic_time_ns())) * per_ns);
    for (; submitted < due && session.in_flight() + 2 <= kMostInFlight; ++submitted) {
      submit_transfer(session, submitted * nodes + node, random.next());
      submit_read(session, random.next());
    }
    // Requests that a slow cluster could not take in time are not made up for.
    submitted = std::max(submitted, due - std::min<uint64_t>(due, kMostInFlight));
    if (session.dispatch(kTick) == 0) std::this_thread::sleep_for(kTick);
  }
  while (session.in_flight() != 0) session.dispatch(kTick);
}

void Load::submit_transfer(SessionClient& session, uint64_t number, uint64_t random) {
  const auto from = static_cast<uint32_t>(random % kAccountCount);
  const auto to =
      static_cast<uint32_t>((from + 1 + (random >> 16) % (kAccountCount - 1)) % kAccountCount);
  const auto amount = static_cast<int64_t>(1 + (random >> 32) % kLargestAmount);
  KvRequest request;
  request.add_i64(kAccounts, kv_bytes(account_key(from)), -amount);
  request.add_i64(kAccounts, kv_bytes(account_key(to)), amount);
  request.put(kTransfers, kv_bytes(fmt::format("transfer-{:05}", number % kKeptTransfers)),
              kv_bytes(fmt::format(R"({{"from":"{}","to":"{}","amount":{},"number":{}}})",
                                   account_key(from), account_key(to), amount, number)));
  const auto ticket = session.submit("kv.txn", request.bytes(), {},
                                     [this](SessionTicket, const SessionReply& reply) {
                                       record(reply.status, counts_.transfers);
                                     });
  if (!ticket) record(ticket.error(), counts_.transfers);
}

void Load::submit_read(SessionClient& session, uint64_t random) {
  KvRequest request;
  request.get(kAccounts, kv_bytes(account_key(static_cast<uint32_t>(random % kAccountCount))));
  const auto ticket = session.submit(
      "kv.get", request.bytes(), {},
      [this](SessionTicket, const SessionReply& reply) { record(reply.status, counts_.reads); });
  if (!ticket) record(ticket.error(), counts_.reads);
}

void Load::record(Status status, std::atomic<uint64_t>& count) {
  // Relaxed: statistics.
  (status == Status::ok ? count : counts_.failures).fetch_add(1, std::memory_order_relaxed);
}

std::optional<int64_t> Load::audit() {
  KvRequest request;
  request.scan(kAccounts, {});
  const SessionReply reply = auditor_->call("kv.scan", request.bytes());
  if (reply.status != Status::ok) return std::nullopt;
  const auto results = read_kv_reply(reply.output, request.bytes());
  if (!results || results->size() != 1 || results->front().status != Status::ok) {
    return std::nullopt;
  }
  const KvResultView& scan = results->front();
  int64_t sum = 0;
  for (const KvRowView& row : scan.rows) {
    int64_t balance = 0;
    if (row.value.size() != sizeof(balance)) return std::nullopt;
    std::memcpy(&balance, row.value.data(), sizeof(balance));
    sum += balance;
  }
  return sum;
}

}  // namespace atolldb::demo
