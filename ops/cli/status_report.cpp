#include "ops/cli/status_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>

#include "bench/driver/epoch_stages.h"
#include "ops/cli/terminal.h"

namespace atolldb::cli {
namespace {

uint64_t number(const Json& json, const char* member) { return json.value(member, uint64_t{0}); }

uint64_t aborts_of(const Json& node) {
  uint64_t total = 0;
  const Json aborts = node.value("aborts", Json::object());  // items() below refers to this object
  for (const auto& [reason, count] : aborts.items()) {
    total += count.get<uint64_t>();
  }
  return total;
}

/// Returns the aborts of all nodes by reason, in one line.
std::string aborts_text(const Json& nodes) {
  std::map<std::string, uint64_t> sums;
  for (const Json& node : nodes) {
    const Json aborts = node.value("aborts", Json::object());
    for (const auto& [reason, count] : aborts.items()) {
      sums[reason] += count.get<uint64_t>();
    }
  }
  std::string text;
  for (const auto& [reason, count] : sums) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", reason, format_count(count));
  }
  return text.empty() ? "none" : text;
}

std::string node_table(const Json& status) {
  std::vector<std::vector<std::string>> rows = {{"NODE", "STATE", "PID", "WORKERS", "NUMA",
                                                 "COMMITS", "ABORTS", "POOL", "USED", "MAPPED AS",
                                                 "REMOTE"}};
  for (const Json& node : status.value("nodes", Json::array())) {
    const Json pool = node.value("pool", Json::object());
    const int64_t numa = node.value("numa", int64_t{-1});
    const auto local = static_cast<double>(number(node, "local_accesses"));
    const auto remote = static_cast<double>(number(node, "remote_accesses"));
    rows.push_back({"node" + std::to_string(number(node, "node")), node.value("state", ""),
                    std::to_string(number(node, "pid")), std::to_string(number(node, "workers")),
                    numa < 0 ? "auto" : std::to_string(numa),
                    format_count(number(node, "commits") + number(node, "read_only_commits")),
                    format_count(aborts_of(node)),
                    format_bytes(number(pool, "total") * number(pool, "page_bytes")),
                    fmt::format("{:.1f} %", 100 * pool_used_share(pool)),
                    format_bytes(number(node, "real_page_bytes")),
                    format_percent(remote, local + remote)});
  }
  return format_table(rows);
}

/// Returns the table of loggers, or an empty text if the cluster has no log.
std::string logger_table(const Json& status) {
  std::vector<std::vector<std::string>> rows = {
      {"LOGGER", "DURABLE EPOCH", "LAG", "WRITTEN", "BATCHES", "WRITE p50 p99", "SYNC p50 p99"}};
  const auto times = [](const Json& us) {
    return fmt::format("{:.1f} {:.1f} ms", us.value("p50", 0.0) * 1e-3,
                       us.value("p99", 0.0) * 1e-3);
  };
  for (const Json& node : status.value("nodes", Json::array())) {
    for (const Json& logger : node.value("loggers", Json::array())) {
      rows.push_back({fmt::format("node{}/{}", number(node, "node"), number(logger, "logger")),
                      format_count(number(logger, "durable_epoch")),
                      std::to_string(number(logger, "epoch_lag")),
                      format_bytes(number(logger, "written_bytes")),
                      format_count(number(logger, "batches")),
                      times(logger.value("write_us", Json::object())),
                      times(logger.value("sync_us", Json::object()))});
    }
  }
  return rows.size() == 1 ? "" : format_table(rows) + "\n";
}

/// Returns the table of the stages of epochs and the line about the slowest epoch, or an empty text
/// if the cluster has no log.
std::string stage_table(const Json& status) {
  const Json times = status.value("acknowledgement", Json::object());
  const auto ms = [](const Json& us, const char* quantile) {
    return fmt::format("{:.2f}", us.value(quantile, 0.0) * 1e-3);
  };
  std::vector<std::vector<std::string>> rows = {
      {"EPOCH STAGE", "p50 ms", "p99", "p99.9", "MAX", "SLOWEST"}};
  for (const Json& stage : times.value("stages", Json::array())) {
    const Json us = stage.value("us", Json::object());
    rows.push_back({stage.value("stage", ""), ms(us, "p50"), ms(us, "p99"), ms(us, "p99.9"),
                    ms(us, "max"), stage.value("slowest", "")});
  }
  if (rows.size() == 1) return "";
  const Json slowest = times.value("slowest_epoch", Json());
  const std::string line = slowest.is_object()
                               ? bench::slowest_epoch_text(slowest) +
                                     fmt::format(", {} s ago\n", number(slowest, "age_s"))
                               : "";
  return format_table(rows) + line + "\n";
}

/// Returns the line about restarts, or an empty text if there was no restart.
std::string restarts_text(const Json& status) {
  const Json restarts = status.value("restarts", Json());
  if (!restarts.is_object()) return "";
  const auto since =
      std::time(nullptr) - static_cast<std::time_t>(restarts.value("last_time", int64_t{0}));
  return fmt::format("  restarts       {}, the last one {} s ago: {}\n", number(restarts, "count"),
                     std::max<std::time_t>(since, 0), restarts.value("last_reason", ""));
}

/// Returns the lag of durability as text, or "" if commits become durable within an epoch.
std::string lag_text(const Json& epochs) {
  const uint64_t lag_us = number(epochs, "durability_lag_us");
  return lag_us == 0 ? "" : fmt::format(" (lag {:.1f} ms)", static_cast<double>(lag_us) * 1e-3);
}

/// Returns the line about snapshots, or "" if there is no snapshot.
std::string snapshot_text(const Json& status) {
  const Json snapshots = status.value("snapshots", Json::object());
  if (number(snapshots, "newest") == 0) return "";
  std::string text = fmt::format("  snapshot       {}, of epoch {}", number(snapshots, "newest"),
                                 format_count(number(snapshots, "epoch")));
  const Json install = snapshots.value("install", Json::object());
  if (install.contains("error")) {
    text += fmt::format("; {} is not installed: {}", number(install, "snapshot"),
                        install.value("error", ""));
  } else if (install.contains("took_ms")) {
    text += fmt::format("; {} was installed in {} ms, {} pages evicted",
                        number(install, "snapshot"), format_count(number(install, "took_ms")),
                        format_count(number(install, "dropped")));
  }
  return text + "\n";
}

/// Returns the line about the replay of this start, or "" if it replayed nothing.
std::string replay_text(const Json& checkpoints) {
  const Json replay = checkpoints.value("replay", Json::object());
  if (number(replay, "records") == 0) return "";
  return fmt::format(
      "  replay         {} ms: {} records, {} of them overwrote older ones, {} were older\n",
      format_count(number(replay, "ms")), format_count(number(replay, "records")),
      format_count(number(replay, "overwritten")), format_count(number(replay, "older")));
}

/// Returns the lines about checkpoints, or "" if the cluster takes none.
std::string checkpoint_text(const Json& status) {
  const Json checkpoints = status.value("checkpoints", Json());
  if (!checkpoints.is_object()) return "";
  std::string text = "  checkpoint     none yet";
  if (number(checkpoints, "newest") != 0) {
    text = fmt::format("  checkpoint     {}: {} records, {}, replay epoch {}",
                       number(checkpoints, "newest"), format_count(number(checkpoints, "records")),
                       format_bytes(number(checkpoints, "bytes")),
                       format_count(number(checkpoints, "replay_epoch")));
  }
  if (number(checkpoints, "taken") != 0) {
    text += fmt::format("; the last one took {} ms", format_count(number(checkpoints, "last_ms")));
  }
  if (checkpoints.value("is_running", false)) text += "; the next one is being taken";
  const std::string error = checkpoints.value("error", "");
  if (!error.empty()) text += "; the last attempt failed: " + printable(error);
  return text + "\n" + replay_text(checkpoints);
}

/// Returns how many pages transactions may take, and how long they have waited for them, or "" if
/// there was never a limit.
std::string page_limit_text(const Json& nodes) {
  std::string limits;
  uint64_t delays = 0;
  uint64_t delay_ms = 0;
  for (const Json& node : nodes) {
    delays += number(node, "page_delays");
    delay_ms += number(node, "page_delay_ms");
    const uint64_t limit = number(node.value("pool", Json::object()), "limit_pages_per_s");
    if (limit == 0) continue;
    limits += fmt::format("{}node{} {}", limits.empty() ? "" : ", ", number(node, "node"),
                          format_count(limit));
  }
  if (limits.empty() && delays == 0) return "";
  return fmt::format("  page limit     {}; transactions have waited {} times, {:.1f} s in all\n",
                     limits.empty() ? "none now" : limits + " pages/s, until a snapshot frees some",
                     format_count(delays), static_cast<double>(delay_ms) * 1e-3);
}

/// Returns which storages bring changed records into memory without their pages, and how many such
/// records there are, or "" if there are none.
std::string cold_writes_text(const Json& status, const Json& nodes) {
  uint64_t added = 0;
  uint64_t drained = 0;
  for (const Json& node : nodes) {
    added += number(node, "delta_added");
    drained += number(node, "delta_drained");
  }
  std::string names;
  for (const Json& storage : status.value("storages", Json::array())) {
    if (storage.value("cold_writes", "") != "records") continue;
    names += (names.empty() ? "" : ", ") + storage.value("name", "");
  }
  if (names.empty() && added == drained) return "";
  return fmt::format(
      "  cold writes    {}; {} changed records are in memory without their pages\n",
      names.empty() ? "bring pages into memory" : "bring records into memory: " + names,
      format_count(added - std::min(added, drained)));
}

/// Returns the size of the caches of snapshot pages, and how they serve reads, or "" if there are
/// none.
std::string snapshot_cache_text(const Json& nodes) {
  uint64_t bytes = 0;
  uint64_t lent = 0;
  uint64_t reads = 0;
  uint64_t misses = 0;
  for (const Json& node : nodes) {
    const Json cache = node.value("snapshot_cache", Json::object());
    bytes += number(cache, "bytes");
    lent += number(cache, "lent_bytes");
    reads += number(cache, "reads");
    misses += number(cache, "misses");
  }
  if (bytes == 0) return "";
  return fmt::format("  snapshot cache {}, of which the pools lend {}; {} page reads, {} misses\n",
                     format_bytes(bytes), format_bytes(lent), format_count(reads),
                     format_count(misses));
}

/// Returns the budget of memory, and whether the cache or the pool of most nodes should get more of
/// it, or "" if there is nothing to say.
std::string memory_text(const Json& nodes) {
  uint64_t total = 0;
  int caches = 0;  // nodes whose cache should get more, minus those whose pool should
  for (const Json& node : nodes) {
    const Json memory = node.value("memory", Json::object());
    total = number(memory, "total_bytes");
    const std::string more = memory.value("more", "none");
    caches += more == "cache" ? 1 : more == "pool" ? -1 : 0;
  }
  std::string text = total == 0 ? "" : "a budget of " + format_bytes(total) + " per node";
  if (caches != 0 && !text.empty()) text += "; ";
  if (caches > 0) text += "more for the snapshot cache would save most waits";
  if (caches < 0) text += "more for the pool would save most waits";
  return text.empty() ? "" : "  memory         " + text + "\n";
}

/// Returns how often transactions waited for free pages or for log room.
std::string stalls_text(const Json& nodes) {
  uint64_t pages = 0;
  uint64_t log = 0;
  for (const Json& node : nodes) {
    pages += number(node, "page_stalls");
    log += number(node, "log_stalls");
  }
  return fmt::format("  stalls         {} for free pages, {} for room in a log\n",
                     format_count(pages), format_count(log));
}

/// Returns the line with the URL of the status page, or "" if there is none.
std::string status_page_text(const Json& status) {
  const Json url = status.value("status_page", Json());
  return url.is_string() ? fmt::format("  status page    {}\n", url.get<std::string>()) : "";
}

/// Returns a line for each network port with its key, or "" if there is none.
std::string network_text(const Json& status) {
  std::string text;
  for (const Json& process : status.value("processes", Json::array())) {
    if (!process.contains("network")) continue;
    const Json& network = process["network"];
    const std::string key = network.value("key", "");
    text += fmt::format("  network        {} of {}, {}\n", network.value("endpoint", ""),
                        process.value("role", ""), key.empty() ? "without keys" : "key " + key);
  }
  return text;
}

std::string process_table(const Json& status) {
  std::vector<std::vector<std::string>> rows = {{"PROCESS", "PID", "METRICS"}};
  for (const Json& process : status.value("processes", Json::array())) {
    const Json metrics = process.value("metrics", Json());
    const std::string where = metrics.is_string() ? metrics.get<std::string>() : "";
    rows.push_back({process.value("role", ""), std::to_string(number(process, "pid")),
                    where.empty() ? "off" : "http://" + where + "/metrics"});
  }
  return format_table(rows) + network_text(status);
}

/// Returns the member, or an empty object if it is missing. A recovery may end between two
/// requests.
Json object_of(const Json& json, const char* member) {
  const Json found = json.value(member, Json());
  return found.is_object() ? found : Json::object();
}

/// Returns the progress of a start-up, or an empty text if it is unknown.
std::string start_text(const Json& status) {
  const auto report = parse_start_report(object_of(status, "start").dump());
  return report ? progress_text(*report) : "";
}

/// Returns the line about the archive, or "" without one.
std::string archive_text(const Json& status) {
  const Json archive = object_of(status, "archive");
  if (archive.empty()) return "";
  return fmt::format("  archive        up to epoch {}, last {}, waiting {} files with {}\n",
                     format_count(number(archive, "epoch")),
                     archive.value("file", "").empty() ? "none" : archive.value("file", ""),
                     format_count(number(archive, "waiting_files")),
                     format_bytes(number(archive, "waiting_bytes")));
}

}  // namespace

