// Configuration of a cluster: one TOML file, read once, and equal in all its processes. Every key
// is a row of the table in config_keys.cpp. configs/reference.toml documents all keys.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/durability_scheme.h"
#include "shared/config/live_value.h"
#include "shared/config/machine.h"

namespace atolldb {

enum class HugePages : uint8_t { off, advise, require };
/// Where a write to a record that is in a snapshot only goes (R76).
enum class ColdWrites : uint8_t { automatic, pages, records };
enum class RestartPolicy : uint8_t { never, recover };
enum class DeviceHang : uint8_t { report, stop };
/// What a process does if its port of metrics is in use.
enum class TakenPort : uint8_t { move, stop };
/// `measure` does the same work as `durable`, but its log discards the data.
enum class DurabilityMode : uint8_t { off, durable, measure };
enum class FileBackend : uint8_t { posix, pmem, null };

struct NodeConfig {
  /// NUMA node of the memory. -1: index of this node modulo the machine's number of NUMA nodes.
  int32_t numa_node = -1;
  /// CPUs of this node's workers, in worker order, used round robin. Empty: all CPUs of the NUMA
  /// node, or no pinning on a machine with one NUMA node.
  std::vector<int32_t> cpus;
  uint32_t workers = 1;
  uint32_t loggers = 1;
  /// Number of workers that run transactions at the same time, without those that have ended waits
  /// for the device (RunGate). resolve_defaults replaces 0 by an automatic number.
  uint32_t running_workers = 0;
  /// Numbers of threads of snapshot jobs (job_threads.h). resolve_defaults replaces 0 by an
  /// automatic number.
  uint32_t mappers = 0;
  uint32_t reducers = 0;
  uint32_t recovery_threads = 0;
  uint32_t installers = 4;
  /// CPUs of the node's mappers and reducers. Empty: those of the process.
  std::vector<int32_t> gleaner_cpus;
  /// Absolute paths for this node's log and snapshot files. Empty: under `cluster.data_dir`.
  std::vector<std::string> directories;

