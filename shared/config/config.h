// The configuration of a cluster: one TOML file, read once, the same in every process of it.
// Every key is a row of the table in config_keys.cpp; configs/reference.toml documents them all.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shared/config/machine.h"

namespace atolldb {

enum class HugePages : uint8_t { off, advise, require };
enum class RestartPolicy : uint8_t { never, recover };
enum class DeviceHang : uint8_t { report, stop };
/// `measure` does all that `durable` does, but into a log that keeps nothing.
enum class DurabilityMode : uint8_t { off, durable, measure };
enum class FileBackend : uint8_t { posix, pmem, null };

struct NodeConfig {
  /// -1: node index modulo the number of the machine's NUMA nodes.
  int32_t numa_node = -1;
  /// CPUs of this node's workers, in worker order, reused in turn. Empty: all of the
  /// NUMA node's; not pinned on a machine with one.
  std::vector<int32_t> cpus;
  uint32_t workers = 1;
  uint32_t loggers = 1;
  uint32_t mappers = 1;
  uint32_t reducers = 1;
  /// Where this node's log and snapshot files live, absolute. Empty: under `cluster.data_dir`.
  std::vector<std::string> directories;

  bool operator==(const NodeConfig&) const = default;
};

struct Config {
  struct Cluster {
    std::string name = "atoll";
    // Absolute paths. Empty only in a Config{} that went through neither load nor default_config.
    std::string run_dir;
    std::string log_dir;
    std::string data_dir;
    std::chrono::microseconds epoch{10'000};
    RestartPolicy restart = RestartPolicy::never;
    std::chrono::milliseconds heartbeat{100};
    std::chrono::milliseconds hang_limit{10'000};
    /// First epoch of a new cluster, at most kMaxEpoch; tests start near that horizon.
    uint64_t start_epoch = 1;

    bool operator==(const Cluster&) const = default;
  };

  struct Memory {
    uint64_t volatile_pool = 512ULL << 20;  ///< bytes per node, a multiple of 2 MiB
    uint64_t snapshot_cache = 64ULL << 20;  ///< bytes per node, a multiple of 2 MiB
    uint64_t log_buffer = 16ULL << 20;      ///< bytes per worker, a multiple of 2 MiB
    uint64_t exchange = 8ULL << 20;         ///< bytes per reducer, a multiple of 2 MiB
    // Most entries of one transaction's sets.
    uint32_t read_set = 32'768;
    uint32_t write_set = 8'192;
    uint32_t pointer_set = 32'768;
    uint32_t page_version_set = 4'096;
    HugePages huge_pages = HugePages::advise;

    bool operator==(const Memory&) const = default;
  };

  struct Durability {
    DurabilityMode mode = DurabilityMode::durable;
    FileBackend backend = FileBackend::posix;
    uint64_t log_file_size = 256ULL << 20;  ///< bytes, a multiple of 4 KiB
    uint32_t ballast_files = 1;             ///< for each logger; 0: no ballast
    /// Time that each write and each sync of a log takes more than the device needs.
    std::chrono::microseconds emulated_latency{0};
    /// A call to the device that takes longer counts as hung.
    std::chrono::milliseconds device_hang_limit{10'000};
    DeviceHang on_device_hang = DeviceHang::report;

    bool operator==(const Durability&) const = default;
  };

  struct Gleaner {
    std::chrono::milliseconds interval{600'000};  ///< at least this often
    uint64_t log_volume = 1ULL << 30;             ///< or after this many bytes of log per node
    uint32_t pool_low_water = 20;                 ///< or below this many percent of free pages
    uint32_t pool_high_water = 40;                ///< pages go until so many percent are free
    bool keep_hot_pages = true;                   ///< pages used often go last
    uint64_t disk_reserve = 1ULL << 30;           ///< bytes that its files leave free

    bool operator==(const Gleaner&) const = default;
  };

  struct Snapshot {
    uint32_t keep = 1;                                  ///< the newest ones, with their log
    uint64_t scrub_rate = 16ULL << 20;                  ///< bytes per second and node; 0: no scrub
    std::chrono::milliseconds scrub_interval{600'000};  ///< before each cycle

    bool operator==(const Snapshot&) const = default;
  };

  struct Metrics {
    bool enabled = true;
    std::string listen = "127.0.0.1";
    /// The coordinator's port; node k has `base_port + 1 + k`. 0: every process takes a free one.
    uint16_t base_port = 0;

    bool operator==(const Metrics&) const = default;
  };

  struct Control {
    std::string endpoint;  ///< ZeroMQ endpoint of the coordinator; ipc in run_dir by default

    bool operator==(const Control&) const = default;
  };

  struct Procedures {
    std::vector<std::string> libraries;  ///< absolute paths of shared libraries
    std::chrono::milliseconds time_limit{10'000};

    bool operator==(const Procedures&) const = default;
  };

  struct Log {
    std::string level = "info";

    bool operator==(const Log&) const = default;
  };

  Cluster cluster;
  std::vector<NodeConfig> nodes = std::vector<NodeConfig>(2);  ///< 1 to kMaxNodes
  Memory memory;
  Durability durability;
  Gleaner gleaner;
  Snapshot snapshot;
  Metrics metrics;
  Control control;
  Procedures procedures;
  Log log;

  /// Where a value comes from: "memory.volatile_pool" -> "atoll.toml:12". Absent: the default.
  /// For people only: neither compared, nor digested, nor handed to child processes.
  std::map<std::string, std::string> origins;
};

/// One mistake in a config file. `line` is 0 when the file as a whole is wrong.
struct ConfigError {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
  std::string key;
  std::string expected;
  std::string got;
  std::string hint;

  /// "file:line:col: key: expected ..., got ...; hint"
  std::string to_string() const;
};

/// Reads and validates; returns every mistake of the file, in the order of its lines. Relative
/// paths in a file are relative to the folder of the file.
std::expected<Config, std::vector<ConfigError>> load_config(const std::string& path,
                                                            const Machine& machine);
/// The same for a text; `file_name` stands in messages and resolves relative paths.
std::expected<Config, std::vector<ConfigError>> parse_config(std::string_view text,
                                                             std::string file_name,
                                                             const Machine& machine);

/// What an empty file means: two nodes with one worker each, directories under the user's own.
Config default_config();

/// The effective values as TOML, each with its origin as a comment.
std::string show_config(const Config& config);

/// The effective values as TOML; parsing it gives an equal config in another process. A config
/// that was changed by the command line is validated by parsing its text again.
std::string to_toml(const Config& config);

/// Equal for equal effective configs; stored in every segment and checked on attach.
uint64_t config_digest(const Config& config);

/// What stands beside every figure and every state of a cluster, for people and for programs:
/// "off", "durable", "durable (emulated latency 5us)", "null log: nothing is durable".
std::string durability_text(const Config& config);

/// Where a logger's files go: its node's directories in turn, or else data_dir. REQUIRES: `node` is
/// less than config.nodes.size().
const std::string& log_directory(const Config& config, uint32_t node, uint32_t logger);

/// The directories of all nodes. Besides data_dir, which has the files of nodes without any.
std::vector<std::string> node_directories(const Config& config);

/// All errors, one a line: what the commands print.
std::string to_string(const std::vector<ConfigError>& errors);

}  // namespace atolldb
