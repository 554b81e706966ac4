#include "bench/job/survey.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/mastertree/inspect.h"
#include "shared/memory/page_pool.h"

namespace atolldb::bench {

namespace {

/// Returns the number of pages of a loaded array, in which every leaf exists.
uint64_t array_pages(const StorageControl& storage) {
  constexpr uint64_t kFanout = (kPageBytes - sizeof(ArrayPage)) / sizeof(DualPointer);
  uint64_t level = (storage.record_count + records_per_leaf(storage.payload_bytes) - 1) /
                   records_per_leaf(storage.payload_bytes);
  uint64_t pages = level;
  while (level > 1) {
    level = (level + kFanout - 1) / kFanout;
    pages += level;
  }
  return pages;
}

/// Checks a tree after the transactions have ended. check_tree needs a tree that no worker changes,
/// but idle workers still work off hints for some time. So the check is repeated until it finds no
/// defect. A real defect remains after the last repetition.
std::string check_settled_tree(WorkerContext& worker, StorageControl& storage,
                               TreeStatistics& statistics) {
  constexpr std::chrono::milliseconds kPause{100};
  constexpr int kLooks = 50;
  std::string wrong;
  for (int look = 0; look < kLooks; ++look) {
    if (look != 0) std::this_thread::sleep_for(kPause);
    statistics = {};
    worker.enter();  // no page is recycled during the walk (R9)
    wrong = check_tree(worker.view(), storage, statistics);
    worker.leave();
    if (wrong.empty()) break;
  }
  return wrong;
}

}  // namespace

Result<std::string> survey_storages(JobContext& context, std::string_view benchmark,
                                    std::span<const StorageSpec> specs,
                                    std::string_view rest_name) {
  if (context.node() != 0 || context.worker_ordinal() != 0) return std::string("{}");
  const ClusterView& view = context.worker().view();
  nlohmann::json json;
  uint64_t known_pages = 0;
  for (const StorageSpec& spec : specs) {
    StorageControl* storage = context.storage(spec.name, spec.type);
    if (storage == nullptr || spec.type == StorageType::sequential) continue;
    uint64_t pages = 0;
    if (spec.type == StorageType::array) {
      pages = array_pages(*storage);
    } else {
      TreeStatistics statistics;
      const std::string wrong = check_settled_tree(context.worker(), *storage, statistics);
      if (!wrong.empty()) {
        return make_error(ExitCode::corruption, std::string(benchmark) + ": " +
                                                    std::string(spec.name) + ": " + wrong +
                                                    ": report this error with the seed of the run");
      }
      pages = statistics.pages();
      json["records"][std::string(spec.name)] = statistics.records;
    }
    known_pages += pages;
    json["storage_bytes"][std::string(spec.name)] = pages * kPageBytes;
  }
  uint64_t used_pages = 0;
  for (uint32_t node = 0; node < view.node_count; ++node) {
    const auto& pool = *reinterpret_cast<const PoolControl*>(view.pool[node]);
    const uint64_t total = pool.page_count - pool.first_page;
    const uint64_t free = std::min(total, pool.available());
    used_pages += total - free;
    json["pools"].push_back({{"node", node},
                             {"bytes", pool.page_count * kPageBytes},
                             {"used_bytes", (total - free) * kPageBytes},
                             {"mapped_page_bytes", pool.header.real_page_bytes}});
  }
  json["storage_bytes"][std::string(rest_name)] =
      (used_pages > known_pages ? used_pages - known_pages : 0) * kPageBytes;
  return json.dump();
}

}  // namespace atolldb::bench
