// Counts cache lines and coherence misses of transactions, in one process. bench/lines runs it.
//
//   atoll-lines tpcc|ycsb [--nodes N] [--workers N] [--transactions N] [--turn ACCESSES] ...
//
// Prints one JSON object.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/line_counts/counted_tpcc.h"
#include "bench/line_counts/counted_ycsb.h"
#include "bench/line_counts/crew.h"
#include "bench/line_counts/line_counter.h"
#include "bench/line_counts/searches.h"
#include "bench/line_counts/structures.h"
#include "bench/micro/local_cluster.h"
#include "shared/base/check.h"

namespace atolldb::bench {
namespace {

struct Options {
  std::string workload;
  uint32_t nodes = 1;
  uint32_t workers = 1;  // of each node
  uint64_t transactions = 5'000;
  uint64_t warmup = 500;
  uint32_t top = 10;
  Crew::Options crew;
  tpcc::JobInput tpcc;
  ycsb::JobInput ycsb;
  std::string mix = "A";
};

/// All lines of one kind of structure.
struct Structure {
  uint64_t written_lines = 0;
  uint64_t contended_lines = 0;
  uint64_t writes = 0;
  uint64_t firsts_other = 0;
  uint64_t firsts_of_dirty = 0;
  uint64_t upgrades = 0;
  uint64_t misses_own = 0;
  uint64_t misses_other = 0;

