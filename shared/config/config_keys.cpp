#include "shared/config/config_keys.h"

#include <array>
#include <type_traits>
#include <utility>

#include "shared/base/limits.h"
#include "shared/config/config_values.h"

namespace atolldb {
namespace {

using namespace config_limits;

constexpr std::array<std::string_view, 3> kHugePagesChoices{"off", "advise", "require"};
constexpr std::array<std::string_view, 3> kColdWritesChoices{"automatic", "pages", "records"};
constexpr std::array<std::string_view, 2> kRestartChoices{"never", "recover"};
constexpr std::array<std::string_view, 2> kDeviceHangChoices{"report", "stop"};
constexpr std::array<std::string_view, 2> kTakenPortChoices{"move", "stop"};
constexpr std::array<std::string_view, 3> kDurabilityChoices{"off", "durable", "measure"};
constexpr std::array<std::string_view, 2> kSchemeChoices{"gleaned", "silor"};
constexpr std::array<std::string_view, 2> kReplayOrderChoices{"newest_first", "oldest_first"};
constexpr std::array<std::string_view, 3> kBackendChoices{"posix", "pmem", "null"};
constexpr std::array<std::string_view, 7> kLogLevelChoices{"trace", "debug",    "info", "warn",
                                                           "error", "critical", "off"};

constexpr int64_t kMinEpochUs = 100;
constexpr int64_t kMaxPathBytes = 1'024;
constexpr int64_t kMaxCommandBytes = 4'096;
constexpr int64_t kMaxEndpointBytes = kMaxSocketPathBytes + 6;  // 6: the prefix "ipc://"
constexpr int64_t kMaxNvmNs = 10'000'000;
constexpr int64_t kMinSetEntries = 16;
constexpr int64_t kMaxSetEntries = 1LL << 24;  // write sets have a lower limit: kMaxWriteSet
constexpr int64_t kMaxPoolBytes = 8 * kTiB;    // page indexes have 31 bits, pages 4 KiB

template <typename T>
ConfigField field_of(T& member) {
  if constexpr (kIsLive<T>) {
    return field_of(member.plain());
  } else if constexpr (std::is_enum_v<T>) {
    static_assert(std::is_same_v<std::underlying_type_t<T>, uint8_t>);
    return reinterpret_cast<uint8_t*>(&member);
  } else {
    return &member;
  }
}

/// Name "section.name" of a key, and the accessor of its value.
struct Member {
  std::string_view name;
  ConfigField (*field)(const ConfigTarget&);
  bool is_live = false;
};

#define ATOLL_CONFIG(member)                                                                      \
  Member {                                                                                        \
    #member,                                                                                      \
        [](const ConfigTarget& target) -> ConfigField { return field_of(target.config.member); }, \
        kIsLive<decltype(std::declval<Config&>().member)>                                         \
  }
#define ATOLL_NODE(member)                                                                     \
  Member {                                                                                     \
    "node." #member,                                                                           \
        [](const ConfigTarget& target) -> ConfigField { return field_of(target.node.member); } \
  }
constexpr Member kNodeCount{
    "nodes.count", [](const ConfigTarget& target) -> ConfigField { return &target.node_count; }};

/// Limits of a key's values, in its unit (KeyKind).
struct Limits {
  int64_t min = 0;
  int64_t max = 0;
  int64_t step = 1;
};

constexpr ConfigKey row(KeyKind kind, Member member, Limits limits, std::string_view doc) {
  const size_t dot = member.name.find('.');
  return {.section = member.name.substr(0, dot),
          .name = member.name.substr(dot + 1),
          .kind = kind,
          .field = member.field,
          .doc = doc,
          .min = limits.min,
          .max = limits.max,
          .step = limits.step,
          .is_reloadable = member.is_live};
}

constexpr ConfigKey row(KeyKind kind, Member member, std::string_view doc) {
  return row(kind, member, Limits{}, doc);
}

constexpr ConfigKey row(KeyKind kind, Member member, std::span<const std::string_view> choices,
                        std::string_view doc) {
  ConfigKey key = row(kind, member, doc);
  key.choices = choices;
  return key;
}

/// A key that each process applies in a way of its own, because it is no Live value.
constexpr ConfigKey reloadable(ConfigKey key) {
  key.is_reloadable = true;
  return key;
}

// Each row ends with {minimum, maximum, step} or the choices, and the text of the reference file.
constexpr ConfigKey kKeys[] = {
    row(KeyKind::name, ATOLL_CONFIG(cluster.name), {1, 32},
        "Name of the cluster; `atoll --cluster NAME` finds it by that."),
    row(KeyKind::path, ATOLL_CONFIG(cluster.run_dir), {1, kMaxRunDirBytes},
        "Sockets, process ids and endpoints of the running cluster.\n"
        "Default: $XDG_RUNTIME_DIR/atoll/<name>, else /tmp/atoll-<user id>/<name>.\n"
        "Apart from log_dir, data_dir and the directories of nodes."),
    row(KeyKind::path, ATOLL_CONFIG(cluster.log_dir), {1, kMaxPathBytes},
        "What the processes write about themselves (`atoll logs`).\n"
        "Default: $XDG_STATE_HOME/atoll/<name>, else ~/.local/state/atoll/<name>.\n"
        "~ is $HOME, without that the home of the user's entry."),
    row(KeyKind::path, ATOLL_CONFIG(cluster.data_dir), {1, kMaxPathBytes},
        "Transaction logs and snapshots of nodes without directories of their own.\n"
        "Default: $XDG_DATA_HOME/atoll/<name>, else ~/.local/share/atoll/<name>."),
    row(KeyKind::duration, ATOLL_CONFIG(cluster.epoch), {1 * kMillisecondUs, 1 * kSecondUs},
        "Time from one epoch to the next: the group commit's period."),
    row(KeyKind::duration, ATOLL_CONFIG(cluster.epoch_min), {kMinEpochUs, 1 * kSecondUs},
        "Shortest epoch. An epoch ends early if a client waits until its commits are durable and "
        "no\n"
        "worker has anything to do. Each such end costs a sync of every log. None ends early if "
        "this\n"
        "is not less than `epoch`."),
    row(KeyKind::choice, ATOLL_CONFIG(cluster.restart), kRestartChoices,
        "What happens after a process has died or hung and the cluster has stopped. recover: it "
        "is\n"
        "started again and goes on with what was committed, unless data or disks are damaged or\n"
        "full, or after five restarts in succession within a minute of each other. Needs\n"
        "durability.mode = \"durable\"."),
    row(KeyKind::duration, ATOLL_CONFIG(cluster.heartbeat),
        {10 * kMillisecondUs, 10 * kSecondUs, kMillisecondUs},
        "How often every process shows that it is alive."),
    row(KeyKind::duration, ATOLL_CONFIG(cluster.hang_limit),
        {500 * kMillisecondUs, 1 * kHourUs, kMillisecondUs},
        "A process without a heartbeat for this long counts as hung, and the cluster stops."),
    row(KeyKind::integer, ATOLL_CONFIG(cluster.start_epoch), {1, kMaxEpoch},
        "First epoch of a new cluster (for tests)."),

    row(KeyKind::integer, kNodeCount, {1, kMaxNodes},
        "Number of nodes with default values. Instead, each can have a [[node]] table."),

    row(KeyKind::integer, ATOLL_NODE(numa_node), {-1, kMaxNumaNode},
        "The machine's NUMA node that gives memory and CPUs; -1: the nodes take turns."),
    row(KeyKind::integers, ATOLL_NODE(cpus), {0, kMaxCpus - 1},
        "CPUs of the workers, in worker order, reused in turn; empty: those of the NUMA node."),
    row(KeyKind::integer, ATOLL_NODE(workers), {1, kMaxWorkersPerNode},
        "Threads that run transactions."),
    row(KeyKind::integer, ATOLL_NODE(running_workers), {0, kMaxWorkersPerNode},
        "Workers that run transactions at the same time; after waits for the device up to\n"
        "twice as many. The others wait between transactions. 0: one for each CPU of the node's\n"
        "share, or of cpus, and one more."),
    row(KeyKind::integer, ATOLL_NODE(loggers), {1, 16},
        "Threads that write the log, at most as many as workers."),
    row(KeyKind::integer, ATOLL_NODE(mappers), {0, 64},
        "Threads that read the log for a snapshot. 0: more than one only if there are CPUs "
        "without\n"
        "workers: half of the node's share of these."),
    row(KeyKind::integer, ATOLL_NODE(reducers), {0, 64},
        "Threads that write a snapshot. 0: as for mappers."),
    row(KeyKind::integer, ATOLL_NODE(recovery_threads), {0, 64},
        "Mappers, and reducers, of a recovery, if these are more than the two keys above say. No\n"
        "worker runs then. 0: one of each for each CPU of the node's share, or of gleaner_cpus."),
    row(KeyKind::integer, ATOLL_NODE(installers), {1, kMaxInstallers},
        "Most threads that install a snapshot beside the data in memory. There is one, and one\n"
        "more for each idle CPU."),
    row(KeyKind::integers, ATOLL_NODE(gleaner_cpus), {0, kMaxCpus - 1},
        "CPUs of the mappers and reducers, or of the threads of checkpoints; empty: any. Workers\n"
        "stay off them if `cpus` names others."),
    row(KeyKind::paths, ATOLL_NODE(directories), {1, kMaxPathBytes},
        "Folders of this node's log and snapshots, its loggers take turns in them; empty:\n"
        "cluster.data_dir."),

    row(KeyKind::size, ATOLL_CONFIG(memory.total), {0, kMaxPoolBytes, kSegmentStepBytes},
        "One budget per node for volatile_pool and snapshot_cache, instead of these two keys. The\n"
        "cache gets an eighth, or a quarter without lend_pool, and the pool the rest. From 4MiB\n"
        "on. 0: no budget."),
    row(KeyKind::size, ATOLL_CONFIG(memory.volatile_pool),
        {kSegmentStepBytes, kMaxPoolBytes, kSegmentStepBytes},
        "Pages of the data in memory, per node."),
    // The minimum is enough: it has more frames than a node has threads that read snapshots
    // (kMaxWorkersPerNode and a few others).
    row(KeyKind::size, ATOLL_CONFIG(memory.snapshot_cache),
        {kSegmentStepBytes, kMaxPoolBytes, kSegmentStepBytes},
        "Cache of snapshot pages, per node."),
    row(KeyKind::size, ATOLL_CONFIG(memory.log_buffer),
        {kSegmentStepBytes, 1 * kGiB, kSegmentStepBytes},
        "Log records not yet written, per worker."),
    row(KeyKind::size, ATOLL_CONFIG(memory.exchange),
        {kSegmentStepBytes, 1 * kGiB, kSegmentStepBytes},
        "Log records on their way into a snapshot, per reducer; none with durability off."),
    row(KeyKind::integer, ATOLL_CONFIG(memory.read_set), {kMinSetEntries, kMaxSetEntries},
        "Most records that one transaction reads."),
    row(KeyKind::integer, ATOLL_CONFIG(memory.write_set), {kMinSetEntries, kMaxWriteSet},
        "Most record changes of one transaction."),
    row(KeyKind::integer, ATOLL_CONFIG(memory.pointer_set), {kMinSetEntries, kMaxSetEntries},
        "Most page pointers that one transaction relies on."),
    row(KeyKind::integer, ATOLL_CONFIG(memory.page_version_set), {kMinSetEntries, kMaxSetEntries},
        "Most page versions that one transaction relies on (scans, keys not found)."),
    row(KeyKind::choice, ATOLL_CONFIG(memory.huge_pages), kHugePagesChoices,
        "2 MiB pages for the segments: never; where free ones suffice; or else do not start."),
    row(KeyKind::choice, ATOLL_CONFIG(memory.cold_writes), kColdWritesChoices,
        "What a write to a record that is in a snapshot only brings into memory. pages: the whole\n"
        "page. records: the record alone, so that the pool holds more changed records. automatic:\n"
        "pages, unless the newest snapshot is larger than half of the pools; then each snapshot\n"
        "chooses for each storage what needed less memory. Between snapshots a storage changes to\n"
        "records if its writes copy many pages for few changes."),
    row(KeyKind::boolean, ATOLL_CONFIG(memory.lend_pool),
        "Lend free pages of volatile_pool to the snapshot cache, until transactions need them. An\n"
        "eighth of the pool is not lent."),
    row(KeyKind::boolean, ATOLL_CONFIG(memory.numa_bind),
        "Keep each node's memory and workers on its NUMA node. false: the kernel places them."),

    row(KeyKind::choice, ATOLL_CONFIG(durability.mode), kDurabilityChoices,
        "off: in memory only. durable: a commit is on disk before it is acknowledged. measure:\n"
        "the work of durable with backend = \"null\", which keeps nothing (for benchmarks)."),
    row(KeyKind::choice, ATOLL_CONFIG(durability.scheme), kSchemeChoices,
        "What a recovery reads besides the log. gleaned: snapshots, whose pages may leave memory.\n"
        "silor: checkpoints, which have copies of all records. The start loads them all, so all\n"
        "data must fit in volatile_pool, and transactions read no snapshots. A data directory\n"
        "keeps its scheme."),
    row(KeyKind::choice, ATOLL_CONFIG(durability.backend), kBackendChoices,
        "How logs reach the device: by system calls with direct I/O; mapped persistent memory;\n"
        "not at all, which needs mode = \"measure\"."),
    // The step equals kIoBlockBytes, because log files are written in such blocks.
    row(KeyKind::size, ATOLL_CONFIG(durability.log_file_size),
        {1 * kMiB, 64 * kGiB, kLogFileStepBytes},
        "A logger takes a new file when one of this size is full; allocated beforehand."),
    row(KeyKind::integer, ATOLL_CONFIG(durability.ballast_files), {0, 64},
        "Each file system with logs keeps a ballast file as large as this many log files for each\n"
        "logger on it: a start on a disk that logs have filled gives it up to finish. 0: none."),
    row(KeyKind::duration, ATOLL_CONFIG(durability.emulated_latency), {0, 100 * kMillisecondUs},
        "Every write and sync of a log takes this much longer, to try slower devices."),
    row(KeyKind::integer, ATOLL_CONFIG(durability.nvm_read_ns), {0, kMaxNvmNs},
        "Emulated NVRAM: nanoseconds by which each page of 4 KiB that is read from a file takes\n"
        "longer. The processor spins meanwhile; the metrics atoll_emulated_delay_* have the "
        "error."),
    row(KeyKind::integer, ATOLL_CONFIG(durability.nvm_write_ns), {0, kMaxNvmNs},
        "The same for each write to a log or snapshot, however long it is."),
    row(KeyKind::integer, ATOLL_CONFIG(durability.nvm_block_ns), {0, kMaxNvmNs},
        "The same for each block of 4 KiB that is written, in addition to nvm_write_ns."),
    row(KeyKind::duration, ATOLL_CONFIG(durability.device_hang_limit),
        {100 * kMillisecondUs, 1 * kHourUs, kMillisecondUs},
        "A device that has not answered a read, write or sync for this long counts as hung:\n"
        "`atoll status`, the metrics and the process's log say so."),
    row(KeyKind::choice, ATOLL_CONFIG(durability.on_device_hang), kDeviceHangChoices,
        "What follows when a device hangs. report: nothing more; commits wait for the device.\n"
        "stop: the cluster stops with exit code 8."),
    row(KeyKind::duration, ATOLL_CONFIG(durability.checkpoint_interval),
        {0, 24 * kHourUs, kMillisecondUs},
        "With scheme = \"silor\": time from the end of a checkpoint to the begin of the next one,\n"
        "if anything is committed meanwhile. 0: no checkpoint is due by time."),
    row(KeyKind::size, ATOLL_CONFIG(durability.checkpoint_volume), {0, 1 * kTiB},
        "With scheme = \"silor\": a checkpoint is taken after this much log of a node, too. 0:\n"
        "none is due by volume. If both keys are 0, one is taken only by `atoll checkpoint`, or "
        "if\n"
        "a logger has no room for its next file, or after 64 starts without one."),
    row(KeyKind::integer, ATOLL_CONFIG(durability.checkpoint_threads), {1, kMaxInstallers},
        "With scheme = \"silor\": threads of each node that write a checkpoint. They take turns\n"
        "in the node's directories."),
    row(KeyKind::integer, ATOLL_CONFIG(durability.checkpoint_files), {0, kMaxCheckpointFiles},
        "With scheme = \"silor\": files that each of these threads writes. In a recovery a worker\n"
        "reads one file at a time. 0: at least 4, and so many that each worker of the node can "
        "read\n"
        "another one. A file takes up to 4 MiB more than its records."),
    row(KeyKind::size, ATOLL_CONFIG(durability.checkpoint_sync_volume), {0, 1 * kTiB},
        "With scheme = \"silor\": each of these threads syncs its files after it has written this\n"
        "much. Few large syncs delay the log. 0: it syncs them only at its end (for comparisons)."),
    row(KeyKind::duration, ATOLL_CONFIG(durability.checkpoint_pause), {0, 1 * kSecondUs},
        "With scheme = \"silor\": pause of each of these threads after every 32 MiB of its files.\n"
        "Pauses leave more of the device to the log, and make checkpoints longer."),
    row(KeyKind::choice, ATOLL_CONFIG(durability.replay_order), kReplayOrderChoices,
        "With scheme = \"silor\": order in which a recovery replays the files of the log. The "
        "content\n"
        "is the same. newest_first overwrites fewer records; oldest_first is for comparisons."),

    row(KeyKind::duration, ATOLL_CONFIG(gleaner.interval),
        {100 * kMillisecondUs, 24 * kHourUs, kMillisecondUs},
        "Longest time between two snapshots."),
    row(KeyKind::size, ATOLL_CONFIG(gleaner.log_volume), {1 * kMiB, 1 * kTiB},
        "A snapshot is taken after this much log of a node, too."),
    row(KeyKind::integer, ATOLL_CONFIG(gleaner.pool_low_water), {1, 90},
        "A snapshot is taken when less than this percentage of a node's volatile pool is free, "
        "too,\n"
        "and earlier if the free pages would be used up while it is taken."),
    row(KeyKind::integer, ATOLL_CONFIG(gleaner.pool_high_water), {2, 95},
        "A snapshot drops volatile pages of a node until this percentage of its pool is free, and "
        "in\n"
        "addition what transactions use until the next one, if the pool fills."),
    row(KeyKind::boolean, ATOLL_CONFIG(gleaner.keep_hot_pages),
        "Pages that transactions used often since the snapshot before go last, and only until the\n"
        "percentage in the middle of these two is free. false: all go in the order of keys."),
    row(KeyKind::size, ATOLL_CONFIG(gleaner.disk_reserve), {0, 1 * kTiB},
        "Snapshots and backups of a running cluster leave this much of each file system free, for "
        "the\n"
        "log. 0: room for two log files of each logger that writes to it, and 1GiB at least. A\n"
        "snapshot that would leave less is given up, and the one before stays in force."),
    row(KeyKind::integer, ATOLL_CONFIG(gleaner.space_percent), {110, 10'000},
        "Size of the files of pages, as a percentage of the pages that the newest snapshot uses. "
        "If it\n"
        "is larger, snapshots copy what is used of the files with most garbage and delete these."),
    row(KeyKind::size, ATOLL_CONFIG(gleaner.rewrite_limit), {1 * kMiB, 1 * kTiB},
        "Limit of what a snapshot copies for that purpose. It is higher in two cases: half of "
        "what\n"
        "the previous snapshot wrote is more, or the files of a single snapshot need more."),
    row(KeyKind::boolean, ATOLL_CONFIG(gleaner.pacing),
        "A snapshot spreads its work over the time until the next one is due, unless CPUs are\n"
        "idle, a pool is low, a disk has little room, or a request waits for it. false: it works\n"
        "as fast as it can."),
    row(KeyKind::boolean, ATOLL_CONFIG(gleaner.capture_pages),
        "A snapshot copies pages of Master-trees that have not changed since its epoch, and skips\n"
        "the log records of these pages. false: it makes all pages from log records."),

    row(KeyKind::integer, ATOLL_CONFIG(snapshot.keep), {1, 16},
        "So many of the newest snapshots stay, with the log after the oldest of them: a start\n"
        "can begin with an older one if the newest is damaged."),
    row(KeyKind::size, ATOLL_CONFIG(snapshot.scrub_rate), {0, 1 * kTiB},
        "Each node reads its files of snapshots and logs again at this many bytes per second, to\n"
        "find damage early. 0: it does not."),
    row(KeyKind::duration, ATOLL_CONFIG(snapshot.scrub_interval),
        {100 * kMillisecondUs, 24 * 30 * kHourUs, kMillisecondUs},
        "Time before a node reads its files, after its start and after it has read them."),
    row(KeyKind::boolean, ATOLL_CONFIG(snapshot.warm_cache), Limits{},
        "Each node notes which snapshot pages are in its cache, at snapshots and at its end, and\n"
        "reads them again after a start, in the background. false: the cache starts empty."),

    row(KeyKind::optional_path, ATOLL_CONFIG(archive.directory), {1, kMaxPathBytes},
        "Closed log files are copied into this existing directory before they may be deleted.\n"
        "With a backup, `atoll restore --archive` restores any time since then. Empty: off."),
    row(KeyKind::command, ATOLL_CONFIG(archive.command), {1, kMaxCommandBytes},
        "Instead of a directory, /bin/sh runs this command for each file: %p is its path, %f its\n"
        "name in the archive (node0/log_3_0_000012.atlog), %% is %. Exit code 0 says: stored."),
    row(KeyKind::duration, ATOLL_CONFIG(archive.timeout),
        {100 * kMillisecondUs, 24 * kHourUs, kMillisecondUs},
        "A command that runs longer is killed, and counts as failed."),
    row(KeyKind::duration, ATOLL_CONFIG(archive.retry),
        {100 * kMillisecondUs, 1 * kHourUs, kMillisecondUs},
        "Pause after a failure. Meanwhile commits go on, and the log is kept."),

    row(KeyKind::boolean, ATOLL_CONFIG(metrics.enabled),
        "Whether every process serves Prometheus metrics over HTTP."),
    row(KeyKind::address, ATOLL_CONFIG(metrics.listen), "Address to serve them on."),
    // The maximum is kMaxPort - 1, because the first node uses the port after the coordinator's.
    row(KeyKind::integer, ATOLL_CONFIG(metrics.base_port), {0, kMaxPort - 1},
        "Port of the coordinator; node k has base_port + 1 + k. 0: free ports (`atoll status`)."),
    row(KeyKind::choice, ATOLL_CONFIG(metrics.on_taken_port), kTakenPortChoices,
        "What a process does if another program uses its port. move: it takes a free port, and\n"
        "`atoll up` warns. stop: the cluster does not start."),

    row(KeyKind::boolean, ATOLL_CONFIG(status_page.enabled),
        "Whether the coordinator serves a web page with the state of the cluster."),
    row(KeyKind::address, ATOLL_CONFIG(status_page.listen),
        "Address to serve it on. The page is read-only. It shows names, states and counts, but no\n"
        "records. It has no password: beyond loopback, all who reach the address can read it."),
    row(KeyKind::integer, ATOLL_CONFIG(status_page.port), {0, kMaxPort},
        "Port to serve it on. 0: a free port, which `atoll up` and `atoll status` print. Any "
        "other\n"
        "port must be free, or the cluster does not start."),

    row(KeyKind::boolean, ATOLL_CONFIG(network.enabled),
        "Whether every node accepts sessions of clients over the network."),
    row(KeyKind::address, ATOLL_CONFIG(network.listen),
        "Address to accept them on. Beyond loopback, clients need keys."),
    row(KeyKind::integer, ATOLL_CONFIG(network.base_port), {0, kMaxPort},
        "Port of node 0; node k has base_port + k. 0: free ports (`atoll status`)."),
    row(KeyKind::optional_path, ATOLL_CONFIG(network.key_file), {1, kMaxPathBytes},
        "Keys of all nodes: `atoll keys generate` makes the file. Clients then need keys, too."),
    row(KeyKind::optional_path, ATOLL_CONFIG(network.authorised_keys), {1, kMaxPathBytes},
        "Clients that may connect, one per line: KEY NAME RIGHTS. RIGHTS is a list of read, "
        "write,\n"
        "procedures and administration (storages, sessions; with procedures also the jobs of\n"
        "`atoll bench`). Nodes read the file again when it changes."),
    row(KeyKind::boolean, ATOLL_CONFIG(network.without_keys),
        "Without key_file: accept all clients, with all rights. Only on a loopback address, where\n"
        "all users of the machine can connect."),

    row(KeyKind::endpoint, ATOLL_CONFIG(control.endpoint), {1, kMaxEndpointBytes},
        "ZeroMQ endpoint of the coordinator: ipc, or tcp on a loopback address.\n"
        "Default: ipc://<run_dir>/control.sock."),

    row(KeyKind::paths, ATOLL_CONFIG(procedures.libraries), {1, kMaxPathBytes},
        "Shared libraries with procedures, loaded by every node."),
    row(KeyKind::duration, ATOLL_CONFIG(procedures.time_limit),
        {10 * kMillisecondUs, 1 * kHourUs, kMillisecondUs},
        "A procedure that runs longer is aborted."),
    row(KeyKind::size, ATOLL_CONFIG(procedures.max_input),
        {kSessionPartBytes, kMaxSessionInputBytes}, "Longest input of a call through a session."),
    row(KeyKind::size, ATOLL_CONFIG(procedures.max_output),
        {kSessionPartBytes, kMaxSessionOutputBytes},
        "Longest output of a call through a session. A call with a longer one is not committed."),
    row(KeyKind::size, ATOLL_CONFIG(procedures.payload_memory), {1 * kMiB, 1 * kTiB},
        "Memory per node for all inputs and outputs that are longer than 64 KiB: an input until "
        "its\n"
        "call is answered, an output until its client has taken it. A call that finds no room is\n"
        "answered `unavailable`, and not committed. At least max_input and max_output together."),
    row(KeyKind::duration, ATOLL_CONFIG(procedures.transfer_timeout),
        {100 * kMillisecondUs, 1 * kHourUs, kMillisecondUs},
        "A session ends if its client takes no part of such an output, or sends no part of such "
        "an\n"
        "input, for this long."),

    reloadable(row(KeyKind::choice, ATOLL_CONFIG(log.level), kLogLevelChoices,
                   "What the processes write about themselves.")),
};

#undef ATOLL_CONFIG
#undef ATOLL_NODE

/// Returns whether every key has a unique name, and limits and choices that are valid for its kind.
constexpr bool are_sound(std::span<const ConfigKey> keys) {
  for (const ConfigKey& key : keys) {
    if (key.section.empty() || key.name.empty() || key.doc.empty() || key.field == nullptr) {
      return false;
    }
    if (key.min > key.max || key.step < 1 || key.min % key.step != 0) return false;
    if ((key.kind == KeyKind::choice) != !key.choices.empty()) return false;
    for (const ConfigKey& other : keys) {
      const bool is_same = other.section == key.section && other.name == key.name;
      if (is_same != (&other == &key)) return false;
    }
  }
  return true;
}
static_assert(are_sound(kKeys));

}  // namespace

std::span<const ConfigKey> config_keys() { return kKeys; }

}  // namespace atolldb
