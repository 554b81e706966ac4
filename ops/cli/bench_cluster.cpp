#include "ops/cli/bench_cluster.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "bench/driver/session_transport.h"
#include "ops/cli/running_cluster.h"
#include "ops/launcher/run_folder.h"
#include "shared/base/try.h"
#include "shared/client/connection_string.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "shared/network/wire.h"

namespace atolldb::cli {
namespace {

/// Gives the cluster new data folders beside those of the config, so that the benchmark does not
/// find earlier data. Does not use /tmp, because /tmp may be in memory.
Result<void> use_new_data_folders(Config& config) {
  ATOLL_ASSIGN(std::string data, new_folder(config.cluster.data_dir, "change cluster.data_dir"));
  config.cluster.data_dir = std::move(data);
  for (NodeConfig& node : config.nodes) {
    for (std::string& directory : node.directories) {
      ATOLL_ASSIGN(std::string own,
                   new_folder(directory + "/bench", "change the node's directories"));
      directory = std::move(own);
    }
  }
  return {};
}

void set_durability(Config& config, const std::string& mode) {
  if (mode.empty()) return;
  config.durability.mode = mode == "off"       ? DurabilityMode::off
                           : mode == "durable" ? DurabilityMode::durable
                                               : DurabilityMode::measure;
  if (config.durability.mode == DurabilityMode::measure) {
    config.durability.backend = FileBackend::null;
  } else if (config.durability.backend == FileBackend::null) {
    config.durability.backend = FileBackend::posix;
  }
}

/// `what`: "read" or "written".
std::unexpected<Error> record_error(const char* what, const std::string& storage,
                                    const std::string& key, const SessionReply& reply) {
  return make_error(ExitCode::failed, "bench: record \"" + key + "\" of storage \"" + storage +
                                          "\" cannot be " + what + ": " +
                                          std::string(to_string(reply.status)) +
                                          (reply.message.empty() ? "" : ": " + reply.message));
}

}  // namespace

uint32_t BenchPort::worker_count() const {
  uint32_t workers = 0;
  for (const NodeConfig& node : cluster_.config().nodes) workers += node.workers;
  return workers;
}

Result<void> BenchPort::create_storage(const bench::StorageSpec& spec) {
  ATOLL_TRY(cluster_.create_storage(spec.name, spec.type, spec.payload_bytes, spec.record_count));
  return {};
}

Result<std::vector<std::string>> BenchPort::run_job(const std::string& name,
                                                    const std::string& input) {
  ATOLL_ASSIGN(auto outputs, cluster_.run_job(name, input));
  std::vector<std::string> texts;
  for (JobOutput& output : outputs) {
    if (!output.output) {
      return make_error(output.output.error().code, "bench: " + name + " on worker " +
                                                        std::to_string(output.worker) +
                                                        " of node " + std::to_string(output.node) +
                                                        ": " + output.output.error().message);
    }
    texts.push_back(*std::move(output.output));
  }
  return texts;
}

Json BenchPort::status(const Json& request) {
  constexpr std::chrono::milliseconds kPatience{1'000};
  const Result<Json> status = cluster_.coordinator(ControlOperation::status, request, kPatience);
  return status ? *status : Json::object();
}

uint64_t BenchPort::epoch() {
  return status().value("epochs", Json::object()).value("current", uint64_t{0});
}

uint64_t BenchPort::commits() {
  uint64_t commits = 0;
  for (const Json& node : status().value("nodes", Json::array())) {
    commits += node.value("commits", uint64_t{0}) + node.value("read_only_commits", uint64_t{0});
  }
  return commits;
}

uint64_t BenchPort::unallocated_pool_bytes() {
  uint64_t bytes = 0;
  for (const Json& node : status().value("nodes", Json::array())) {
    bytes += node.value("pool", Json::object()).value("unallocated_bytes", uint64_t{0});
  }
  return bytes;
}

Json BenchPort::acknowledgement(uint64_t epoch) {
  return status({{"slowest_since", epoch}, {"buckets", true}}).value("acknowledgement", Json());
}

Result<std::vector<std::string>> BenchPort::storage_names() {
  ATOLL_ASSIGN(const Json answer,
               cluster_.coordinator(ControlOperation::storage_list, Json::object()));
  std::vector<std::string> names;
  for (const Json& storage : answer.value("storages", Json::array())) {
    names.push_back(storage.value("name", ""));
  }
  return names;
}

Result<std::unique_ptr<ClientTransport>> BenchPort::open_session(uint32_t node) {
  ATOLL_ASSIGN(auto session, cluster_.connect_session(node));
  return std::unique_ptr<ClientTransport>(std::move(session));
}

Result<std::string> BenchPort::get_text(const std::string& storage, const std::string& key) {
  ATOLL_ASSIGN(const auto session, open_session(0));
  KvRequest request;
  request.get(storage, kv_bytes(key));
  const SessionReply reply = session->call("kv.get", request.bytes());
  if (reply.status == Status::storage_not_found) return "";
  const auto results =
      reply.status == Status::ok ? read_kv_reply(reply.output, request.bytes()) : std::nullopt;
  if (!results) return record_error("read", storage, key, reply);
  const KvResultView& result = results->front();
  if (result.status != Status::ok) return "";
  return std::string(reinterpret_cast<const char*>(result.value.data()), result.value.size());
}

Result<void> BenchPort::put_text(const std::string& storage, const std::string& key,
                                 const std::string& value) {
  ATOLL_ASSIGN(const auto session, open_session(0));
  KvRequest request;
  request.put(storage, kv_bytes(key), kv_bytes(value));
  const SessionReply reply = session->call("kv.put", request.bytes());
  if (reply.status != Status::ok) return record_error("written", storage, key, reply);
  return {};
}

Result<std::unique_ptr<bench::Transport>> BenchPort::connect(uint32_t node,
                                                             const bench::ClientRoute& route) {
  if (!route.is_network) {
    ATOLL_ASSIGN(auto session, cluster_.connect_session(node));
    return std::make_unique<bench::SessionTransport>(std::move(session), kSessionSlots);
  }
  ATOLL_ASSIGN(const std::string address, network_address(node, route.key_file));
  ATOLL_ASSIGN(const ConnectionTarget target, parse_connection_string(address));
  ATOLL_ASSIGN(auto session, connect_to(target, target.connect_timeout));
  return std::make_unique<bench::SessionTransport>(std::move(session), kMaxNetworkInFlight);
}

Result<std::string> BenchPort::network_address(uint32_t node, const std::string& key_file) {
  const std::string role = "node" + std::to_string(node);
  for (const Json& process : status().value("processes", Json::array())) {
    if (process.value("role", "") != role || !process.contains("network")) continue;
    const Json& port = process["network"];
    std::string address = "atoll+tcp://" + port.value("endpoint", "");
    // Without keys the node has none, and the client needs none.
    if (key_file.empty()) return address;
    return address + "?server_key=" + port.value("key", "") +
           "&key_file=" + escape_percent(key_file);
  }
  return make_error(
      ExitCode::usage,
      "bench: " + role + " has no network port: set network.enabled, or use --client local");
}

Result<std::string> new_folder(const std::filesystem::path& stem, const char* what_to_do) {
  std::error_code error;
  std::filesystem::create_directories(stem.parent_path(), error);
  std::string pattern = stem.string() + "-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    return make_error(ExitCode::failed,
                      pattern + ": cannot be made: " + std::strerror(errno) + ": " + what_to_do);
  }
  return pattern;
}

