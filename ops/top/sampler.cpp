#include "ops/top/sampler.h"

#include <chrono>
#include <utility>

#include "ops/cli/status_report.h"
#include "ops/cli/status_source.h"
#include "shared/memory/epoch_stages.h"
#include "shared/message/control_client.h"
#include "shared/process/run_paths.h"

namespace atolldb::top {
namespace {

/// Returns what a cluster does whose coordinator does not serve requests yet.
std::string start_note(const Json& status) {
  const Json start = status.value("start", Json::object());
  const auto report = parse_start_report(start.dump());
  const std::string state = status.value("state", "starting");
  return report ? state + ": " + cli::progress_text(*report) : state;
}

}  // namespace

Sampler::Sampler(const cli::ClusterChoice& choice, const Config& config)
    : choice_{config.cluster.name, choice.config_file}, config_(config) {}

Result<Sample> Sampler::take() {
  Sample sample;
  Result<Json> status = cli::ask_status(config_, {{"buckets", true}}, kTimeout);
  sample.time_ns = monotonic_time_ns();
  if (!status) {
    // A restart may have changed the config. If the cluster has ended, the error says how.
    Result<Config> again = cli::find_reachable(choice_);
    if (!again) return std::unexpected(again.error());
    config_ = *std::move(again);
    sample.note = status.error().message;
    return sample;
  }
  sample.status = *std::move(status);
  if (!sample.has_counters()) {
    sample.note = start_note(sample.status);
    return sample;
  }
  for (uint32_t node = 0; node < config_.nodes.size(); ++node) ask_node(node, sample);
  return sample;
}

void Sampler::ask_node(uint32_t node, Sample& sample) const {
  const ControlClient client(node_endpoint(config_, node));
  const auto ask = [&](ControlOperation operation, const Json& body, const char* member) -> Json {
    const Result<Json> answer = client.call(operation, body, kTimeout);
    if (answer) return answer->value(member, Json());
    if (sample.note.empty()) sample.note = answer.error().message;
    return nullptr;
  };
  sample.calls.push_back(ask(ControlOperation::procedure_list, {{"counts", true}}, "calls"));
  // A node that does not answer the first request would delay the sample again.
  sample.sessions.push_back(sample.calls.back().is_null()
                                ? Json()
                                : ask(ControlOperation::session_list, Json::object(), "sessions"));
}

}  // namespace atolldb::top