std::string progress_text(const StartReport& report) {
  std::string text = report.step;
  if (const auto percent = report.percent()) {
    text += fmt::format(", {} % ({} of {})", *percent, format_bytes(report.done_bytes),
                        format_bytes(report.total_bytes));
  } else if (report.done_bytes != 0) {
    text += fmt::format(", {}", format_bytes(report.done_bytes));
  }
  if (report.bytes_per_second != 0) {
    text += fmt::format(", {}/s", format_bytes(report.bytes_per_second));
  }
  if (report.eta_seconds) text += fmt::format(", about {} s left", *report.eta_seconds);
  return text;
}

std::vector<Problem> find_problems(const Json& status) {
  return atolldb::find_problems(status, start_text(status));
}

std::string status_text(const Json& status) {
  const std::vector<Problem> problems = find_problems(status);
  const std::string name = status.value("name", "");
  std::string text =
      problems.empty()
          ? fmt::format("cluster \"{}\" is {}\n", name, paint(Colour::green, "healthy"))
          : fmt::format("cluster \"{}\" is {}\n", name, paint(Colour::red, "not healthy"));
  for (const Problem& problem : problems) {
    text += "  what is wrong: " + problem.what + "\n  what to do:    " + problem.what_to_do + "\n";
  }
  const Json nodes = status.value("nodes", Json::array());
  const Json epochs = status.value("epochs", Json::object());
  text += fmt::format("  state          {}\n", status.value("state", ""));
  if (const std::string progress = start_text(status); !progress.empty()) {
    text += fmt::format("  progress       {}, {} s since it began\n", progress,
                        number(object_of(status, "start"), "elapsed_seconds"));
  }
  text += status_page_text(status);
  // The coordinator has not answered, so nothing more is known.
  if (!status.contains("epochs")) return text + restarts_text(status);
  text += fmt::format(
      "  throughput     {} transactions/s (durability {}, over the last {:.2f} s)\n",
      format_count(static_cast<uint64_t>(std::llround(status.value("throughput_tps", 0.0)))),
      status.value("durability", ""), status.value("throughput_seconds", 0.0));
  text += fmt::format("  epochs         current {}, {} {}{}, oldest begin {}\n",
                      number(epochs, "current"),
                      status.value("durability", "") == "off" ? "final" : "durable",
                      number(epochs, "durable"), lag_text(epochs), number(epochs, "oldest_begin"));
  text += fmt::format("  storages       {}\n", status.value("storages", Json::array()).size());
  for (const Json& storage : status.value("storages", Json::array())) {
    if (!storage.contains("drop")) continue;
    text += fmt::format("  drop           storage \"{}\": {}\n", storage.value("name", ""),
                        storage.value("drop", ""));
  }
  text += fmt::format("  aborts         {}\n", aborts_text(nodes));
  text += stalls_text(nodes) + page_limit_text(nodes) + cold_writes_text(status, nodes) +
          snapshot_cache_text(nodes) + memory_text(nodes) + snapshot_text(status) +
          checkpoint_text(status) + archive_text(status);
  text += restarts_text(status) + "\n";
  return text + node_table(status) + "\n" + logger_table(status) + stage_table(status) +
         process_table(status);
}

Json status_json(Json status) {
  Json list = Json::array();
  for (const Problem& problem : find_problems(status)) {
    list.push_back({{"what", problem.what}, {"what_to_do", problem.what_to_do}});
  }
  status["schema_version"] = 1;
  status["healthy"] = list.empty();
  status["problems"] = std::move(list);
  status.erase("v");
  status.erase("ok");
  return status;
}

}  // namespace atolldb::cli