Result<std::unique_ptr<Cluster>> find_bench_cluster(const ClusterChoice& choice,
                                                    const std::string& command,
                                                    const bench::CommonOptions& options) {
  const bool is_sized =
      options.nodes != 0 || options.workers_per_node != 0 || !choice.settings.empty();
  const bool is_chosen = !choice.name.empty() || !choice.config_file.empty();
  if (is_sized && choice.name.empty()) return nullptr;
  const Result<Config> config = find_running(choice);
  if (!config) {
    // With --cluster the cluster must be running. Without it the benchmark can also start one.
    const bool is_down = config.error().code == ExitCode::not_running;
    if (is_down && choice.name.empty()) return nullptr;
    return std::unexpected(config.error());
  }
  if (is_sized && is_chosen) {
    return make_error(ExitCode::usage, command + ": cluster \"" + config->cluster.name +
                                           "\" runs: --nodes, --workers-per-node and --set are "
                                           "only for a cluster that the benchmark starts");
  }
  Config wanted = *config;
  set_durability(wanted, options.durability);
  if (wanted.durability.mode != config->durability.mode) {
    return make_error(ExitCode::usage, command + ": cluster \"" + config->cluster.name +
                                           "\" runs with durability " + durability_text(*config) +
                                           ": --durability is only for a cluster that the "
                                           "benchmark starts: leave it out");
  }
  return std::make_unique<RunningCluster>(*config);
}

