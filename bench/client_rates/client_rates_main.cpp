// Measures requests per second of a client of the C library, over any connection string.
//
//   atoll-client-rates CONNECTION STORAGE [SECONDS]
//
// STORAGE is a Master-tree. The program writes 1,000 records of 100 bytes, and then measures gets
// and durable puts: single ones, pipelined ones, and batches of 100.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "shared/c_client/atoll_client.h"

namespace {

using RateClock = std::chrono::steady_clock;

constexpr uint64_t kRecords = 1000;
constexpr size_t kValueBytes = 100;
constexpr int kBatch = 100;

struct Bench {
  atoll_connection* db = nullptr;
  const char* storage = nullptr;
  double seconds = 3;
  std::string value = std::string(kValueBytes, 'v');
};

void check(atoll_status status) {
  if (status == ATOLL_OK) return;
  std::fprintf(stderr, "atoll-client-rates: %s\n", atoll_last_message());
  std::exit(1);
}

std::string key_of(uint64_t number) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "key%06llu",
                static_cast<unsigned long long>(number % kRecords));
  return text.data();
}
atoll_bytes bytes_of(const std::string& text) { return atoll_make_bytes(text.data(), text.size()); }

/// Calls `step` for some seconds, and prints how many records it has read or written per second.
/// `finish` waits for the requests in flight.
void measure(const Bench& bench, const char* what, int records_per_step,
             const std::function<void(uint64_t)>& step, const std::function<void()>& finish) {
  const auto begin = RateClock::now();
  const auto end = begin + std::chrono::duration<double>(bench.seconds);
  uint64_t steps = 0;
  while (RateClock::now() < end) step(steps++);
  finish();
  const std::chrono::duration<double> took = RateClock::now() - begin;
  std::printf("%-24s %10.0f records/s\n", what,
              static_cast<double>(steps) * records_per_step / took.count());
  std::fflush(stdout);
}

void take_result(void* failures, atoll_result* result) {
  if (atoll_result_status(result) != ATOLL_OK) ++*static_cast<uint64_t*>(failures);
  atoll_result_free(result);
}

/// Keeps as many batches in flight as the session allows.
void measure_pipelined(const Bench& bench, const char* what, bool puts, int records) {
  atoll_batch* batch = nullptr;
  check(atoll_batch_new(&batch));
  uint64_t failures = 0;
  measure(
      bench, what, records,
      [&](uint64_t number) {
        atoll_batch_clear(batch);
        for (int i = 0; i < records; ++i) {
          const std::string key =
              key_of(number * static_cast<uint64_t>(records) + static_cast<uint64_t>(i));
          check(puts ? atoll_batch_put(batch, bench.storage, bytes_of(key), bytes_of(bench.value))
                     : atoll_batch_get(batch, bench.storage, bytes_of(key)));
        }
        check(atoll_submit(bench.db, batch, nullptr, take_result, &failures, nullptr));
      },
      [&] {
        for (size_t count = 1; count != 0;) check(atoll_dispatch(bench.db, -1, &count));
      });
  atoll_batch_free(batch);
  if (failures != 0)
    std::printf("%llu requests failed\n", static_cast<unsigned long long>(failures));
}

void measure_all(const Bench& bench) {
  for (uint64_t i = 0; i < kRecords; ++i) {
    check(atoll_put(bench.db, bench.storage, bytes_of(key_of(i)), bytes_of(bench.value), nullptr,
                    nullptr));
  }
  const auto nothing = [] {};
  measure(
      bench, "single gets", 1,
      [&](uint64_t i) {
        atoll_result* result = nullptr;
        check(atoll_get(bench.db, bench.storage, bytes_of(key_of(i)), nullptr, &result));
        atoll_result_free(result);
      },
      nothing);
  measure_pipelined(bench, "pipelined gets", false, 1);
  atoll_batch* batch = nullptr;
  check(atoll_batch_new(&batch));
  for (int i = 0; i < kBatch; ++i) {
    check(atoll_batch_get(batch, bench.storage, bytes_of(key_of(static_cast<uint64_t>(i)))));
  }
  measure(
      bench, "batches of 100 gets", kBatch,
      [&](uint64_t) {
        atoll_result* result = nullptr;
        check(atoll_batch_run(bench.db, batch, nullptr, &result));
        atoll_result_free(result);
      },
      nothing);
  atoll_batch_free(batch);
  measure(
      bench, "single durable puts", 1,
      [&](uint64_t i) {
        check(atoll_put(bench.db, bench.storage, bytes_of(key_of(i)), bytes_of(bench.value),
                        nullptr, nullptr));
      },
      nothing);
  measure_pipelined(bench, "pipelined durable puts", true, 1);
  measure_pipelined(bench, "pipelined batches of 100", true, kBatch);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: atoll-client-rates CONNECTION STORAGE [SECONDS]\n");
    return 2;
  }
  Bench bench;
  bench.storage = argv[2];
  if (argc == 4) bench.seconds = std::strtod(argv[3], nullptr);
  check(atoll_connect(argv[1], &bench.db));
  measure_all(bench);
  atoll_connection_free(bench.db);
  return 0;
}