  void add(const LineUse& use) {
    if (use.writes != 0) ++written_lines;
    if (use.is_contended) ++contended_lines;
    writes += use.writes;
    firsts_other += use.firsts_other;
    firsts_of_dirty += use.firsts_of_dirty;
    upgrades += use.upgrades;
    misses_own += use.misses_own;
    misses_other += use.misses_other;
  }
  nlohmann::json to_json() const {
    return {{"written_lines", written_lines},
            {"contended_lines", contended_lines},
            {"writes", writes},
            {"upgrades", upgrades},
            {"firsts_other", firsts_other},
            {"firsts_of_dirty", firsts_of_dirty},
            {"misses_own", misses_own},
            {"misses_other", misses_other}};
  }
};

nlohmann::json to_json(const HomeCounts& counts) {
  return {{"accesses", counts.accesses}, {"writes", counts.writes},
          {"lines", counts.lines},       {"firsts", counts.firsts},
          {"misses", counts.misses},     {"firsts_of_dirty", counts.firsts_of_dirty},
          {"upgrades", counts.upgrades}};
}

void add(HomeCounts& sum, const HomeCounts& counts) {
  sum.accesses += counts.accesses;
  sum.writes += counts.writes;
  sum.lines += counts.lines;
  sum.firsts += counts.firsts;
  sum.firsts_of_dirty += counts.firsts_of_dirty;
  sum.misses += counts.misses;
  sum.upgrades += counts.upgrades;
}

std::vector<LineCounter::Segment> segments_of(const ClusterView& view, uint32_t workers,
                                              uint64_t pool_bytes) {
  const auto bytes_at = [](const void* begin) { return static_cast<const std::byte*>(begin); };
  std::vector<LineCounter::Segment> segments;
  segments.push_back({bytes_at(view.control), sizeof(ControlSegment), LineCounter::kNoNode});
  NodeSharedLayout layout;
  layout.worker_count = workers;
  layout.node_count = view.node_count;
  for (uint32_t node = 0; node < view.node_count; ++node) {
    const auto number = static_cast<uint16_t>(node);
    segments.push_back({bytes_at(view.shared[node]), layout.bytes(), number});
    segments.push_back({view.pool[node], pool_bytes, number});
  }
  return segments;
}

nlohmann::json report_lines(const LineCounter& counter, const ClusterView& view, uint32_t top) {
  std::map<std::string, Structure> structures;
  std::vector<std::pair<const std::byte*, LineUse>> hottest;
  uint64_t contended = 0;
  counter.for_each_used_line([&](const std::byte* line, const LineUse& use) {
    structures[structure_at(view, line)].add(use);
    if (use.is_contended) ++contended;
    if (use.fetches() != 0) hottest.emplace_back(line, use);
  });
  const auto more = [](const auto& a, const auto& b) {
    return a.second.fetches() > b.second.fetches();
  };
  std::ranges::stable_sort(hottest, more);
  hottest.resize(std::min<size_t>(hottest.size(), top));
  nlohmann::json report{{"contended_lines", contended}};
  for (const auto& [name, structure] : structures) report["structures"][name] = structure.to_json();
  for (const auto& [line, use] : hottest) {
    report["top"].push_back({{"structure", structure_at(view, line)},
                             {"writes", use.writes},
                             {"fetches", use.fetches()}});
  }
  return report;
}

nlohmann::json count(const Options& options) {
  const bool is_tpcc = options.workload == "tpcc";
  const uint64_t pool_bytes = is_tpcc ? CountedTpcc::pool_bytes(options.tpcc, options.nodes)
                                      : CountedYcsb::pool_bytes(options.ycsb, options.nodes);
  LocalCluster cluster(options.nodes, options.workers, pool_bytes, false);
  LineCounter counter(options.nodes, options.workers,
                      segments_of(cluster.view(), options.workers, pool_bytes));
  std::unique_ptr<CountedLoad> load;
  if (is_tpcc) {
    load = std::make_unique<CountedTpcc>(cluster, options.nodes, options.workers, options.tpcc);
  } else {
    load = std::make_unique<CountedYcsb>(cluster, options.nodes, options.workers, options.ycsb);
  }
  Crew crew(counter, *load, options.crew);
  crew.populate();
  crew.run(options.warmup);
  counter.start_counting();
  const uint64_t ticks_before = crew.ticks();
  const uint64_t aborts_before = load->aborts();
  const uint64_t commits = crew.run(options.transactions);
  nlohmann::json report = report_lines(counter, cluster.view(), options.top);
  WorkerCounts sum{};
  for (uint32_t worker = 0; worker < counter.workers(); ++worker) {
    for (uint32_t home = 0; home < kHomes; ++home) {
      add(sum[home], counter.counts_of(worker)[home]);
    }
  }
  for (uint32_t home = 0; home < kHomes; ++home) {
    report["homes"][kHomeNames[home]] = to_json(sum[home]);
    report["clock"][kHomeNames[home]] = to_json(counter.counts_of(counter.clock())[home]);
  }
  report["workload"] = options.workload;
  report["nodes"] = options.nodes;
  report["workers"] = options.workers;
  report["commits"] = commits;
  report["aborts"] = load->aborts() - aborts_before;
  report["epochs"] = crew.ticks() - ticks_before;
  return report;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Counts cache lines and coherence misses of transactions.", "atoll-lines");
  app.add_option("workload", options.workload)->required()->check(CLI::IsMember({"tpcc", "ycsb"}));
  app.add_option("--nodes", options.nodes)->check(CLI::Range(1u, kMaxNodes));
  app.add_option("--workers", options.workers, "of each node")
      ->check(CLI::Range(1u, kMaxWorkersPerNode));
  app.add_option("--transactions", options.transactions, "counted, of each worker");
  app.add_option("--warmup", options.warmup, "transactions of each worker before these");
  app.add_option("--turn", options.crew.longest_turn,
                 "most accesses before the next worker continues; 0: a whole transaction");
  app.add_option("--epoch-accesses", options.crew.epoch_accesses, "of each worker in an epoch");
  app.add_option("--seed", options.crew.seed, "of the inputs and turns");
  app.add_option("--top", options.top, "how many of the most fetched lines are listed");
  app.add_option("--items", options.tpcc.scale.items);
  app.add_option("--customers", options.tpcc.scale.customers, "of each district");
  app.add_option("--remote-percent", options.tpcc.remote_line_percent, "of order lines");
  app.add_option("--remote-payment-percent", options.tpcc.remote_payment_percent);
  app.add_option("--records", options.ycsb.records);
  app.add_option("--mix", options.mix, "YCSB workload: A to F");
  uint32_t warehouses = 0;
  app.add_option("--warehouses", warehouses, "0: one for each worker");
  bool is_uniform = false;
  app.add_flag("--uniform", is_uniform, "YCSB: all keys are chosen as often");
  CLI11_PARSE(app, argc, argv);
  check_that_searches_are_counted();
  options.tpcc.warehouses = warehouses != 0 ? warehouses : options.nodes * options.workers;
  tpcc::Scale& scale = options.tpcc.scale;
  scale.new_orders = scale.customers * 3 / 10;
  scale.last_names = std::min(1'000u, scale.customers);
  options.tpcc.seed = options.ycsb.seed = options.crew.seed;
  const ycsb::Workload* const workload = ycsb::find_workload(options.mix);
  if (workload == nullptr) {
    std::fprintf(stderr, "atoll-lines: --mix %s: no such workload\n", options.mix.c_str());
    return 2;
  }
  options.ycsb.mix = workload->mix;
  options.ycsb.distribution = is_uniform ? ycsb::Distribution::uniform : workload->distribution;
  std::printf("%s\n", count(options).dump().c_str());
  return 0;
}

}  // namespace
}  // namespace atolldb::bench

int main(int argc, char** argv) { return atolldb::bench::run(argc, argv); }
