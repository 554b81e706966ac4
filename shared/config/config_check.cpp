#include "shared/config/config_keys.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string_view>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/pointer.h"
#include "shared/config/config_values.h"
#include "shared/config/default_run_dir.h"
#include "shared/config/job_threads.h"
#include "shared/config/memory_split.h"

namespace atolldb {
namespace {

using namespace config_limits;

/// With a lower hang limit, one late heartbeat would count as a hang.
constexpr int64_t kMinHeartbeatsPerHangLimit = 3;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Returns $HOME, or else the home folder of the user's passwd entry, because cron and system units
/// may set no variables. Returns "" if neither is an absolute path.
std::string home_folder() {
  const std::string home = environment("HOME");
  if (home.starts_with('/')) return home;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> text{};
  const int failed = getpwuid_r(geteuid(), &entry, text.data(), text.size(), &found);
  if (failed != 0 || found == nullptr || entry.pw_dir == nullptr) return "";
  const std::string of_user = entry.pw_dir;
  return of_user.starts_with('/') ? of_user : "";
}

/// Returns `$variable/atoll`, or `<home>/<below_home>/atoll`. The XDG specification ignores
/// relative values. A user without a home gets a folder that survives a restart of the machine, and
/// that differs from every default of run_dir.
std::string user_folder(const char* variable, const char* below_home) {
  const std::string folder = environment(variable);
  if (folder.starts_with('/')) return folder + "/atoll";
  CHECK(variable != nullptr && below_home != nullptr);
  const std::string home = home_folder();
  if (home.empty()) return "/var/tmp/atoll-" + std::to_string(geteuid()) + "/" + below_home;
  CHECK(home.starts_with('/'));
  return (home == "/" ? "" : home) + "/" + below_home + "/atoll";
}

/// Returns whether `path` is `folder` or lies in it. Both are absolute and normalised. Other paths
/// do not count as lying in the root folder, because a cluster never removes or copies that folder.
bool is_within(const std::string& path, const std::string& folder) {
  return path == folder || (folder != "/" && path.starts_with(folder + "/"));
}

std::string node_key(size_t index, const char* name) {
  return "node[" + std::to_string(index) + "]." + name;
}

/// Reports folders that serve two purposes, because data would be lost. run_dir is removed with its
/// cluster, and its lock file has the same name as that of data_dir. Copying or discarding data_dir
/// would include the sockets.
void check_folders(const Config& config, const ConfigReport& report) {
  const Config::Cluster& cluster = config.cluster;
  if (cluster.run_dir.empty()) return;
  const auto refuse = [&](const std::string& key, const std::string& path, const std::string& other,
                          const std::string& other_path) {
    report(key, "a folder apart from " + other + " (" + quote_toml(other_path) + ")",
           quote_toml(path), "give each of them its own folder");
  };
  if (is_within(cluster.log_dir, cluster.run_dir)) {
    refuse("cluster.log_dir", cluster.log_dir, "cluster.run_dir", cluster.run_dir);
  }
  if (cluster.log_dir == cluster.data_dir) {
    refuse("cluster.data_dir", cluster.data_dir, "cluster.log_dir", cluster.log_dir);
  }
  const auto check_data = [&](const std::string& key, const std::string& path) {
    if (is_within(path, cluster.run_dir) || is_within(cluster.run_dir, path)) {
      refuse(key, path, "cluster.run_dir", cluster.run_dir);
    }
  };
  check_data("cluster.data_dir", cluster.data_dir);
  for (size_t index = 0; index < config.nodes.size(); ++index) {
    for (const std::string& directory : config.nodes[index].directories) {
      check_data(node_key(index, "directories"), directory);
    }
  }
}

/// Returns text like "0-3, 8" for ascending ids.
std::string ranges_text(const std::vector<int32_t>& ids) {
  CHECK(std::ranges::is_sorted(ids));
  std::string text;
  for (size_t first = 0; first < ids.size();) {
    size_t last = first;
    while (last + 1 < ids.size() && ids[last + 1] == ids[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(ids[first]);
    if (last != first) text += "-" + std::to_string(ids[last]);
    first = last + 1;
  }
  return text;
}

void check_placement(const Config& config, const Machine& machine, const ConfigReport& report) {
  const auto check_cpu = [&](int32_t cpu, size_t index, const char* key) {
    CHECK(cpu >= 0 && cpu < kMaxCpus);
    if (machine.has_cpu(cpu)) return;
    report(node_key(index, key),
           "CPUs that this process may use (" + ranges_text(machine.cpus) + ")",
           std::to_string(cpu), "");
  };
  std::map<int32_t, size_t> node_of_cpu;
  for (size_t index = 0; index < config.nodes.size(); ++index) {
    const NodeConfig& node = config.nodes[index];
    if (node.numa_node >= 0 && !machine.has_numa_node(node.numa_node)) {
      report(node_key(index, "numa_node"),
             "-1 or a NUMA node of this machine (" + ranges_text(machine.numa_nodes) + ")",
             std::to_string(node.numa_node), "");
    }
    for (const int32_t cpu : node.cpus) {
      check_cpu(cpu, index, "cpus");
      const auto [other, is_new] = node_of_cpu.emplace(cpu, index);
      if (!is_new && other->second != index) {
        report(node_key(index, "cpus"), "CPUs that no other node uses", std::to_string(cpu),
               node_key(other->second, "cpus") + " has it too");
      }
    }
    for (const int32_t cpu : node.gleaner_cpus) check_cpu(cpu, index, "gleaner_cpus");
  }
}

/// Returns a size as in a config file.
std::string size_text(uint64_t bytes) {
  return quote_toml(format_size(static_cast<int64_t>(bytes)));
}

/// Reports a budget that is too small, and sizes beside a budget that are not their parts of it.
/// Equal sizes are permitted, because the text of an effective config has all three keys.
void check_memory_total(const Config& config, const ConfigReport& report) {
  const Config::Memory& memory = config.memory;
  if (memory.total == 0) return;
  if (memory.total < kMinMemoryTotal) {
    report("memory.total", size_text(0) + ", or at least " + size_text(kMinMemoryTotal),
           size_text(memory.total), "the smallest pool and the smallest cache have 2MiB each");
    return;
  }
  const MemorySplit split = split_memory(config);
  const auto check = [&](const char* key, uint64_t part, uint64_t given) {
    if (given == part) return;
    report(key,
           "no value beside memory.total (" + size_text(memory.total) + "), whose part is " +
               size_text(part),
           size_text(given), "remove it, or remove memory.total");
  };
  check("memory.volatile_pool", split.pool, memory.volatile_pool);
  check("memory.snapshot_cache", split.cache, memory.snapshot_cache);
}

void check_memory(const Config& config, const Machine& machine, const ConfigReport& report) {
  // No overflow: there are at most 255 nodes, and each needs less than 17 TiB.
  const bool has_snapshots = config.durability.scheme == DurabilityScheme::gleaned;
  uint64_t workers = 0;
  uint64_t reducers = 0;
  for (const NodeConfig& node : config.nodes) {
    workers += node.workers;
    if (config.durability.mode != DurabilityMode::off && has_snapshots) {
      reducers += inbox_count(node);
    }
  }
  CHECK(workers <= uint64_t{kMaxNodes} * kMaxWorkersPerNode);
  CHECK(config.memory.volatile_pool % kSegmentStepBytes == 0);
  CHECK(config.memory.log_buffer % kSegmentStepBytes == 0);
  const uint64_t pools = config.memory.volatile_pool * config.nodes.size();
  const uint64_t caches = has_snapshots ? config.memory.snapshot_cache * config.nodes.size() : 0;
  const uint64_t buffers = config.memory.log_buffer * workers;
  const uint64_t exchange = config.memory.exchange * reducers;
  constexpr uint64_t kMib = uint64_t{1} << 20;  // the text of other sizes would be in bytes
  const uint64_t tables = has_snapshots ? (snapshot_table_bytes(config.memory) + kMib - 1) / kMib *
                                              kMib * config.nodes.size()
                                        : 0;
  const uint64_t total = pools + caches + tables + buffers + exchange;
  CHECK(total >= pools && total >= caches + tables && total >= buffers && total >= exchange);
  if (total <= machine.memory_bytes) return;
  const auto text = [](uint64_t bytes) { return format_size(static_cast<int64_t>(bytes)); };
  const std::string nodes = std::to_string(config.nodes.size()) + " nodes";
  const char* key = "memory.volatile_pool";
  if (caches > pools && caches >= buffers) key = "memory.snapshot_cache";
  if (buffers > pools && buffers > caches) key = "memory.log_buffer";
  if (exchange > std::max({pools, caches, buffers})) key = "memory.exchange";
  const bool is_split = key == std::string_view("memory.volatile_pool") ||
                        key == std::string_view("memory.snapshot_cache");
  if (config.memory.total != 0 && is_split) key = "memory.total";
  report(key,
         "pools, caches and buffers of at most this machine's " +
             text(machine.memory_bytes >> 20 << 20) + " in all",
         text(total),
         text(pools) + " are volatile pools (" + nodes + "), " + text(caches) +
             " snapshot caches, " + text(tables) + " tables of their frames" +
             (config.memory.lend_pool ? " and of pages that pools lend" : "") + ", " +
             text(buffers) + " log buffers (" + std::to_string(workers) + " workers), " +
             text(exchange) + " exchange (" + std::to_string(reducers) + " reducers)");
}

/// A call holds its input while it makes its output, so without room for both, a call with the
/// longest input and output would never succeed.
void check_payload_memory(const Config& config, const ConfigReport& report) {
  const Config::Procedures& limits = config.procedures;
  // No overflow: both have limits of at most 1 GiB.
  const uint64_t most = limits.max_input + limits.max_output;
  if (most <= limits.payload_memory) return;
  report(
      "procedures.payload_memory",
      "at least procedures.max_input and procedures.max_output together (" + size_text(most) + ")",
      size_text(limits.payload_memory), "a call holds its input while it makes its output");
}

void check_relations(const Config& config, const ConfigReport& report) {
  CHECK(config.cluster.heartbeat.count() > 0);
  if (config.cluster.hang_limit < kMinHeartbeatsPerHangLimit * config.cluster.heartbeat) {
    const auto us = [](auto time) {
      return quote_toml(format_duration_us(std::chrono::microseconds(time).count()));
    };
    report("cluster.hang_limit",
           "at least " + std::to_string(kMinHeartbeatsPerHangLimit) + " times cluster.heartbeat (" +
               us(config.cluster.heartbeat) + ")",
           us(config.cluster.hang_limit.get()), "");
  }
  if (config.gleaner.pool_high_water <= config.gleaner.pool_low_water) {
    report(
        "gleaner.pool_high_water",
        "more than gleaner.pool_low_water (" + std::to_string(config.gleaner.pool_low_water) + ")",
        std::to_string(config.gleaner.pool_high_water), "");
  }
  check_payload_memory(config, report);
  const auto nodes = static_cast<int64_t>(config.nodes.size());
  if (config.metrics.base_port != 0 && config.metrics.base_port + nodes > kMaxPort) {
    report("metrics.base_port",
           "0, or at most " + std::to_string(kMaxPort - nodes) + " with " + std::to_string(nodes) +
               " nodes",
           std::to_string(config.metrics.base_port), "");
  }
  // Only values from 1 on are chosen by the user. 0 takes a port that is free.
  const int64_t page_port = config.status_page.enabled ? config.status_page.port : 0;
  CHECK(page_port <= kMaxPort);
  const int64_t base_port = config.metrics.enabled ? config.metrics.base_port : 0;
  if (page_port != 0 && base_port != 0 && page_port >= base_port &&
      page_port <= base_port + nodes) {
    report("status_page.port",
           "a port outside of those of the metrics (" + std::to_string(base_port) + " to " +
               std::to_string(base_port + nodes) + ")",
           std::to_string(page_port), "change it, or metrics.base_port");
  }
  // Values from the file were checked when they were read. run_dir may also come from the
  // environment.
  if (config.cluster.run_dir.size() > kMaxRunDirBytes) {
    report("cluster.run_dir",
           "a path of at most " + std::to_string(kMaxRunDirBytes) +
               " bytes (names of Unix sockets are short)",
           quote_toml(config.cluster.run_dir), "set cluster.run_dir or XDG_RUNTIME_DIR");
  }
}

bool is_loopback_address(const std::string& address) {
  return address == "::1" || address.starts_with("127.");
}

void check_network(const Config& config, const ConfigReport& report) {
  const Config::Network& network = config.network;
  const auto nodes = static_cast<int64_t>(config.nodes.size());
  if (network.base_port != 0 && network.base_port + nodes - 1 > kMaxPort) {
    report("network.base_port",
           "0, or at most " + std::to_string(kMaxPort + 1 - nodes) + " with " +
               std::to_string(nodes) + " nodes",
           std::to_string(network.base_port), "");
  }
  if (!network.enabled) return;
  const std::string make_keys =
      "make the file with `atoll keys generate FILE`, and list clients in network.authorised_keys";
  if (network.without_keys) {
    if (!is_loopback_address(network.listen)) {
      report("network.without_keys",
             "false with an address beyond loopback (" + network.listen + ")", "true", make_keys);
    }
    if (!network.key_file.empty()) {
      report("network.without_keys", "false with network.key_file", "true", "remove one of them");
    }
    return;
  }
  if (network.key_file.empty()) {
    report("network.key_file", "a file of keys, because network.enabled is true", "\"\"",
           make_keys);
  } else if (network.authorised_keys.empty()) {
    report("network.authorised_keys", "a file of authorised keys with network.key_file", "\"\"",
           "make the file: each line is KEY NAME RIGHTS");
  }
}

void check_logs(const Config& config, const ConfigReport& report) {
  for (size_t index = 0; index < config.nodes.size(); ++index) {
    const NodeConfig& node = config.nodes[index];
    if (node.loggers <= node.workers) continue;
    report(node_key(index, "loggers"),
           "at most as many as the node has workers (" + std::to_string(node.workers) + ")",
           std::to_string(node.loggers), "each logger writes the log of at least one worker");
  }
  const bool is_null = config.durability.backend == FileBackend::null;
  if (config.durability.mode == DurabilityMode::durable && is_null) {
    report("durability.backend", "\"posix\" or \"pmem\" with mode = \"durable\"", "\"null\"",
           "null keeps nothing and is for measuring only: with it, set mode = \"measure\"");
  }
  if (config.durability.mode == DurabilityMode::measure && !is_null) {
    report("durability.mode", "backend = \"null\" with mode = \"measure\"", "\"measure\"",
           "set backend = \"null\" to measure without a device, or mode = \"durable\"");
  }
  if (config.cluster.restart == RestartPolicy::recover &&
      config.durability.mode != DurabilityMode::durable) {
    report("cluster.restart", "\"never\" without mode = \"durable\"", "\"recover\"",
           "nothing is kept that a restart could recover");
  }
}

/// Returns why the command cannot archive anything, or an empty text.
std::string defect_of_command(const std::string& command) {
  std::string seen;
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] != '%') continue;
    const char kind = i + 1 < command.size() ? command[i + 1] : '\0';
    if (kind != 'p' && kind != 'f' && kind != '%') return "a % that is none of them";
    seen += kind;
    ++i;
  }
  if (!seen.contains('p')) return "no %p";
  return seen.contains('f') ? "" : "no %f";
}

void check_archive(const Config& config, const ConfigReport& report) {
  const Config::Archive& archive = config.archive;
  if (!archive.is_on()) return;
  const char* key = archive.command.empty() ? "archive.directory" : "archive.command";
  if (!archive.command.empty() && !archive.directory.empty()) {
    report(key, "either archive.directory or archive.command", "both", "remove one of them");
  }
  if (config.durability.mode != DurabilityMode::durable) {
    report(key, "durability.mode = \"durable\" with an archive",
           config.durability.mode == DurabilityMode::off ? "\"off\"" : "\"measure\"",
           "there is no log to archive");
  }
  const std::string defect = archive.command.empty() ? "" : defect_of_command(archive.command);
  if (!defect.empty()) {
    report(key, "a command with %p (path of the file) and %f (its name in the archive)", defect,
           "write %% for a percent sign");
  }
  const auto check_apart = [&](const std::string& other, const std::string& path) {
    if (archive.directory.empty() || !is_within(archive.directory, path)) return;
    report("archive.directory", "a folder outside of " + other + " (" + quote_toml(path) + ")",
           quote_toml(archive.directory), "an archive outlives the data: use another device");
  };
  if (config.durability.scheme == DurabilityScheme::silor) {
    report(key, "durability.scheme = \"gleaned\" with an archive", "\"silor\"",
           "no restore reads checkpoints and archived logs: take backups instead");
  }
  check_apart("cluster.data_dir", config.cluster.data_dir);
  check_apart("cluster.run_dir", config.cluster.run_dir);
  for (size_t index = 0; index < config.nodes.size(); ++index) {
    for (const std::string& directory : config.nodes[index].directories) {
      check_apart(node_key(index, "directories"), directory);
    }
  }
}

}  // namespace

