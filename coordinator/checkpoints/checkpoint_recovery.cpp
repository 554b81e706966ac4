#include "coordinator/checkpoints/checkpoint_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/checkpoints/checkpoint_job.h"
#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Longest time that a node waits in one request for the end of its work, in ms. It bounds how long
/// a node pauses after the others have caught up.
constexpr uint64_t kReplayAwaitMs = 20;

int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Adds the storages in which the nodes have stored tombstones.
void add_tombstones(const std::vector<Json>& answers, std::set<uint32_t>& ids) {
  for (const Json& answer : answers) {
    for (const Json& id : answer.value("tombstones", Json::array())) ids.insert(id.get<uint32_t>());
  }
}

/// Each node divides the files by itself. Returns an error unless all have divided them alike: else
/// a file may have no reader.
Result<void> check_divisions(const std::vector<Json>& ended) {
  if (fault::unchecked_divisions) return {};
  const auto division = [](const Json& answer) { return answer.value("division", std::string()); };
  for (const Json& answer : ended) {
    if (division(answer) == division(ended.front())) continue;
    return make_error(ExitCode::failed,
                      fmt::format("the nodes have divided the files of the replay differently: "
                                  "\"{}\", \"{}\": internal error: start the cluster again",
                                  division(ended.front()), division(answer)));
  }
  return {};
}

}  // namespace

std::string_view text_of(RecoveryStep step, size_t node_count) {
  switch (step) {
    case RecoveryStep::files:
      return "replaying the checkpoint and the logs";
    case RecoveryStep::exchange:
      return node_count > 1 ? "exchanging and applying updates" : "applying updates";
    case RecoveryStep::clean:
      return "removing tombstones";
  }
  CHECK(false);
}

Result<void> CheckpointRecovery::run(const ReplayPlan& plan) {
  CHECK(plan.first_epoch != 0 && plan.cut_epoch + 1 >= plan.first_epoch);
  began_ns_.store(now_ns(), std::memory_order_relaxed);
  {
    const std::lock_guard guard(mutex_);
    progress_.assign(config_.nodes.size(), Json::object());
  }
  clock_.hold_settled(plan.first_epoch - 1);  // R96
  const std::vector<std::byte> encoded = encode_replay_plan(plan);
  ATOLL_TRY(ask_all_nodes(config_, call_node_, ControlOperation::replay_begin,
                          Json{{"plan", to_binary(encoded)}}));
  std::set<uint32_t> with_tombstones;
  ATOLL_ASSIGN(const std::vector<Json> replayed, await_nodes(true));
  add_tombstones(replayed, with_tombstones);
  ATOLL_TRY(exchange(replayed));
  ATOLL_ASSIGN(const std::vector<Json> exchanged, await_nodes());
  add_tombstones(exchanged, with_tombstones);
  // From here on, every record has its newest version, so no deletion need be remembered (R93).
  clock_.release_settled(plan.cut_epoch);
  step_.store(RecoveryStep::clean, std::memory_order_relaxed);
  ATOLL_TRY(clean(with_tombstones));
  ATOLL_TRY(ask_all_nodes(config_, call_node_, ControlOperation::replay_end, Json::object()));
  ended_ns_.store(now_ns(), std::memory_order_relaxed);
  return {};
}

Result<void> CheckpointRecovery::exchange(const std::vector<Json>& ended) {
  ATOLL_TRY(check_divisions(ended));
  std::vector<std::vector<GivenFile>> for_node(ended.size());
  for (const Json& answer : ended) {
    const auto bytes = find_binary(answer, "given");
    if (!bytes) {
      return make_error(ExitCode::failed,
                        "a node has not said which records it gives to others: internal error: "
                        "start the cluster again");
    }
    ATOLL_ASSIGN(auto files, decode_given_files(*bytes));
    for (GivenFile& file : files) {
      if (file.to >= for_node.size()) {
        return make_error(ExitCode::failed,
                          fmt::format("{}: was given to node {}, but there are {} nodes: internal "
                                      "error: start the cluster again",
                                      file.run.path, file.to, for_node.size()));
      }
      for_node[file.to].push_back(std::move(file));
    }
  }
  step_.store(RecoveryStep::exchange, std::memory_order_relaxed);
  if (fault::exchange_amid_files) return {};
  return on_all_nodes(config_, [&](uint32_t node) { return let_take(node, for_node[node]); });
}

