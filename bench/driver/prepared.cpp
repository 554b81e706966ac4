#include "bench/driver/prepared.h"

#include <fmt/format.h>

#include <algorithm>

#include "shared/base/try.h"

namespace atolldb::bench {
namespace {

std::unexpected<Error> not_prepared(const std::string& benchmark) {
  return make_error(ExitCode::usage,
                    fmt::format("bench {0}: the database is not loaded: run `atoll bench {0} "
                                "prepare` first",
                                benchmark));
}

}  // namespace

Result<Prepared> load_prepared(ClusterPort& cluster, const std::string& benchmark) {
  ATOLL_ASSIGN(const std::string text, cluster.get_text(kPreparedStorage, benchmark));
  if (text.empty()) return not_prepared(benchmark);
  Prepared prepared;
  prepared.benchmark = benchmark;
  try {
    const auto json = nlohmann::json::parse(text);
    prepared.options = json.at("options");
    json.at("nodes").get_to(prepared.nodes);
    json.at("runs").get_to(prepared.runs);
    json.at("updates").get_to(prepared.updates);
    json.at("counts_updates").get_to(prepared.counts_updates);
  } catch (const nlohmann::json::exception& error) {
    return make_error(ExitCode::failed,
                      fmt::format("bench {0}: record \"{0}\" of storage \"{1}\" cannot be read: "
                                  "{2}: run `atoll bench {0} cleanup`, then prepare again",
                                  benchmark, kPreparedStorage, error.what()));
  }
  if (prepared.nodes == cluster.node_count()) return prepared;
  return make_error(ExitCode::usage,
                    fmt::format("bench {0}: the database was loaded on {1} nodes, and the cluster "
                                "has {2}: run `atoll bench {0} cleanup`, then prepare again",
                                benchmark, prepared.nodes, cluster.node_count()));
}

Result<void> store_prepared(ClusterPort& cluster, const Prepared& prepared) {
  ATOLL_ASSIGN(const auto names, cluster.storage_names());
  if (std::ranges::find(names, kPreparedStorage) == names.end()) {
    ATOLL_TRY(cluster.create_storage({kPreparedStorage, StorageType::mastertree, 0, 0}));
  }
  const nlohmann::json json = {{"options", prepared.options},
                               {"nodes", prepared.nodes},
                               {"runs", prepared.runs},
                               {"updates", prepared.updates},
                               {"counts_updates", prepared.counts_updates}};
  return cluster.put_text(kPreparedStorage, prepared.benchmark, json.dump());
}

Result<void> check_absent(ClusterPort& cluster, std::string_view command,
                          std::span<const StorageSpec> specs) {
  ATOLL_ASSIGN(const auto names, cluster.storage_names());
  for (const StorageSpec& spec : specs) {
    if (std::ranges::find(names, spec.name) == names.end()) continue;
    return make_error(ExitCode::usage,
                      fmt::format("{0}: storage \"{1}\" exists: run `atoll {0} cleanup` first",
                                  command, spec.name));
  }
  return {};
}

Result<uint32_t> clean_up(ClusterPort& cluster, const std::string& benchmark,
                          std::span<const StorageSpec> specs) {
  ATOLL_ASSIGN(const auto names, cluster.storage_names());
  const auto exists = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  // Forgets the load first: after an interrupted clean-up nothing counts as loaded.
  if (exists(kPreparedStorage)) {
    ATOLL_TRY(cluster.put_text(kPreparedStorage, benchmark, ""));
  }
  uint32_t dropped = 0;
  for (const StorageSpec& spec : specs) {
    if (!exists(spec.name)) continue;
    ATOLL_TRY(cluster.drop_storage(std::string(spec.name)));
    ++dropped;
  }
  return dropped;
}

}  // namespace atolldb::bench