uint64_t snapshot_table_bytes(const Config::Memory& memory) {
  constexpr uint64_t kBytesOfFrame = 37;
  constexpr uint64_t kBytesOfLentFrame = 4;
  constexpr uint64_t kFramesPerBucket = 4;
  constexpr uint64_t kBytesOfBucket = 64;
  const uint64_t own = memory.snapshot_cache / kPageBytes;
  const uint64_t lent = memory.lend_pool ? memory.volatile_pool / kPageBytes : 0;
  const uint64_t buckets = std::bit_ceil(std::max<uint64_t>(1, (own + lent) / kFramesPerBucket));
  return (own + lent) * kBytesOfFrame + lent * kBytesOfLentFrame + buckets * kBytesOfBucket;
}

void check_config(const Config& config, const Machine& machine, const ConfigReport& report) {
  CHECK(!config.nodes.empty() && config.nodes.size() <= kMaxNodes);
  CHECK(config.cluster.start_epoch >= 1 && config.cluster.start_epoch <= kMaxEpoch);
  check_placement(config, machine, report);
  check_memory_total(config, report);
  check_memory(config, machine, report);
  check_relations(config, report);
  check_network(config, report);
  check_logs(config, report);
  check_archive(config, report);
  check_folders(config, report);
}

void resolve_defaults(Config& config, const Machine& machine) {
  Config::Cluster& cluster = config.cluster;
  if (cluster.run_dir.empty()) cluster.run_dir = default_run_dir(cluster.name);
  if (cluster.data_dir.empty()) {
    cluster.data_dir =
        absolute_path(user_folder("XDG_DATA_HOME", ".local/share") + "/" + cluster.name, "/");
  }
  if (cluster.log_dir.empty()) {
    cluster.log_dir =
        absolute_path(user_folder("XDG_STATE_HOME", ".local/state") + "/" + cluster.name, "/");
    // A user may set two of the environment variables to the same folder.
    const bool is_taken = cluster.log_dir == cluster.data_dir || cluster.log_dir == cluster.run_dir;
    if (is_taken) cluster.log_dir += "-logs";
  }
  if (config.control.endpoint.empty()) {
    config.control.endpoint = "ipc://" + cluster.run_dir + "/control.sock";
  }
  CHECK(!cluster.run_dir.empty() && !cluster.log_dir.empty() && !cluster.data_dir.empty());
  resolve_memory_total(config);
  resolve_job_threads(config, machine);
}

std::string absolute_path(const std::string& path, const std::string& base) {
  namespace fs = std::filesystem;
  fs::path full;
  if (path == "~" || path.starts_with("~/")) {
    const std::string home = home_folder();
    full = fs::path(home.empty() ? "/" : home) / path.substr(path.size() > 1 ? 2 : 1);
  } else {
    full = fs::path(base) / path;  // an absolute path replaces the base
  }
  std::string text = full.lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace atolldb