Result<void> CheckpointRecovery::let_take(uint32_t node, const std::vector<GivenFile>& files) {
  CHECK(node < config_.nodes.size());
  ATOLL_TRY(call_node_(node, ControlOperation::replay_exchange,
                       Json{{"given", to_binary(encode_given_files(files))}}));
  return {};
}

/// Removes the tombstones of these storages. Each storage has one node, because only one worker
/// may clean it.
Result<void> CheckpointRecovery::clean(const std::set<uint32_t>& storages) {
  const size_t nodes = config_.nodes.size();
  std::vector<std::vector<uint32_t>> by_node(nodes);
  for (const uint32_t id : storages) by_node[id % nodes].push_back(id);
  const auto asked = on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    ATOLL_TRY(call_node_(node, ControlOperation::replay_clean, Json{{"storages", by_node[node]}}));
    return {};
  });
  if (!asked) return asked;
  ATOLL_TRY(await_nodes());
  return {};
}

Result<std::vector<Json>> CheckpointRecovery::await_nodes(bool keeps_step) {
  std::vector<Json> ended(config_.nodes.size());
  std::vector<bool> has_ended(config_.nodes.size());  // guarded by mutex_
  std::atomic<bool> has_failed{false};  // relaxed: the other nodes need only be left soon
  ATOLL_TRY(on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    for (bool is_done = false; !is_done && !has_failed.load(std::memory_order_relaxed);) {
      uint64_t limit = UINT64_MAX;
      if (keeps_step) {
        const std::lock_guard guard(mutex_);
        limit = replay_limit(progress_, has_ended, node);
      }
      Result<Json> answer =
          call_node_(node, ControlOperation::replay_wait,
                     Json{{"timeout_ms", kReplayAwaitMs}, {"limit_bytes", limit}});
      if (fault::exchange_amid_files && keeps_step && answer && answer->value("done", false)) {
        if (auto taken = let_take(node, {}); !taken) return taken;
      }
      const std::lock_guard guard(mutex_);
      is_done = !answer || answer->value("done", false);
      has_ended[node] = is_done;  // the other nodes do not wait for a node that has failed
      if (!answer) {
        has_failed.store(true, std::memory_order_relaxed);
        return std::unexpected(answer.error());
      }
      if (is_done) ended[node] = *answer;
      CHECK(node < progress_.size());
      progress_[node] = *std::move(answer);
    }
    return {};
  }));
  return ended;
}

Json CheckpointRecovery::progress() const {
  const std::lock_guard guard(mutex_);
  return sum_of_progress(progress_);
}

std::chrono::nanoseconds CheckpointRecovery::time() const {
  const int64_t began = began_ns_.load(std::memory_order_relaxed);
  const int64_t ended = ended_ns_.load(std::memory_order_relaxed);
  if (began == 0) return std::chrono::nanoseconds(0);
  return std::chrono::nanoseconds((ended == 0 ? now_ns() : ended) - began);
}

uint64_t replay_limit(const std::vector<Json>& progress, const std::vector<bool>& has_ended,
                      uint32_t node) {
  constexpr uint64_t kWindowParts = 32;
  uint64_t slowest = UINT64_MAX;
  CHECK(node < progress.size() && has_ended.size() == progress.size());
  for (uint32_t other = 0; other < progress.size(); ++other) {
    if (other == node || has_ended[other]) continue;
    slowest = std::min(slowest, progress[other].value("bytes", uint64_t{0}));
  }
  if (slowest == UINT64_MAX) return slowest;
  const uint64_t total = progress[node].value("bytes_total", uint64_t{0});
  return slowest + std::max(kReplayWindowBytes, total / kWindowParts);
}

ReplayProgress replay_progress_of(const Json& counts) {
  return {counts.value("bytes", uint64_t{0}), counts.value("bytes_total", uint64_t{0})};
}

int64_t replay_seconds_left(const ReplayProgress& progress, std::chrono::nanoseconds elapsed) {
  constexpr std::chrono::seconds kLeast{1};  // a rate over a shorter time is not meaningful
  if (elapsed < kLeast || progress.bytes == 0) return -1;
  if (progress.bytes >= progress.bytes_total) return 0;
  const double seconds = std::chrono::duration<double>(elapsed).count();
  const auto left = static_cast<double>(progress.bytes_total - progress.bytes);
  return static_cast<int64_t>(seconds * left / static_cast<double>(progress.bytes) + 0.5);
}

}  // namespace atolldb
