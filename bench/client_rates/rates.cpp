#include "bench/client_rates/rates.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

namespace atolldb::rates {
namespace {

using RateClock = std::chrono::steady_clock;

constexpr uint64_t kMaxClients = 64;
constexpr uint32_t kUsualInFlight = 256;

/// Parses a case. Returns false for an unknown one.
bool parse(std::string_view text, Case& found) {
  if (!text.starts_with("get") && !text.starts_with("put")) return false;
  found.puts = text.starts_with("put");
  text.remove_prefix(3);
  constexpr std::string_view kBatchName = "-batch";
  found.is_batch = text.starts_with(kBatchName);
  if (found.is_batch) text.remove_prefix(kBatchName.size());
  if (text.empty()) return true;
  constexpr std::string_view kPipelined = "-pipelined";
  if (!text.starts_with(kPipelined)) return false;
  found.in_flight = kUsualInFlight;
  text.remove_prefix(kPipelined.size());
  if (text.empty()) return true;
  if (!text.starts_with(':')) return false;
  found.in_flight =
      static_cast<uint32_t>(std::strtoul(std::string(text.substr(1)).c_str(), nullptr, 10));
  return found.in_flight != 0;
}

/// Returns the records per second of all clients together.
double run(uint64_t clients, double seconds,
           const std::function<std::unique_ptr<Client>()>& connect, uint32_t records_per_step) {
  std::atomic<uint64_t> steps{0};
  RateClock::time_point began;
  std::barrier all_connected(static_cast<std::ptrdiff_t>(clients),
                             [&]() noexcept { began = RateClock::now(); });
  std::vector<std::jthread> threads;
  for (uint64_t i = 0; i < clients; ++i) {
    threads.emplace_back([&, i] {
      const std::unique_ptr<Client> client = connect();
      all_connected.arrive_and_wait();
      const auto end = began + std::chrono::duration<double>(seconds);
      uint64_t done = 0;
      for (; RateClock::now() < end; ++done) client->step(i * kRecords / clients + done);
      client->finish();
      steps.fetch_add(done, std::memory_order_relaxed);
    });
  }
  threads.clear();  // joins them
  const std::chrono::duration<double> took = RateClock::now() - began;
  return static_cast<double>(steps.load(std::memory_order_relaxed)) * records_per_step /
         took.count();
}

}  // namespace

const std::string& key_of(uint64_t number) {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> made;
    for (uint64_t i = 0; i < kRecords; ++i) {
      std::string digits = std::to_string(i);
      made.push_back("key" + std::string(6 - digits.size(), '0') + digits);
    }
    return made;
  }();
  return keys[number % kRecords];
}

const std::string& value() {
  static const std::string bytes(kValueBytes, 'v');
  return bytes;
}

void write_all(Client& batch_client) {
  for (uint64_t i = 0; i < kRecords / kBatch; ++i) batch_client.step(i);
  batch_client.finish();
}

void fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

int measure(int argc, char** argv, int arguments, const std::string& usage,
            const std::function<void()>& prepare,
            const std::function<std::unique_ptr<Client>(const Case&)>& connect) {
  const int first = 1 + arguments;
  Case found;
  const bool has_all = argc == first + 3 && parse(argv[first], found);
  const uint64_t clients = has_all ? std::strtoull(argv[first + 1], nullptr, 10) : 0;
  const double seconds = has_all ? std::strtod(argv[first + 2], nullptr) : 0;
  if (clients == 0 || clients > kMaxClients || !(seconds > 0)) {
    std::fprintf(stderr, "usage: %s %s CASE CLIENTS SECONDS\n", argv[0], usage.c_str());
    return 2;
  }
  prepare();
  std::printf("%.0f\n", run(clients, seconds, [&] { return connect(found); }, found.records()));
  return 0;
}

}  // namespace atolldb::rates