namespace {

/// Returns whether the logs are in a new folder: neither a file nor --set nor the environment says
/// another one.
bool has_own_log_folder(const ClusterChoice& choice, const Config& config) {
  return choice.config_file.empty() && !config.origins.contains("cluster.log_dir");
}

}  // namespace

Result<Config> config_of_bench_cluster(const ClusterChoice& choice, const std::string& name,
                                       const bench::CommonOptions& options) {
  Result<Config> config = config_of_new_cluster(
      choice.config_file.empty() ? ClusterChoice{name, "", choice.settings} : choice);
  if (!config) return config;
  if (options.nodes != 0) config->nodes.resize(options.nodes, config->nodes.back());
  if (options.workers_per_node != 0) {
    for (NodeConfig& node : config->nodes) node.workers = options.workers_per_node;
  }
  if (has_own_log_folder(choice, *config)) {
    std::error_code error;
    ATOLL_ASSIGN(config->cluster.log_dir,
                 new_folder(std::filesystem::temp_directory_path(error) / "atoll-bench",
                            "set TMPDIR to a folder that can be written"));
  }
  ATOLL_TRY(use_new_data_folders(*config));
  set_durability(*config, options.durability);
  // The data belong to one run. A report across a restart would be meaningless.
  config->cluster.restart = RestartPolicy::never;
  return config;
}

std::vector<std::string> own_folders(const ClusterChoice& choice, const Config& config) {
  std::vector<std::string> folders = node_directories(config);
  folders.push_back(config.cluster.data_dir);
  if (has_own_log_folder(choice, config)) folders.push_back(config.cluster.log_dir);
  return folders;
}

InterruptWatch::InterruptWatch(Cluster& cluster, const UniqueFd& signals)
    : end_(eventfd(0, EFD_CLOEXEC)),
      thread_([this, &cluster, fd = signals.get()] { watch(cluster, fd); }) {}

InterruptWatch::~InterruptWatch() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(end_.get(), &one, sizeof(one));
  thread_.join();
}

void InterruptWatch::watch(Cluster& cluster, int signals) {
  constexpr std::chrono::milliseconds kPatience{2'000};
  bool now = false;
  while (true) {
    pollfd fds[] = {{signals, POLLIN, 0}, {end_.get(), POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) continue;  // EINTR
    if (fds[1].revents != 0) return;
    signalfd_siginfo signal{};
    if (read(signals, &signal, sizeof(signal)) != sizeof(signal)) continue;
    // The error is ignored. If the request is lost, the cluster does not stop, and the user can
    // send another signal.
    [[maybe_unused]] const auto asked =
        cluster.coordinator(ControlOperation::down, Json{{"now", now}}, kPatience);
    now = true;
  }
}

}  // namespace atolldb::cli
