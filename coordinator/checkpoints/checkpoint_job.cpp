#include "coordinator/checkpoints/checkpoint_job.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "coordinator/durability/disk_room.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Longest time that a node waits in one request for the end of its part, in ms. It bounds the
/// delay of progress reports and of a cancellation.
constexpr uint64_t kCopyAwaitMs = 200;

/// Name of the binary member with the ranges of all storages.
constexpr const char* kRanges = "ranges";

std::vector<uint32_t> ids_of(const std::vector<StorageEntry>& storages) {
  std::vector<uint32_t> ids;
  for (const StorageEntry& storage : storages) ids.push_back(storage.id);
  return ids;
}

/// Returns the files that a node has written.
Result<std::vector<CheckpointFileInfo>> files_of(const Json& answer, uint32_t node) {
  std::vector<CheckpointFileInfo> files;
  for (const Json& file : answer.value("files", Json::array())) {
    CheckpointFileInfo info;
    info.directory = file.value("directory", std::string());
    info.node = static_cast<uint16_t>(node);
    info.writer = file.value("writer", uint16_t{0});
    info.number = file.value("number", uint32_t{0});
    info.bytes = file.value("bytes", uint64_t{0});
    info.records = file.value("records", uint64_t{0});
    info.checksum = file.value("checksum", uint32_t{0});
    if (info.directory.empty() || info.bytes == 0) {
      return make_error(ExitCode::failed, "node " + std::to_string(node) +
                                              ": describes a file of its checkpoint badly: "
                                              "internal error");
    }
    files.push_back(std::move(info));
  }
  return files;
}

/// Adds the records that a node has copied to those of their storages.
Result<void> add_records(const Json& answer, uint32_t node,
                         std::vector<CheckpointStorage>& storages) {
  for (const Json& copied : answer.value("storages", Json::array())) {
    const auto id = copied.value("id", uint32_t{0});
    const auto storage = std::ranges::lower_bound(storages, id, {}, &CheckpointStorage::id);
    if (storage == storages.end() || storage->id != id) {
      return make_error(ExitCode::failed, "node " + std::to_string(node) + ": has copied storage " +
                                              std::to_string(id) +
                                              ", which is not part of the checkpoint: internal "
                                              "error");
    }
    storage->records = storage->records.value_or(0) + copied.value("records", uint64_t{0});
  }
  return {};
}

}  // namespace

Result<CheckpointMetadata> CheckpointJob::copy(const CheckpointInput& task) {
  CHECK(task.id != 0 && task.replay_epoch != 0);
  {
    const std::lock_guard guard(mutex_);
    progress_.assign(config_.nodes.size(), Json::object());
  }
  ATOLL_TRY(begin(task));
  std::vector<Json> answers(config_.nodes.size());
  std::atomic<bool> has_failed{false};
  ATOLL_TRY(on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    auto answer = await_copy(task.id, node, has_failed);
    if (!answer) {
      has_failed.store(true, std::memory_order_relaxed);
      return std::unexpected(answer.error());
    }
    answers[node] = *std::move(answer);
    return {};
  }));
  CheckpointMetadata metadata;
  metadata.id = task.id;
  metadata.replay_epoch = task.replay_epoch;
  metadata.cluster_uuid = task.cluster_uuid;
  for (const StorageEntry& storage : task.storages) {
    metadata.storages.push_back({storage.id, storage.type, storage.name, 0});
  }
  std::ranges::sort(metadata.storages, {}, &CheckpointStorage::id);
  for (uint32_t node = 0; node < answers.size(); ++node) {
    ATOLL_ASSIGN(const auto files, files_of(answers[node], node));
    metadata.files.insert(metadata.files.end(), files.begin(), files.end());
    ATOLL_TRY(add_records(answers[node], node, metadata.storages));
  }
  std::ranges::sort(metadata.files, {}, [](const CheckpointFileInfo& file) {
    return std::tuple(file.node, file.writer, file.number);
  });
  return metadata;
}

uint32_t files_of_each_thread(const Config& config, uint32_t node) {
  constexpr uint32_t kLeastFiles = 4;
  const uint32_t threads = config.durability.checkpoint_threads;
  CHECK(threads != 0 && node < config.nodes.size());
  if (config.durability.checkpoint_files != 0) return config.durability.checkpoint_files;
  const uint32_t needed = (config.nodes[node].workers + threads - 1) / threads;
  return std::clamp(needed, kLeastFiles, kMaxCheckpointFiles);
}

/// Divides the storages and starts the threads of all nodes. Any node can divide all storages.
Result<void> CheckpointJob::begin(const CheckpointInput& task) {
  const uint32_t threads = config_.durability.checkpoint_threads;
  const auto nodes = static_cast<uint32_t>(config_.nodes.size());
  CHECK(threads != 0 && nodes != 0);
  ATOLL_ASSIGN(const Json divided,
               call_node_(0, ControlOperation::checkpoint_divide,
                          Json{{"parts", nodes * threads}, {"storages", ids_of(task.storages)}}));
  const auto ranges = find_binary(divided, kRanges);
  if (!ranges) {
    return make_error(ExitCode::failed, "node 0: has divided no storages: internal error");
  }
  return on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    uint64_t reserve = 0;
    for (uint32_t thread = 0; thread < threads && task.keeps_reserve; ++thread) {
      reserve = std::max(reserve, disk_reserve(config_, log_directory(config_, node, thread)));
    }
    const Json body = {{"checkpoint", task.id},
                       {"replay_epoch", task.replay_epoch},
                       {"threads", threads},
                       {"files", files_of_each_thread(config_, node)},
                       {"first_part", node * threads},
                       {"disk_reserve", reserve},
                       {"sync_bytes", config_.durability.checkpoint_sync_volume},
                       {"pause_us", config_.durability.checkpoint_pause.count()},
                       {"pause_bytes", kCheckpointPauseBytes},
                       {kRanges, to_binary(*ranges)}};
    ATOLL_TRY(call_node_(node, ControlOperation::checkpoint_begin, body));
    return {};
  });
}

Result<Json> CheckpointJob::await_copy(uint32_t id, uint32_t node,
                                       const std::atomic<bool>& has_failed) {
  const Json body = {{"checkpoint", id}, {"timeout_ms", kCopyAwaitMs}};
  for (;;) {
    if (is_cancelled()) return make_error(ExitCode::not_running, "the checkpoint was cancelled");
    // Returns no error, so that on_all_nodes returns the error of the other node.
    if (has_failed.load(std::memory_order_relaxed)) return Json::object();
    ATOLL_ASSIGN(Json answer, call_node_(node, ControlOperation::checkpoint_wait, body));
    const bool is_done = answer.value("done", false);
    {
      const std::lock_guard guard(mutex_);
      CHECK(node < progress_.size());
      progress_[node] = answer;
    }
    if (is_done) return answer;
  }
}

Result<void> CheckpointJob::end(uint32_t id, bool keep) {
  return ask_all_nodes(config_, call_node_, ControlOperation::checkpoint_end,
                       Json{{"checkpoint", id}, {"keep", keep}});
}

Json CheckpointJob::progress() const {
  const std::lock_guard guard(mutex_);
  return sum_of_progress(progress_);
}

}  // namespace atolldb
