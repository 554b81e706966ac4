// atoll-ledger: a client that records the replies of the cluster in a file of its own.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "ops/ledger/ledger_check.h"
#include "ops/ledger/ledger_client.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Written only by the signal handler.
std::atomic<bool> is_told_to_stop{false};

void tell_to_stop(int) { is_told_to_stop.store(true, std::memory_order_relaxed); }

int report(const Error& error) {
  std::fprintf(stderr, "atoll-ledger: %s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

int run_client(const LedgerClient::Connect& connect, const LedgerClientOptions& options,
               double seconds, uint64_t transactions, bool reconnects) {
  auto client = LedgerClient::open(options);
  if (!client) return report(client.error());
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const auto stop = [&] {
    return is_told_to_stop.load(std::memory_order_relaxed) ||
           (seconds > 0 && std::chrono::steady_clock::now() >= end);
  };
  const auto run = [&]() -> Result<LedgerClientCounts> {
    if (reconnects) return (*client)->run_over_restarts(connect, stop, transactions);
    ATOLL_ASSIGN(const auto session, connect());
    return (*client)->run(*session, stop, transactions);
  };
  const Result<LedgerClientCounts> counts = run();
  if (!counts) return report(counts.error());
  std::printf("submitted %llu, ok %llu, failed %llu, outcome_unknown %llu\n",
              static_cast<unsigned long long>(counts->submitted),
              static_cast<unsigned long long>(counts->ok),
              static_cast<unsigned long long>(counts->failed),
              static_cast<unsigned long long>(counts->unknown));
  return 0;
}

int check(SessionClient& session, const std::vector<std::string>& files) {
  Ledger all;
  for (const std::string& file : files) {
    Result<Ledger> ledger = read_ledger(file);
    if (!ledger) return report(ledger.error());
    all.merge(*ledger);
    if (!ledger->empty()) {
      return report(
          {ExitCode::usage, file + ": a token of it is also in another file: give each client a "
                                   "different number"});
    }
  }
  const Result<LedgerState> state = read_ledger_state(session);
  if (!state) return report(state.error());
  const auto violations = check_ledger(all, *state);
  for (const LedgerViolation& violation : violations) std::printf("%s\n", violation.text.c_str());
  std::printf("%zu transactions, %zu keys, %zu violations\n", all.size(), state->size(),
              violations.size());
  return violations.empty() ? 0 : static_cast<int>(ExitCode::corruption);
}

int main_of(int argc, char** argv) {
  CLI::App app("Runs transactions through a session and records their answers outside the cluster");
  app.require_subcommand(1);
  std::string run_dir;
  uint32_t node = 0;
  LedgerClientOptions options;
  double seconds = 0;
  uint64_t transactions = 0;
  uint32_t reconnect_seconds = 0;
  std::vector<std::string> files;
  const auto common = [&](CLI::App& command) {
    command.add_option("--run-dir", run_dir, "cluster.run_dir of the cluster")->required();
    command.add_option("--node", node, "node of the session");
  };
  CLI::App& run =
      *app.add_subcommand("run", "Submit transactions until a signal, or until a limit is reached");
  common(run);
  run.add_option("--file", options.path, "ledger file; new lines are appended")->required();
  run.add_option("--client", options.client, "number of this client, in its tokens")
      ->check(CLI::Range(0, 65535));
  run.add_option("--keys", options.keys, "number of keys to write")->check(CLI::Range(4, 1 << 24));
  run.add_option("--in-flight", options.in_flight)->check(CLI::Range(1u, kSessionSlots));
  run.add_option("--read-only-percent", options.read_only_percent)->check(CLI::Range(0, 100));
  run.add_option("--precommitted-percent", options.precommitted_percent)->check(CLI::Range(0, 100));
  run.add_option("--seed", options.seed);
  run.add_option("--seconds", seconds, "longest time of the run; 0: no limit");
  run.add_option("--transactions", transactions, "most transactions to submit; 0: no limit");
  run.add_option(
         "--reconnect", reconnect_seconds,
         "seconds to wait for a restart of the cluster when the session ends; 0: end with the "
         "session")
      ->check(CLI::Range(0, 3600));
  CLI::App& compare = *app.add_subcommand("check", "Compare the storage with ledgers");
  common(compare);
  compare.add_option("files", files)->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  signal(SIGINT, tell_to_stop);
  signal(SIGTERM, tell_to_stop);
  if (run.parsed()) {
    const auto connect = [&] {
      if (reconnect_seconds == 0) return SessionClient::connect(run_dir, node);
      return SessionClient::connect_within(
          run_dir, node, std::chrono::seconds(reconnect_seconds),
          [] { return is_told_to_stop.load(std::memory_order_relaxed); });
    };
    return run_client(connect, options, seconds, transactions, reconnect_seconds != 0);
  }
  const auto session = SessionClient::connect(run_dir, node);
  return session ? check(**session, files) : report(session.error());
}

}  // namespace
}  // namespace atolldb

int main(int argc, char** argv) { return atolldb::main_of(argc, argv); }
