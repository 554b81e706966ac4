#include "ops/top/figures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "bench/driver/epoch_stages.h"
#include "ops/cli/status_report.h"
#include "shared/base/check.h"

namespace atolldb::top {
namespace {

/// Returns the number, or 0 if it is none, or is negative.
uint64_t number_or_0(const Json& json) {
  if (json.is_number_unsigned()) return json.get<uint64_t>();
  return json.is_number_integer() ? static_cast<uint64_t>(std::max<int64_t>(json.get<int64_t>(), 0))
                                  : 0;
}

uint64_t whole(const Json& json, const char* member) {
  const auto found = json.is_object() ? json.find(member) : json.end();
  return json.is_object() && found != json.end() ? number_or_0(*found) : 0;
}

std::string word(const Json& json, const char* member) {
  const auto found = json.is_object() ? json.find(member) : json.end();
  return json.is_object() && found != json.end() && found->is_string() ? found->get<std::string>()
                                                                       : "";
}

/// Returns the member, or null.
const Json& part(const Json& json, const char* member) {
  static const Json null;
  const auto found = json.is_object() ? json.find(member) : json.end();
  return json.is_object() && found != json.end() ? *found : null;
}

/// Returns the element of the list whose member has the value, or null.
const Json& element_with(const Json& list, const char* member, const Json& value) {
  static const Json null;
  for (const Json& element : list) {
    if (part(element, member) == value) return element;
  }
  return null;
}

/// Rates between two answers of one process.
struct Span {
  const Json& before;
  const Json& after;
  double seconds;

  Span at(const char* member) const { return {part(before, member), part(after, member), seconds}; }
  uint64_t count(const char* member) const {
    const uint64_t old = whole(before, member);
    const uint64_t now = whole(after, member);
    // Sums over threads that count meanwhile may seem to decrease.
    return now > old ? now - old : 0;
  }
  double rate(const char* member) const { return static_cast<double>(count(member)) / seconds; }
};

double percent_of(double part_value, double all) { return all > 0 ? 100 * part_value / all : 0; }

/// Returns a list of numbers, or an empty one if the JSON is not such a list.
std::vector<uint64_t> numbers_of(const Json& list) {
  std::vector<uint64_t> numbers;
  for (const Json& number : list) {
    if (!number.is_number_integer()) return {};
    numbers.push_back(number_or_0(number));
  }
  return numbers;
}

/// Latencies of calls, by bucket.
struct CallLatencies {
  std::vector<uint64_t> counts;

