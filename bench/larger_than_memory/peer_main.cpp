// Loads YCSB's records into a store and runs a mix of operations on it, with Atoll's generator of
// keys and operations. bench/memory compiles this program once for each store, and calls it.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/larger_than_memory/load.h"
#include "bench/larger_than_memory/record.h"
#include "bench/larger_than_memory/run.h"
#include "bench/larger_than_memory/store.h"

namespace atolldb::peers {

void fail(const std::string& message) {
  std::fprintf(stderr, "peer: %s\n", message.c_str());
  std::fflush(nullptr);
  std::_Exit(1);  // other threads may still use the store
}

namespace {

constexpr std::string_view kUsage =
    "usage: peer DIRECTORY CACHE_BYTES RECORDS MIX DISTRIBUTION THREADS WARMUP_S SECONDS\n"
    "MIX: percentages of read:update:insert:scan:read-modify-write\n"
    "DISTRIBUTION: uniform or zipfian";

uint64_t to_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail(std::string(text) + ": not a number: " + std::string(kUsage));
  }
  return number;
}

ycsb::Mix to_mix(std::string_view text) {
  ycsb::Mix mix{};
  uint32_t sum = 0;
  for (uint32_t& percent : mix) {
    const size_t end = std::min(text.find(':'), text.size());
    percent = static_cast<uint32_t>(to_number(text.substr(0, end)));
    sum += percent;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (sum != 100 || !text.empty())
    fail("MIX: use five percentages with a sum of 100: " + std::string(kUsage));
  return mix;
}

void go(const std::vector<std::string_view>& arguments) {
  ycsb::JobInput input;
  input.records = to_number(arguments[2]);
  input.shape.record_bytes = kRecordBytes;
  input.mix = to_mix(arguments[3]);
  // As bench/memory loads Atoll: dense keys, except for inserts.
  input.is_ordered = ycsb::percent_of(input.mix, ycsb::Operation::insert) == 0;
  if (arguments[4] != "uniform" && arguments[4] != "zipfian") fail(std::string(kUsage));
  input.distribution =
      arguments[4] == "uniform" ? ycsb::Distribution::uniform : ycsb::Distribution::zipfian;
  RunOptions run_options;
  run_options.threads = static_cast<uint32_t>(to_number(arguments[5]));
  run_options.warmup_seconds = static_cast<uint32_t>(to_number(arguments[6]));
  run_options.seconds = static_cast<uint32_t>(to_number(arguments[7]));
  StoreOptions store_options;
  store_options.directory = arguments[0];
  store_options.cache_bytes = to_number(arguments[1]);
  store_options.data_bytes = input.records * (sizeof(Key) + kRecordBytes);
  store_options.threads = run_options.threads;
  if (input.records < kNodes || run_options.threads == 0 || run_options.seconds == 0) {
    fail("RECORDS is at least 2, THREADS and SECONDS at least 1");
  }
  const std::unique_ptr<Store> store = open_store(store_options);
  load(*store, input.keyspace(kNodes));
  run(*store, input, run_options);
}

}  // namespace

}  // namespace atolldb::peers

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (arguments.size() != 8) atolldb::peers::fail(std::string(atolldb::peers::kUsage));
  atolldb::peers::go(arguments);
}
