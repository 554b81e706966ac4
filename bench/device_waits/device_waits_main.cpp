// Compares what runs on a CPU while a transaction waits for a device: another thread, as in Atoll's
// nodes, or another fiber of the same thread. The transactions are synthetic.
//
//   atoll-device-waits [--directory DIR] [--file-mib N] [--compute-us N] [--reads N]
//                      [--workers N] [--seconds N] [--rounds N]
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "bench/device_waits/workload.h"
#include "shared/base/check.h"
#include "shared/base/unique_fd.h"

namespace atolldb::bench::device_waits {
namespace {

struct Options {
  std::string directory = ".";
  uint32_t file_mib = 3072;
  double seconds = 2;
  uint32_t rounds = 3;
};

/// What one run has measured.
struct Figures {
  double thousand_per_s = 0;
  double cpu_us = 0;  // processor time of a transaction, all threads
  double p50_us = 0;
  double p999_us = 0;
};

/// Writes a file of random bytes, and returns it open for direct reads. The file has no name, so it
/// ends with the process. Returns no descriptor after an error, which `problem` describes.
UniqueFd make_file(const Options& options, std::string& problem) {
  const std::string path = options.directory + "/atoll-device-waits";
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600));
  if (!file.is_open()) {
    problem = fmt::format("{}: cannot be created for direct I/O: {}", path, strerror(errno));
    return {};
  }
  unlink(path.c_str());
  IoBuffer buffer(1 << 20);
  const std::span<std::byte> bytes = buffer.bytes();
  Random random(1);
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
    const uint64_t word = random.next();
    std::memcpy(&bytes[i], &word, sizeof(word));
  }
  for (uint32_t i = 0; i < options.file_mib; ++i) {
    if (write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      problem =
          fmt::format("{}: {} MiB cannot be written: {}", path, options.file_mib, strerror(errno));
      return {};
    }
  }
  return file;
}

double measure_rounds_per_us() {
  constexpr uint64_t kRounds = 100'000'000;
  const uint64_t begin = monotonic_ns();
  // The compiler removes a loop whose result is not used.
  CHECK(compute(kRounds, 1) != 1);
  return kRounds * 1e3 / static_cast<double>(monotonic_ns() - begin);
}

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

using Way = std::function<void(std::vector<Worker>&)>;

Figures measure(Load& load, const Options& options, const Way& way) {
  std::vector<Worker> workers;
  for (uint32_t i = 0; i < load.cpus * load.workers; ++i) workers.emplace_back(load, i);
  load.stops.store(false, std::memory_order_relaxed);
  const uint64_t begin = monotonic_ns();
  const double cpu_before = cpu_seconds();
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
    load.stops.store(true, std::memory_order_relaxed);
  });
  way(workers);
  const double seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  LatencyHistogram all;
  for (const Worker& worker : workers) all.merge(worker.latency());
  const auto count = static_cast<double>(all.count());
  return {count / seconds * 1e-3, (cpu_seconds() - cpu_before) * 1e6 / std::max(count, 1.0),
          static_cast<double>(all.quantile_ns(0.5)) * 1e-3,
          static_cast<double>(all.quantile_ns(0.999)) * 1e-3};
}

/// Returns the median of one figure.
double median(std::vector<Figures> runs, double Figures::* figure) {
  CHECK(!runs.empty());
  std::ranges::sort(runs, {}, figure);
  return runs[runs.size() / 2].*figure;
}

void compare(Load& load, const Options& options) {
  const std::vector<std::pair<std::string, Way>> ways = {
      {"one thread per CPU, which waits",
       [&](std::vector<Worker>& workers) { run_threads(load, workers, 0); }},
      {"threads, RunGate",
       [&](std::vector<Worker>& workers) { run_threads(load, workers, load.cpus); }},
      {"threads, no gate", [&](std::vector<Worker>& workers) { run_threads(load, workers, 0); }},
      {"fibers, io_uring", [&](std::vector<Worker>& workers) { run_fibers(load, workers); }},
  };
  std::map<std::string, std::vector<Figures>> runs;
  const uint32_t workers = load.workers;
  for (uint32_t round = 0; round < options.rounds; ++round) {
    for (const auto& [name, way] : ways) {
      load.workers = &name == &ways.front().first ? 1 : workers;
      runs[name].push_back(measure(load, options, way));
    }
  }
  fmt::print("{} CPUs, {} workers on each, {} us and {} reads per transaction, medians of {}\n\n",
             load.cpus, workers, load.compute_us, load.reads, options.rounds);
  fmt::print(
      "| on a CPU | thousand/s | CPU, us | p50, us | p99.9, us |\n|---|---:|---:|---:|---:|\n");
  for (const auto& [name, way] : ways) {
    const auto of = [&](double Figures::* figure) { return median(runs[name], figure); };
    fmt::print("| {} | {:.1f} | {:.1f} | {:.0f} | {:.0f} |\n", name, of(&Figures::thousand_per_s),
               of(&Figures::cpu_us), of(&Figures::p50_us), of(&Figures::p999_us));
  }
}

int run(int argc, char** argv) {
  Options options;
  Load load;
  load.cpus = std::max(1u, std::thread::hardware_concurrency());
  CLI::App app("Compares what a CPU does while transactions wait for a device.",
               "atoll-device-waits");
  app.add_option("--directory", options.directory, "of the file that is read")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--file-mib", options.file_mib, "size of that file")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  app.add_option("--compute-us", load.compute_us, "computation of a transaction")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--reads", load.reads, "mean number of pages that a transaction reads")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--workers", load.workers, "workers per CPU")
      ->check(CLI::Range(1u, 250u))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "of each run")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "runs of each way, in turns")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (!can_run_fibers()) {
    fmt::print(stderr, "atoll-device-waits: io_uring: the kernel refuses it: see {}\n",
               "kernel.io_uring_disabled and the seccomp rules of the container");
    return 1;
  }
  std::string problem;
  const UniqueFd file = make_file(options, problem);
  if (!file.is_open()) {
    fmt::print(stderr, "atoll-device-waits: {}\n", problem);
    return 1;
  }
  load.file = file.get();
  load.pages = options.file_mib * ((1u << 20) / static_cast<uint32_t>(kIoBlockBytes));
  load.rounds_per_us = measure_rounds_per_us();
  compare(load, options);
  return 0;
}

}  // namespace
}  // namespace atolldb::bench::device_waits

int main(int argc, char** argv) { return atolldb::bench::device_waits::run(argc, argv); }
