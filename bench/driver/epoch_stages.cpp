#include "bench/driver/epoch_stages.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace atolldb::bench {
namespace {

using Buckets = std::vector<std::pair<uint32_t, uint64_t>>;

/// Returns the counts of `after` minus those of `before`.
Buckets difference(const Buckets& before, const Buckets& after) {
  const std::map<uint32_t, uint64_t> earlier(before.begin(), before.end());
  Buckets counts;
  for (const auto& [bucket, count] : after) {
    const auto found = earlier.find(bucket);
    const uint64_t old = found == earlier.end() ? 0 : found->second;
    if (count > old) counts.emplace_back(bucket, count - old);
  }
  return counts;
}

}  // namespace

EpochStages epoch_stages_between(const nlohmann::json& before, const nlohmann::json& after) {
  EpochStages result;
  try {
    for (size_t i = 0; i < after.at("stages").size(); ++i) {
      const nlohmann::json& stage = after.at("stages").at(i);
      const auto counts = difference(before.at("stages").at(i).at("buckets").get<Buckets>(),
                                     stage.at("buckets").get<Buckets>());
      if (!counts.empty() && counts.back().first >= HistogramBuckets::kCount) return {};
      result.stages.push_back({stage.at("stage").get<std::string>(), {}});
      if (counts.empty()) continue;
      const uint64_t max_ns = HistogramBuckets::lower(counts.back().first + 1) - 1;
      result.stages.back().times.restore(counts, max_ns);
    }
    result.slowest_epoch = after.at("slowest_epoch");
  } catch (const nlohmann::json::exception&) {
    return {};  // the cluster has no log, or does not answer
  }
  return result;
}

std::string slowest_epoch_text(const nlohmann::json& epoch) {
  std::string stages;
  for (const auto& stage : epoch.value("stages", nlohmann::json::array())) {
    stages += fmt::format("{} {:.2f}, ", stage.value("stage", ""), stage.value("us", 0.0) * 1e-3);
  }
  return fmt::format("slowest epoch {}: {:.2f} ms: {}last logger {}",
                     epoch.value("epoch", uint64_t{0}), epoch.value("total_us", 0.0) * 1e-3, stages,
                     epoch.value("last_logger", ""));
}

}  // namespace atolldb::bench
