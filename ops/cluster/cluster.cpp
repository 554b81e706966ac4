#include "ops/cluster/cluster.h"

#include <utility>

#include "ops/cluster/process_cluster.h"
#include "ops/cluster/thread_cluster.h"
#include "shared/base/try.h"
#include "shared/config/machine.h"
#include "shared/memory/state_names.h"

namespace atolldb {
namespace {

JobOutput job_output(uint32_t node, const Json& json) {
  JobOutput output{node, json.value("worker", 0u), std::string()};
  if (json.value("ok", false)) {
    output.output = json.value("output", "");
  } else {
    output.output = make_error(static_cast<ExitCode>(json.value("code", 1)),
                               json.value("message", "no reason given"));
  }
  return output;
}

}  // namespace

Result<std::unique_ptr<Cluster>> Cluster::launch(const Config& config, LaunchMode mode,
                                                 const std::string& binary_dir) {
  // Checks the rules for config files, because an embedding program may have made the config by
  // hand.
  const auto checked = parse_config(to_toml(config), "config", Machine::detect());
  if (!checked) return make_error(ExitCode::config, checked.error().front().to_string());
  return mode == LaunchMode::thread ? ThreadCluster::launch(config)
                                    : ProcessCluster::launch(config, binary_dir);
}

std::unexpected<Error> Cluster::no_such_node(uint32_t node) const {
  return make_error(ExitCode::usage, "node " + std::to_string(node) + ": cluster \"" +
                                         config_.cluster.name + "\" has nodes 0 to " +
                                         std::to_string(node_count() - 1) + ": choose one of them");
}

Result<std::vector<JobOutput>> Cluster::run_job(std::string_view name, std::string_view input) {
  return run_job(name, std::vector<std::string>(node_count(), std::string(input)));
}

Result<std::vector<JobOutput>> Cluster::run_job(std::string_view name,
                                                const std::vector<std::string>& input_of_node) {
  std::vector<uint64_t> jobs;
  // After an error, no node must work for an abandoned job.
  const auto stop_all = [&](const Error& why) {
    for (uint32_t node = 0; node < jobs.size(); ++node) {
      [[maybe_unused]] const auto stopped =
          call(node, ControlOperation::job_stop, {{"job", jobs[node]}});
    }
    return std::unexpected(why);
  };
  for (uint32_t node = 0; node < node_count(); ++node) {
    const Result<Json> job = call(node, ControlOperation::job_start,
                                  {{"name", name}, {"input", input_of_node.at(node)}});
    if (!job) return stop_all(job.error());
    jobs.push_back(job->at("job").get<uint64_t>());
  }
  std::vector<JobOutput> outputs;
  for (uint32_t node = 0; node < node_count(); ++node) {
    constexpr std::chrono::milliseconds kRound{1000};
    Result<Json> answer;
    do {
      // Waits in rounds, to notice between them that a process has died.
      answer = call(node, ControlOperation::job_wait,
                    {{"job", jobs[node]}, {"timeout_ms", kRound.count()}});
      if (!answer) return stop_all(answer.error());
    } while (!answer->value("done", false));
    for (const Json& output : answer->at("outputs")) outputs.push_back(job_output(node, output));
  }
  return outputs;
}

Result<uint32_t> Cluster::create_storage(std::string_view name, StorageType type,
                                         uint32_t payload_bytes, uint64_t record_count) {
  ATOLL_ASSIGN(const Json created, coordinator(ControlOperation::storage_create,
                                               {{"name", name},
                                                {"type", to_string(type)},
                                                {"payload_bytes", payload_bytes},
                                                {"record_count", record_count}},
                                               kDdlTimeout));
  return created.at("id").get<uint32_t>();
}

Result<void> Cluster::drop_storage(std::string_view name) {
  ATOLL_TRY(coordinator(ControlOperation::storage_drop, {{"name", name}}, kDdlTimeout));
  return {};
}

}  // namespace atolldb
