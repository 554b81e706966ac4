#include "bench/larger_than_memory/run.h"

#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/common/clock.h"
#include "bench/larger_than_memory/record.h"
#include "bench/ycsb/generator.h"
#include "shared/memory/histogram.h"

namespace atolldb::peers {

namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr size_t kPlanned = 16;  // operations that are planned together, as Atoll's workers do

struct Times {
  uint64_t start_ns;
  uint64_t warm_ns;  // end of the warm-up
  uint64_t end_ns;
};

/// The operations of one thread. Other threads may read the counts at any time.
class Worker {
 public:
  Worker(Store& store, const ycsb::JobInput& input, uint32_t index)
      : store_(store),
        keyspace_(input.keyspace(kNodes)),
        generator_(input, index % kNodes, kNodes, index / kNodes, input.seed + index) {}

  void run(const Times& times) {
    const std::unique_ptr<Session> session = store_.open_session();
    std::array<ycsb::Planned, kPlanned> planned;
    bench::wait_until_ns(times.start_ns);
    uint64_t now = bench::monotonic_ns();
    while (now < times.end_ns) {
      generator_.plan(planned);
      for (const ycsb::Planned& operation : planned) {
        execute(*session, operation);
        const uint64_t end = bench::monotonic_ns();
        const auto type = static_cast<size_t>(operation.operation);
        if (now >= times.warm_ns && end <= times.end_ns) latency_[type].add(end - now);
        done_.add();
        now = end;
      }
      generator_.committed(planned);
    }
  }

  uint64_t done() const { return done_.get(); }
  const Histogram& latency(size_t type) const { return latency_[type]; }

 private:
  void execute(Session& session, const ycsb::Planned& planned) {
    const uint64_t id = planned.id;
    const Key key(id);
    switch (planned.operation) {
      case ycsb::Operation::read:
        return read(session, id);
      case ycsb::Operation::read_modify_write:
        read(session, id);
        [[fallthrough]];
      case ycsb::Operation::update:
        record_.fill(id, ++updates_);
        return session.write(key.view(), record_.view());
      case ycsb::Operation::insert:
        record_.fill(id, 0);
        return session.write(key.view(), record_.view());
      case ycsb::Operation::scan: {
        const Key last(keyspace_.last_of_partition(id));
        const uint32_t count =
            session.scan(key.view(), last.view(), planned.scan_length, record_.buffer());
        if (count == 0) {
          fail("scan: no record from id " + std::to_string(id) + " on, although it was loaded");
        }
        return;
      }
    }
  }

  void read(Session& session, uint64_t id) {
    if (!session.read(Key(id).view(), record_.buffer()) || !record_.is_of(id)) {
      fail("read: the record of id " + std::to_string(id) + " is missing or torn");
    }
  }

  Store& store_;
  const ycsb::Keyspace keyspace_;
  ycsb::Generator generator_;
  Record record_;
  uint64_t updates_ = 0;
  Counter done_;
  std::array<Histogram, ycsb::kOperations> latency_;
};

using Workers = std::vector<std::unique_ptr<Worker>>;

/// Prints the rate of each second until the end.
void print_rates(const Workers& workers, const Times& times) {
  uint64_t before = 0;
  for (uint32_t second = 1; times.start_ns + second * kNsPerSecond <= times.end_ns; ++second) {
    bench::wait_until_ns(times.start_ns + second * kNsPerSecond);
    uint64_t done = 0;
    for (const auto& worker : workers) done += worker->done();
    std::printf("  %4u s: %9lu operations/s\n", second, done - before);
    std::fflush(stdout);
    before = done;
  }
}

nlohmann::json quantiles_json(const Histogram& latency) {
  const auto us = [](uint64_t ns) { return static_cast<double>(ns) * 1e-3; };
  return {{"p50", us(latency.quantile_ns(0.5))},
          {"p99", us(latency.quantile_ns(0.99))},
          {"p99.9", us(latency.quantile_ns(0.999))},
          {"max", us(latency.max_ns())}};
}

void print_figures(const Workers& workers, uint32_t seconds) {
  Histogram all;
  nlohmann::json latencies = nlohmann::json::object();
  for (size_t type = 0; type < ycsb::kOperations; ++type) {
    Histogram sum;
    for (const auto& worker : workers) sum.merge(worker->latency(type));
    if (sum.count() == 0) continue;
    all.merge(sum);
    latencies[std::string(ycsb::kTypeNames[type])] = quantiles_json(sum);
  }
  const nlohmann::json figures = {
      {"operations_per_second", static_cast<double>(all.count()) / seconds},
      {"latency_us", std::move(latencies)},
      {"all_latency_us", quantiles_json(all)}};
  std::printf("%s\n", figures.dump().c_str());
}

}  // namespace

void run(Store& store, const ycsb::JobInput& input, const RunOptions& options) {
  Workers workers;
  for (uint32_t i = 0; i < options.threads; ++i) {
    workers.push_back(std::make_unique<Worker>(store, input, i));
  }
  constexpr uint64_t kStartDelayNs = 100'000'000;  // all threads exist by then
  Times times{};
  times.start_ns = bench::monotonic_ns() + kStartDelayNs;
  times.warm_ns = times.start_ns + options.warmup_seconds * kNsPerSecond;
  times.end_ns = times.warm_ns + options.seconds * kNsPerSecond;
  std::vector<std::thread> threads;
  for (const auto& worker : workers) threads.emplace_back([&] { worker->run(times); });
  print_rates(workers, times);
  for (std::thread& thread : threads) thread.join();
  print_figures(workers, options.seconds);
}

}  // namespace atolldb::peers