  bool operator==(const NodeConfig&) const = default;
};

/// A member of type Live can change while the cluster runs (`atoll config reload`).
struct Config {
  struct Cluster {
    std::string name = "atoll";
    // Absolute paths. They are empty only in a Config on which resolve_defaults was not called.
    std::string run_dir;
    std::string log_dir;
    std::string data_dir;
    std::chrono::microseconds epoch{10'000};
    std::chrono::microseconds epoch_min{200};
    Live<RestartPolicy> restart = RestartPolicy::never;
    std::chrono::milliseconds heartbeat{100};
    Live<std::chrono::milliseconds> hang_limit{10'000};
    /// First epoch of a new cluster, at most kMaxEpoch. Tests start near this limit.
    uint64_t start_epoch = 1;

    bool operator==(const Cluster&) const = default;
  };

  struct Memory {
    /// Bytes per node for volatile_pool and snapshot_cache together (split_memory), a multiple of
    /// 2 MiB. 0: the two keys are independent.
    uint64_t total = 0;
    uint64_t volatile_pool = 512ULL << 20;  ///< bytes per node, a multiple of 2 MiB
    uint64_t snapshot_cache = 64ULL << 20;  ///< bytes per node, a multiple of 2 MiB
    uint64_t log_buffer = 16ULL << 20;      ///< bytes per worker, a multiple of 2 MiB
    uint64_t exchange = 8ULL << 20;         ///< bytes per reducer, a multiple of 2 MiB
    // Maximum number of entries in a transaction's sets.
    uint32_t read_set = 32'768;
    uint32_t write_set = 8'192;
    uint32_t pointer_set = 32'768;
    uint32_t page_version_set = 4'096;
    HugePages huge_pages = HugePages::advise;
    ColdWrites cold_writes = ColdWrites::automatic;
    bool lend_pool = true;  ///< free pages of the pool hold snapshot pages
    bool numa_bind = true;  ///< memory and workers of a node are on its NUMA node

    bool operator==(const Memory&) const = default;
  };

  struct Durability {
    DurabilityMode mode = DurabilityMode::durable;
    DurabilityScheme scheme = DurabilityScheme::gleaned;
    FileBackend backend = FileBackend::posix;
    uint64_t log_file_size = 256ULL << 20;  ///< bytes, a multiple of 4 KiB
    uint32_t ballast_files = 1;             ///< ballast per logger, as a number of log files
    /// Time added to each write and each sync of a log.
    std::chrono::microseconds emulated_latency{0};
    /// Emulated NVRAM: time added for each page that is read, to each write, and for each block of
    /// 4 KiB that is written.
    uint32_t nvm_read_ns = 0;
    uint32_t nvm_write_ns = 0;
    uint32_t nvm_block_ns = 0;
    /// A device call that takes longer counts as hung.
    Live<std::chrono::milliseconds> device_hang_limit{10'000};
    Live<DeviceHang> on_device_hang = DeviceHang::report;
    // Only with scheme `silor`. A checkpoint begins this long after the previous one has ended, or
    // after this many bytes of log of a node. 0: never for that reason.
    Live<std::chrono::milliseconds> checkpoint_interval{10'000};
    Live<uint64_t> checkpoint_volume = 0;
    uint32_t checkpoint_threads = 1;  ///< per node
    uint32_t checkpoint_files = 0;    ///< per thread and checkpoint; 0: files_of_each_thread
    /// Bytes that a thread writes between two syncs of its files. 0: it syncs at its end only.
    uint64_t checkpoint_sync_volume = 32ULL << 20;
    std::chrono::microseconds checkpoint_pause{0};  ///< of a thread, after each 32 MiB
    ReplayOrder replay_order = ReplayOrder::newest_first;

    bool operator==(const Durability&) const = default;
  };

  struct Gleaner {
    Live<std::chrono::milliseconds> interval{600'000};  ///< maximum time between snapshots
    Live<uint64_t> log_volume = 1ULL << 30;  ///< bytes of log per node that trigger a snapshot
    Live<uint32_t> pool_low_water =
        20;  ///< percentage of free pages below which a snapshot is triggered
    Live<uint32_t> pool_high_water = 40;  ///< pages are evicted until this percentage is free
    Live<bool> keep_hot_pages = true;     ///< frequently used pages are evicted last
    Live<uint64_t> disk_reserve = 0;      ///< bytes that snapshot files leave free; 0: automatic
    Live<uint32_t> space_percent =
        200;  ///< target size of snapshot files, in percent of live pages
    Live<uint64_t> rewrite_limit = 256ULL << 20;  ///< live bytes that a snapshot copies; R74
    Live<bool> pacing =
        true;  ///< snapshots spread their work over the time until the next one is due
    Live<bool> capture_pages =
        true;  ///< snapshots copy unchanged volatile pages instead of their log

    bool operator==(const Gleaner&) const = default;
  };

  struct Snapshot {
    Live<uint32_t> keep = 1;  ///< number of newest snapshots kept with their log
    Live<uint64_t> scrub_rate = 16ULL
                                << 20;  ///< bytes per second that each node scrubs; 0: no scrub
    Live<std::chrono::milliseconds> scrub_interval{
        600'000};            ///< pause before each cycle of the scrub
    bool warm_cache = true;  ///< a start reads the pages that the cache had before

    bool operator==(const Snapshot&) const = default;
  };

  struct Archive {
    std::string directory;  ///< absolute path; empty: no directory
    std::string command;    ///< run by /bin/sh for each file; empty: no command
    Live<std::chrono::milliseconds> timeout{600'000};  ///< a command that runs longer is killed
    Live<std::chrono::milliseconds> retry{10'000};     ///< pause after a failure

    bool is_on() const { return !directory.empty() || !command.empty(); }
    bool operator==(const Archive&) const = default;
  };

  struct Metrics {
    bool enabled = true;
    std::string listen = "127.0.0.1";
    /// Port of the coordinator; node k uses `base_port + 1 + k`. 0: every process takes a free
    /// port. The default is below the ports that Linux gives to outgoing connections.
    uint16_t base_port = 29'400;
    TakenPort on_taken_port = TakenPort::move;

    bool operator==(const Metrics&) const = default;
  };

  struct StatusPage {
    bool enabled = true;
    std::string listen = "127.0.0.1";
    uint16_t port = 0;  ///< 0: the coordinator takes a free port

    bool operator==(const StatusPage&) const = default;
  };

  struct Network {
    bool enabled = false;
    std::string listen = "127.0.0.1";
    uint16_t base_port = 0;       ///< node k uses `base_port + k`; 0: every node takes a free port
    std::string key_file;         ///< absolute path; empty: clients need no key
    std::string authorised_keys;  ///< absolute path; not empty with `key_file`
    bool without_keys = false;    ///< clients need no key, which only loopback addresses allow

    bool operator==(const Network&) const = default;
  };

  struct Control {
    std::string endpoint;  ///< ZeroMQ endpoint of the coordinator; ipc in run_dir by default

    bool operator==(const Control&) const = default;
  };

  struct Procedures {
    std::vector<std::string> libraries;  ///< absolute paths of shared libraries
    Live<std::chrono::milliseconds> time_limit{10'000};
    // Of calls through sessions. Inputs and outputs that are longer than 64 KiB share the memory.
    uint64_t max_input = 64ULL << 20;        ///< bytes
    uint64_t max_output = 64ULL << 20;       ///< bytes
    uint64_t payload_memory = 256ULL << 20;  ///< bytes per node
    std::chrono::milliseconds transfer_timeout{60'000};

    bool operator==(const Procedures&) const = default;
  };

  struct Log {
    std::string level = "info";

    bool operator==(const Log&) const = default;
  };

  Cluster cluster;
  std::vector<NodeConfig> nodes = std::vector<NodeConfig>(2);  ///< 1 to kMaxNodes entries
  Memory memory;
  Durability durability;
  Gleaner gleaner;
  Snapshot snapshot;
  Archive archive;
  Metrics metrics;
  StatusPage status_page;
  Network network;
  Control control;
  Procedures procedures;
  Log log;

  /// Origin of each key that was set: "memory.volatile_pool" -> "atoll.toml:12". Other keys have
  /// the default, which memory.total or a benchmark may replace. The map is not compared, not
  /// digested, and not passed to child processes.
  std::map<std::string, std::string> origins;
};

/// One mistake in a config file. `line` is 0 if the whole file is wrong.
struct ConfigError {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
  std::string key;
  std::string expected;
  std::string got;
  std::string hint;

  /// Returns text like "file:line:col: key: expected ..., got ...; hint".
  std::string to_string() const;
};

/// A value that replaces the one in the config file, for example from the command line.
struct ConfigOverride {
  std::string source;  // for messages: "--set memory.volatile_pool=1GiB"
  /// "memory.volatile_pool". "node.workers" is a key of all nodes, "node[1].workers" of one.
  std::string key;
  /// As in the file. Quotes around a single text may be left out.
  std::string value;
};

/// Reads and validates a file. Returns the config, or all mistakes in the order of their lines.
/// Relative paths in the file are relative to its folder. Later overrides replace earlier ones.
std::expected<Config, std::vector<ConfigError>> load_config(
    const std::string& path, const Machine& machine,
    std::span<const ConfigOverride> overrides = {});
/// Does the same as `load_config`, for a text. `file_name` appears in messages and resolves
/// relative paths.
std::expected<Config, std::vector<ConfigError>> parse_config(
    std::string_view text, std::string file_name, const Machine& machine,
    std::span<const ConfigOverride> overrides = {});

/// Parses "key=value". Returns nothing if there is no "=" after a key.
std::optional<ConfigOverride> parse_override(const std::string& text);
/// Returns the overrides in the environment: ATOLL_SECTION_KEY, for example
/// ATOLL_MEMORY_VOLATILE_POOL. Keys of nodes, ATOLL_NODE_KEY, hold for all nodes.
std::vector<ConfigOverride> environment_overrides();

/// Returns the config of an empty file: two nodes with one worker each, and the default directories
/// of the user.
Config default_config(const Machine& machine = Machine::detect());

/// Fills in directories and endpoints that are empty, from the user's environment, and automatic
/// numbers of threads (resolve_job_threads).
void resolve_defaults(Config& config, const Machine& machine = Machine::detect());

/// Returns the effective values as TOML, each with its origin as a comment.
std::string show_config(const Config& config);

/// Returns the effective values as TOML. Parsing the text in another process gives an equal config.
/// Commands that have changed a config parse this text to validate it.
std::string to_toml(const Config& config);

/// Returns equal digests for equal effective configs. Every segment stores the digest, and
/// processes check it when they attach.
uint64_t config_digest(const Config& config);

/// Returns the durability text that accompanies every figure and state of a cluster: "off",
/// "durable", "durable (emulated latency 5us)", "null log: nothing is durable".
std::string durability_text(const Config& config);

/// Returns the directory of a logger's files. Loggers take turns in the directories of their node,
/// or use data_dir if the node has none. REQUIRES: `node` is less than config.nodes.size().
const std::string& log_directory(const Config& config, uint32_t node, uint32_t logger);

/// Returns the directories of all nodes that have any. data_dir, which has the files of the other
/// nodes, is not included.
std::vector<std::string> node_directories(const Config& config);

/// A value that the user has set, and that has no effect.
struct UnusedSetting {
  std::string key;    // "gleaner.interval", "node[1].mappers"
  std::string value;  // as in a file
  std::string reason;
};

/// Returns the values that have an origin (Config::origins), and that durability.scheme does not
/// use.
std::vector<UnusedSetting> unused_settings(const Config& config);
/// Returns text like "gleaner.interval = "1h" has no effect: ...".
std::string to_string(const UnusedSetting& setting);

/// Returns all errors, one per line, as the commands print them.
std::string to_string(const std::vector<ConfigError>& errors);

}  // namespace atolldb