  void add(const Span& span) {
    const std::vector<uint64_t> old = numbers_of(part(span.before, "counts"));
    const std::vector<uint64_t> now = numbers_of(part(span.after, "counts"));
    counts.resize(std::max(counts.size(), now.size()));
    for (size_t i = 0; i < now.size(); ++i) {
      const uint64_t earlier = i < old.size() ? old[i] : 0;
      counts[i] += now[i] > earlier ? now[i] - earlier : 0;
    }
  }
  void add(const CallLatencies& other) {
    counts.resize(std::max(counts.size(), other.counts.size()));
    for (size_t i = 0; i < other.counts.size(); ++i) counts[i] += other.counts[i];
  }
  Quantiles quantiles(std::span<const uint64_t> bounds_ns) const {
    if (counts.size() != bounds_ns.size() + 1) return {};
    return {std::accumulate(counts.begin(), counts.end(), uint64_t{0}),
            quantile_us(counts, bounds_ns, 0.5), quantile_us(counts, bounds_ns, 0.99),
            quantile_us(counts, bounds_ns, 0.999)};
  }
};

/// The calls of one procedure on all nodes.
struct CallSums {
  std::map<std::string, uint64_t> results;
  uint64_t retries = 0;
  CallLatencies execution;
  CallLatencies durable;
};

void add_results(const Span& span, std::map<std::string, uint64_t>& sums) {
  if (!span.after.is_object()) return;
  for (const auto& [status, count] : span.after.items()) {
    sums[status] += span.count(status.c_str());
  }
}

ProcedureFigures row_of(const std::string& name, const CallSums& sums, double seconds,
                        std::span<const uint64_t> bounds_ns) {
  ProcedureFigures row;
  row.name = name;
  uint64_t most = 0;
  uint64_t aborts = 0;
  for (const auto& [status, count] : sums.results) {
    if (status == "ok") {
      row.commits_per_s = static_cast<double>(count) / seconds;
      continue;
    }
    aborts += count;
    if (count > most) row.abort_reason = status;
    most = std::max(most, count);
  }
  row.aborts_per_s = static_cast<double>(aborts) / seconds;
  row.retries_per_s = static_cast<double>(sums.retries) / seconds;
  row.execution = sums.execution.quantiles(bounds_ns);
  row.durable = sums.durable.quantiles(bounds_ns);
  return row;
}

void add_procedures_of(const Sample& before, const Sample& after, Figures& figures) {
  std::map<std::string, CallSums> procedures;
  CallLatencies execution;
  CallLatencies durable;
  std::vector<uint64_t> bounds_ns;
  for (size_t node = 0; node < after.calls.size(); ++node) {
    const Json& now = after.calls[node];
    if (bounds_ns.empty()) bounds_ns = numbers_of(part(now, "bounds_ns"));
    const Json& old = node < before.calls.size() ? before.calls[node] : part(now, "");
    // Without the counts of the node before, a rate would cover the time since its start.
    if (!old.is_object()) continue;
    for (const Json& each : part(now, "procedures")) {
      const Span span{element_with(part(old, "procedures"), "name", part(each, "name")), each,
                      figures.seconds};
      CallSums& sums = procedures[word(each, "name")];
      add_results(span.at("results"), sums.results);
      sums.retries += span.count("retries");
      sums.execution.add(span.at("execution"));
      sums.durable.add(span.at("durable"));
    }
  }
  for (const auto& [name, sums] : procedures) {
    figures.procedure_rows.push_back(row_of(name, sums, figures.seconds, bounds_ns));
    execution.add(sums.execution);
    durable.add(sums.durable);
  }
  figures.execution = execution.quantiles(bounds_ns);
  figures.durable = durable.quantiles(bounds_ns);
}

void add_storages_of(const Span& cluster, Figures& figures) {
  for (const Json& storage : part(cluster.after, "storages")) {
    const Span span{element_with(part(cluster.before, "storages"), "id", part(storage, "id")),
                    storage, cluster.seconds};
    const Span cache = span.at("snapshot_cache");
    StorageFigures row;
    row.name = word(storage, "name");
    row.type = word(storage, "type");
    row.operations_per_s = span.rate("operations");
    row.pages_read_per_s = cache.rate("pages_read");
    row.evictions_per_s = cache.rate("evictions");
    row.cache_bytes = whole(cache.after, "used_bytes");
    row.pages_read = whole(cache.after, "pages_read");
    figures.storage_rows.push_back(std::move(row));
  }
}

uint64_t aborts_in(const Span& node) {
  std::map<std::string, uint64_t> sums;
  add_results(node.at("aborts"), sums);
  uint64_t all = 0;
  for (const auto& [reason, count] : sums) all += count;
  return all;
}

double hit_percent(uint64_t reads, uint64_t misses) {
  return reads == 0 ? 100
                    : 100 - percent_of(static_cast<double>(std::min(reads, misses)),
                                       static_cast<double>(reads));
}

void add_logs(const Span& node, NodeFigures& row) {
  for (const Json& logger : part(node.after, "loggers")) {
    const Span span{element_with(part(node.before, "loggers"), "logger", part(logger, "logger")),
                    logger, node.seconds};
    row.log_bytes_per_s += span.rate("written_bytes");
    row.syncs_per_s += span.rate("batches");
    row.epoch_lag = std::max(row.epoch_lag, whole(logger, "epoch_lag"));
  }
}

NodeFigures node_row(const Span& node) {
  NodeFigures row;
  row.node = static_cast<uint32_t>(whole(node.after, "node"));
  row.state = word(node.after, "state");
  row.commits_per_s = node.rate("commits") + node.rate("read_only_commits");
  row.aborts_per_s = static_cast<double>(aborts_in(node)) / node.seconds;
  row.pool_used_percent = 100 * pool_used_share(part(node.after, "pool"));
  const auto remote = static_cast<double>(node.count("remote_accesses"));
  row.remote_percent =
      percent_of(remote, remote + static_cast<double>(node.count("local_accesses")));
  add_logs(node, row);
  const Span cache = node.at("snapshot_cache");
  row.cache_bytes = whole(cache.after, "bytes");
  row.cache_hit_percent = hit_percent(cache.count("reads"), cache.count("misses"));
  const Span sessions = node.at("sessions");
  row.sessions = whole(sessions.after, "open");
  row.requests_per_s = sessions.rate("requests");
  row.stalls_per_s = node.rate("page_stalls") + node.rate("page_delays") + node.rate("log_stalls");
  return row;
}

/// Adds the rows of the nodes, and what is summed over them.
void add_nodes_of(const Span& cluster, Figures& figures) {
  uint64_t reads = 0;
  uint64_t misses = 0;
  double used_bytes = 0;
  std::map<std::string, uint64_t> aborts;
  for (const Json& each : part(cluster.after, "nodes")) {
    const Span node{element_with(part(cluster.before, "nodes"), "node", part(each, "node")), each,
                    cluster.seconds};
    figures.node_rows.push_back(node_row(node));
    const NodeFigures& row = figures.node_rows.back();
    figures.write_commits_per_s += node.rate("commits");
    figures.read_only_commits_per_s += node.rate("read_only_commits");
    add_results(node.at("aborts"), aborts);
    figures.log_bytes_per_s += row.log_bytes_per_s;
    figures.sessions += row.sessions;
    figures.requests_per_s += row.requests_per_s;
    figures.payload_bytes += whole(part(each, "sessions"), "payload_bytes");
    figures.refused_per_s += node.at("sessions").rate("refused");
    figures.cache_bytes += row.cache_bytes;
    reads += node.at("snapshot_cache").count("reads");
    misses += node.at("snapshot_cache").count("misses");
    const Json& pool = part(each, "pool");
    const uint64_t bytes = whole(pool, "total") * whole(pool, "page_bytes");
    figures.pool_bytes += bytes;
    used_bytes += static_cast<double>(bytes) * pool_used_share(pool);
  }
  for (const auto& [reason, count] : aborts) {
    if (count != 0) figures.aborts_per_s[reason] = static_cast<double>(count) / figures.seconds;
  }
  figures.pool_used_percent = percent_of(used_bytes, static_cast<double>(figures.pool_bytes));
  figures.cache_hit_percent = hit_percent(reads, misses);
}

void add_sessions_of(const Sample& before, const Sample& after, Figures& figures) {
  for (size_t node = 0; node < after.sessions.size(); ++node) {
    static const Json none;
    const Json& old = node < before.sessions.size() ? before.sessions[node] : none;
    for (const Json& each : after.sessions[node]) {
      const Span span{element_with(old, "session", part(each, "session")), each, figures.seconds};
      SessionFigures row;
      row.session = std::to_string(node) + "/" + std::to_string(whole(each, "session"));
      row.state = word(each, "state");
      row.pid = each.value("pid", int64_t{0});
      row.program = word(each, "program");
      row.in_flight = whole(each, "in_flight");
      row.procedure = word(each, "oldest_procedure");
      row.oldest_s = each.value("oldest_s", 0.0);
      // Without the earlier count the rate would cover the time since the session began.
      row.answered_per_s = span.before.is_object() ? span.rate("answered") : 0;
      figures.session_rows.push_back(std::move(row));
    }
  }
}

/// Adds the times between the ends of epochs and their durability.
void add_epochs(const Json& before, const Json& after, Figures& figures) {
  const auto stages =
      bench::epoch_stages_between(part(before, "acknowledgement"), part(after, "acknowledgement"));
  for (const auto& stage : stages.stages) {
    if (stage.name != "total") continue;
    const auto us = [&](double quantile) {
      return static_cast<double>(stage.times.quantile_ns(quantile)) * 1e-3;
    };
    figures.epochs = Quantiles{stage.times.count(), us(0.5), us(0.99), us(0.999)};
  }
}

void add_state(const Json& status, Figures& figures) {
  if (!status.is_object()) return;  // the coordinator has not answered
  figures.name = word(status, "name");
  figures.state = word(status, "state");
  figures.durability = word(status, "durability");
  const std::vector<Problem> problems = cli::find_problems(status);
  figures.problems = problems.size();
  if (!problems.empty()) figures.problem = problems.front().what;
  figures.durability_lag_us = whole(part(status, "epochs"), "durability_lag_us");
  const Json& snapshots = part(status, "snapshots");
  figures.snapshot = whole(snapshots, "newest");
  figures.snapshot_epoch = whole(snapshots, "epoch");
  figures.job = word(part(snapshots, "run"), "phase");
}

Json quantiles_json(const Quantiles& latencies) {
  return {{"count", latencies.count},
          {"p50", latencies.p50_us},
          {"p99", latencies.p99_us},
          {"p99.9", latencies.p999_us}};
}

Json procedures_json(const Figures& figures) {
  Json rows = Json::array();
  for (const ProcedureFigures& row : figures.procedure_rows) {
    rows.push_back({{"name", row.name},
                    {"commits_per_s", row.commits_per_s},
                    {"aborts_per_s", row.aborts_per_s},
                    {"retries_per_s", row.retries_per_s},
                    {"abort_reason", row.abort_reason},
                    {"execution_us", quantiles_json(row.execution)},
                    {"durable_us", quantiles_json(row.durable)}});
  }
  return rows;
}

Json storages_json(const Figures& figures) {
  Json rows = Json::array();
  for (const StorageFigures& row : figures.storage_rows) {
    rows.push_back({{"name", row.name},
                    {"type", row.type},
                    {"operations_per_s", row.operations_per_s},
                    {"pages_read_per_s", row.pages_read_per_s},
                    {"evictions_per_s", row.evictions_per_s},
                    {"cache_bytes", row.cache_bytes},
                    {"pages_read", row.pages_read}});
  }
  return rows;
}

Json nodes_json(const Figures& figures) {
  Json rows = Json::array();
  for (const NodeFigures& row : figures.node_rows) {
    rows.push_back({{"node", row.node},
                    {"state", row.state},
                    {"commits_per_s", row.commits_per_s},
                    {"aborts_per_s", row.aborts_per_s},
                    {"pool_used_percent", row.pool_used_percent},
                    {"remote_percent", row.remote_percent},
                    {"log_bytes_per_s", row.log_bytes_per_s},
                    {"syncs_per_s", row.syncs_per_s},
                    {"epoch_lag", row.epoch_lag},
                    {"cache_bytes", row.cache_bytes},
                    {"cache_hit_percent", row.cache_hit_percent},
                    {"sessions", row.sessions},
                    {"requests_per_s", row.requests_per_s},
                    {"stalls_per_s", row.stalls_per_s}});
  }
  return rows;
}

Json sessions_json(const Figures& figures) {
  Json rows = Json::array();
  for (const SessionFigures& row : figures.session_rows) {
    rows.push_back({{"session", row.session},
                    {"state", row.state},
                    {"pid", row.pid},
                    {"program", row.program},
                    {"in_flight", row.in_flight},
                    {"oldest_procedure", row.procedure},
                    {"oldest_s", row.oldest_s},
                    {"answered_per_s", row.answered_per_s}});
  }
  return rows;
}

}  // namespace

double quantile_us(std::span<const uint64_t> counts, std::span<const uint64_t> bounds_ns,
                   double quantile) {
  CHECK(counts.size() == bounds_ns.size() + 1 && quantile >= 0 && quantile <= 1);
  const uint64_t all = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  if (all == 0) return 0;
  const double wanted = quantile * static_cast<double>(all);
  double below = 0;
  for (size_t i = 0; i < bounds_ns.size(); ++i) {
    const auto in_bucket = static_cast<double>(counts[i]);
    if (in_bucket > 0 && below + in_bucket >= wanted) {
      const double low = i == 0 ? 0 : static_cast<double>(bounds_ns[i - 1]);
      const double width = static_cast<double>(bounds_ns[i]) - low;
      return (low + width * (wanted - below) / in_bucket) * 1e-3;
    }
    below += in_bucket;
  }
  return bounds_ns.empty() ? 0 : static_cast<double>(bounds_ns.back()) * 1e-3;
}

double Figures::all_aborts_per_s() const {
  double all = 0;
  for (const auto& [reason, rate] : aborts_per_s) all += rate;
  return all;
}

Figures figures_between(const Sample& before, const Sample& after) {
  Figures figures;
  figures.note = after.note;
  add_state(after.status, figures);
  const bool is_one_incarnation =
      before.has_counters() && after.has_counters() &&
      part(before.status, "uuid") == part(after.status, "uuid") &&
      part(before.status, "incarnation") == part(after.status, "incarnation");
  if (!is_one_incarnation || after.time_ns <= before.time_ns) return figures;
  figures.seconds = static_cast<double>(after.time_ns - before.time_ns) * 1e-9;
  figures.is_recent = true;
  const Span cluster{before.status, after.status, figures.seconds};
  add_nodes_of(cluster, figures);
  add_procedures_of(before, after, figures);
  add_storages_of(cluster, figures);
  add_sessions_of(before, after, figures);
  add_epochs(before.status, after.status, figures);
  return figures;
}

Json figures_json(const Figures& figures) {
  Json aborts = Json::object();
  for (const auto& [reason, rate] : figures.aborts_per_s) aborts[reason] = rate;
  Json json = {{"schema_version", 1},
               {"name", figures.name},
               {"state", figures.state},
               {"note", figures.note},
               {"healthy", figures.state == "running" && figures.problems == 0},
               {"problem", figures.problem}};
  if (!figures.is_recent) return json;
  json["seconds"] = figures.seconds;
  json["durability"] = figures.durability;
  json["commits_per_s"] = figures.commits_per_s();
  json["write_commits_per_s"] = figures.write_commits_per_s;
  json["read_only_commits_per_s"] = figures.read_only_commits_per_s;
  json["aborts_per_s"] = std::move(aborts);
  json["execution_us"] = quantiles_json(figures.execution);
  json["durable_us"] = quantiles_json(figures.durable);
  json["epoch_durable_us"] = figures.epochs ? quantiles_json(*figures.epochs) : Json();
  json["durability_lag_us"] = figures.durability_lag_us;
  json["log_bytes_per_s"] = figures.log_bytes_per_s;
  json["sessions"] = {{"open", figures.sessions},
                      {"payload_bytes", figures.payload_bytes},
                      {"requests_per_s", figures.requests_per_s},
                      {"refused_per_s", figures.refused_per_s}};
  json["pool"] = {{"bytes", figures.pool_bytes}, {"used_percent", figures.pool_used_percent}};
  json["snapshot_cache"] = {{"bytes", figures.cache_bytes},
                            {"hit_percent", figures.cache_hit_percent}};
  json["snapshots"] = {
      {"newest", figures.snapshot}, {"epoch", figures.snapshot_epoch}, {"phase", figures.job}};
  json["procedures"] = procedures_json(figures);
  json["storages"] = storages_json(figures);
  json["nodes"] = nodes_json(figures);
  json["session_rows"] = sessions_json(figures);
  return json;
}

}  // namespace atolldb::top
