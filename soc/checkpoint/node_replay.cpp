#include "soc/checkpoint/node_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "engine/format/crc32c.h"
#include "engine/gleaner/sorted_run.h"
#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {

Json to_json(const ReplayCounters& counters) {
  Json json = Json::object();
  for (const ReplayCounter& each : kReplayCounters) json[each.name] = counters.*each.counter;
  return json;
}

NodeReplay::NodeReplay(ReplayPlan plan, const CheckpointResources& resources, Logger logger)
    : plan_(std::move(plan)), resources_(resources), logger_(std::move(logger)) {
  CHECK(resources_.workers != 0 && resources_.submit != nullptr);
  replayers_.resize(resources_.workers);
  const std::lock_guard guard(step_mutex_);
  task_ = std::make_shared<AwaitedTask>(
      "replay", [this] { return replay_files(); }, [this] { return progress_json(); });
}

NodeReplay::~NodeReplay() {
  cancel();
  const std::lock_guard guard(step_mutex_);
  task_.reset();
  // After an error, the next start-up removes what is left (R54).
  if (step_ <= Step::exchange) static_cast<void>(remove_given());
}

std::shared_ptr<AwaitedTask> NodeReplay::current() const {
  const std::lock_guard guard(step_mutex_);
  return task_;
}

void NodeReplay::wait(AwaitedTask::Clock::time_point deadline, ControlReply reply) {
  current()->wait(deadline, std::move(reply));
}

Result<void> NodeReplay::begin_step(Step step, AwaitedTask::Work work) {
  std::shared_ptr<AwaitedTask> before;  // destroyed after the unlock
  const std::lock_guard guard(step_mutex_);
  const bool follows = static_cast<uint8_t>(step_) + 1 == static_cast<uint8_t>(step);
  if (!follows || !task_->has_succeeded()) {
    return make_error(ExitCode::failed, "the replay of this node is not ready for this step");
  }
  before = std::move(task_);
  step_ = step;
  task_ =
      std::make_shared<AwaitedTask>("replay", std::move(work), [this] { return progress_json(); });
  return {};
}

Result<void> NodeReplay::take(std::vector<GivenFile> files) {
  return begin_step(Step::exchange, [this, files = std::move(files)] { return take_given(files); });
}

Result<void> NodeReplay::clean(std::vector<uint32_t> storages) {
  return begin_step(Step::clean, [this, storages = std::move(storages)] {
    return remove_all_tombstones(storages);
  });
}

Result<void> NodeReplay::end(ControlReply reply) {
  ATOLL_TRY(begin_step(Step::end, [this] { return store_blocked(); }));
  wait(AwaitedTask::Clock::time_point::max(),
       [reply = std::move(reply)](const Result<Json>& ended) {
         reply(ended ? Result<Json>(Json::object()) : ended);
       });
  return {};
}

ReplayCounters NodeReplay::counters() const {
  const std::lock_guard guard(replayers_mutex_);
  ReplayCounters sum = finished_;
  for (const auto& replayer : replayers_) {
    if (replayer != nullptr) sum += replayer->published();
  }
  return sum;
}

Json NodeReplay::progress_json() const {
  Json json = to_json(counters());
  json["bytes_total"] = bytes_total();
  return json;
}

CheckpointPhase NodeReplay::phase() const {
  const std::lock_guard guard(step_mutex_);
  if (task_->has_ended()) return CheckpointPhase::idle;
  return step_ <= Step::exchange ? CheckpointPhase::replaying : CheckpointPhase::cleaning;
}

void NodeReplay::run_on_workers(size_t count, const WorkerPart& part) {
  CHECK(count <= resources_.workers && part != nullptr);
  std::mutex mutex;
  std::condition_variable all_ended;
  size_t running = count;  // guarded by mutex
  const auto end_one = [&] {
    const std::lock_guard guard(mutex);
    if (--running == 0) all_ended.notify_one();
  };
  for (size_t worker = 0; worker < count; ++worker) {
    const auto given = resources_.submit(static_cast<uint32_t>(worker),
                                         [&, worker](WorkerEnvironment& environment) {
                                           part(worker, environment);
                                           end_one();
                                         });
    if (given) continue;
    is_refused_.store(true, std::memory_order_relaxed);
    end_one();
  }
  std::unique_lock lock(mutex);
  all_ended.wait(lock, [&] { return running == 0; });
}

/// Task i runs on worker i, which has replayer i.
RunTasks NodeReplay::on_workers() {
  return [this](size_t count, const std::function<void(size_t)>& task) {
    run_on_workers(count, [&](size_t worker, WorkerEnvironment&) { task(worker); });
  };
}

Result<void> NodeReplay::check_not_refused() const {
  if (!is_refused_.load(std::memory_order_relaxed)) return {};
  return make_error(ExitCode::not_running, "the replay has ended: the node stops");
}

Result<Json> NodeReplay::replay_files() {
  ATOLL_TRY(remove_given());
  ATOLL_TRY(make_replayers());
  ATOLL_TRY(find_storages());
  ATOLL_ASSIGN(const auto checkpoint, read_metadata());
  ATOLL_ASSIGN(const Part part, divide(checkpoint ? &*checkpoint : nullptr));
  FileSystem& file_system = *resources_.file_system;
  if (checkpoint) {
    ATOLL_TRY(replay_checkpoint(file_system, *checkpoint, part.checkpoint_files, plan_.cut_epoch,
                                replayers_, on_workers()));
  }
  ATOLL_TRY(check_not_refused());
  ATOLL_TRY(replay_log(file_system, part.log_files, replayers_, on_workers()));
  ATOLL_TRY(check_not_refused());
  ATOLL_ASSIGN(const auto given, give_records(replayers_, on_workers()));
  ATOLL_TRY(check_not_refused());
  const ReplayCounters done = counters_of(replayers_);
  uint64_t given_records = 0;
  for (const GivenFile& file : given) given_records += file.run.records;
  logger_->info(
      "replay: this node has replayed {} records from {} bytes of {} files: {} inserted, {} "
      "overwritten, {} older; {} are given to other nodes",
      done.records, done.bytes, part.checkpoint_files.size() + part.log_files.size(), done.inserted,
      done.overwritten, done.older, given_records);
  return Json{{"tombstones", tombstones_json()},
              {"division", part.division},
              {"given", to_binary(encode_given_files(given))}};
}

Result<Json> NodeReplay::take_given(const std::vector<GivenFile>& files) {
  ATOLL_TRY(take_records(*resources_.file_system, files, replayers_, on_workers()));
  ATOLL_TRY(check_not_refused());
  ATOLL_TRY(finish_replay(replayers_, on_workers()));
  ATOLL_TRY(check_not_refused());
  uint64_t taken = 0;
  for (const GivenFile& file : files) taken += file.run.records;
  logger_->info("replay: this node has taken {} records of other nodes, and applied {} updates",
                taken, counters_of(replayers_).updates);
  return Json{{"tombstones", tombstones_json()}};
}

std::vector<std::string> NodeReplay::directories() const {
  std::vector<std::string> all;
  // Threads take turns in the directories.
  for (uint32_t thread = 0;; ++thread) {
    std::string directory = resources_.directory(thread);
    if (std::ranges::find(all, directory) != all.end()) return all;
    all.push_back(std::move(directory));
  }
}

Result<void> NodeReplay::remove_given() {
  for (const std::string& directory : directories()) {
    ATOLL_TRY(remove_sorted_runs(*resources_.file_system, directory, resources_.node));
  }
  return {};
}

Result<void> NodeReplay::make_replayers() {
  run_on_workers(resources_.workers, [this](size_t worker, WorkerEnvironment& environment) {
    auto replayer = std::make_unique<Replayer>(state_, environment.transaction);
    const std::lock_guard guard(replayers_mutex_);
    replayers_[worker] = std::move(replayer);
  });
  return check_not_refused();
}

Result<void> NodeReplay::find_storages() {
  ControlSegment& control = *resources_.view->control;
  for (StorageControl& storage : control.storages) {
    // Acquire pairs with the coordinator's release: the members of the storage are complete.
    const auto state = static_cast<StorageState>(storage.state.load(std::memory_order_acquire));
    if (state == StorageState::ready) state_.storages[storage.id] = &storage;
  }
  const uint32_t largest = state_.storages.empty() ? 0 : state_.storages.rbegin()->first;
  if (largest > plan_.last_storage) {
    return make_error(ExitCode::failed, "the plan of the replay ends with storage " +
                                            std::to_string(plan_.last_storage) +
                                            ", but there is storage " + std::to_string(largest) +
                                            ": internal error");
  }
  state_.last_storage = plan_.last_storage;
  state_.share = {resources_.node, resources_.view->node_count, plan_.cut_epoch};
  state_.given.file_system = resources_.file_system;
  state_.given.directories = directories();
  state_.given.node = resources_.node;
  state_.given.checkpoint = static_cast<uint32_t>(plan_.checkpoint);
  return {};
}

Result<std::optional<CheckpointMetadata>> NodeReplay::read_metadata() const {
  if (plan_.checkpoint == 0) return std::nullopt;
  ATOLL_ASSIGN(auto metadata, read_checkpoint_metadata(*resources_.file_system, resources_.data_dir,
                                                       plan_.checkpoint));
  if (metadata.replay_epoch == plan_.first_epoch) return metadata;
  return make_error(ExitCode::failed, "checkpoint " + std::to_string(metadata.id) +
                                          ": its replay epoch is " +
                                          std::to_string(metadata.replay_epoch) +
                                          ", but the plan begins with epoch " +
                                          std::to_string(plan_.first_epoch) + ": internal error");
}

Result<std::vector<LogReplayFile>> NodeReplay::log_files() const {
  std::vector<PlannedStream> streams;
  std::ranges::copy_if(
      plan_.streams, std::back_inserter(streams),
      [&](const PlannedStream& stream) { return stream.last_epoch >= plan_.first_epoch; });
  return log_files_to_replay(*resources_.file_system, streams, plan_.first_epoch, plan_.order);
}

/// The last file of a stream counts with its whole size, although the log in it ends earlier.
/// Divides checkpoint files and log files separately, because the files of a checkpoint make more
/// pages. Log files keep their order.
Result<NodeReplay::Part> NodeReplay::divide(const CheckpointMetadata* checkpoint) {
  Part part;
  std::string all;                                  // every file, and the node that reads it
  std::vector<uint64_t> bytes(state_.share.count);  // of each node
  const auto divide_some = [&](std::span<const SizedFile> files,
                               const std::function<std::string(size_t)>& path,
                               const std::function<void(size_t)>& add) {
    const auto nodes = divide_files(files, state_.share.count);
    for (size_t i = 0; i < files.size(); ++i) {
      all += fmt::format("{} {} {}\n", path(i), files[i].bytes, nodes[i]);
      bytes[nodes[i]] += files[i].bytes;
      if (nodes[i] == resources_.node) add(i);
    }
  };
  std::vector<SizedFile> sized;
  if (checkpoint != nullptr) {
    for (const auto& file : checkpoint->files) sized.push_back({file.node, file.bytes});
    const auto path = [&](size_t i) {
      const CheckpointFileInfo& file = checkpoint->files[i];
      return checkpoint_file_path(file.directory, file.node,
                                  {checkpoint->id, file.writer, file.number});
    };
    divide_some(sized, path, [&](size_t i) { part.checkpoint_files.push_back(i); });
  }
  ATOLL_ASSIGN(const auto logs, log_files());
  sized.clear();
  std::vector<std::string> paths;
  for (const LogReplayFile& file : logs) {
    paths.push_back(
        path_of(LogFilePlace{file.stream.directory,
                             file.stream.node,
                             {file.stream.incarnation, file.stream.logger, file.ordinal}}));
    ATOLL_ASSIGN(const auto open, resources_.file_system->open_for_reading(paths.back()));
    ATOLL_ASSIGN(const uint64_t size, open->size());
    sized.push_back({file.stream.node, size});
  }
  divide_some(
      sized, [&](size_t i) { return paths[i]; },
      [&](size_t i) { part.log_files.push_back(logs[i]); });
  part.division = fmt::format("{} files, {:08x}", std::ranges::count(all, '\n'),
                              crc32c(std::as_bytes(std::span(all))));
  bytes_total_.store(bytes[resources_.node], std::memory_order_relaxed);
  warn_of_large_part(bytes, checkpoint != nullptr ? checkpoint->files.size() : 0);
  return part;
}

/// A node with a large part ends last, and may need more of its pool than other nodes. The node
/// with the largest part warns of it. `bytes`: of each node. `checkpoint_files`: of all nodes.
void NodeReplay::warn_of_large_part(std::span<const uint64_t> bytes,
                                    size_t checkpoint_files) const {
  constexpr uint64_t kLeastBytes = uint64_t{64} << 20;  // small parts take little time
  const auto largest = std::ranges::max_element(bytes);
  const uint64_t total = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  const uint64_t mean = total / bytes.size();
  const bool is_own = static_cast<size_t>(largest - bytes.begin()) == resources_.node;
  if (!is_own || *largest < kLeastBytes || *largest - mean <= mean / 4) return;
  logger_->warn(
      "replay: this node reads {} of {} bytes, and an equal part has {} bytes: the files of the "
      "checkpoint and of the log cannot be divided equally: take checkpoints more often, "
      "or set durability.checkpoint_files so that they have more files (this one has {})",
      *largest, total, mean, checkpoint_files);
}

Json NodeReplay::tombstones_json() const {
  std::set<uint32_t> storages;
  for (const auto& replayer : replayers_) {
    storages.insert(replayer->tombstones().begin(), replayer->tombstones().end());
  }
  return storages;
}

Result<Json> NodeReplay::remove_all_tombstones(const std::vector<uint32_t>& storages) {
  // All nodes have taken what this one has given. Files that remain only cost room (R54).
  if (const auto removed = remove_given(); !removed) {
    logger_->warn("replay: given files are not removed: {}", removed.error().message);
  }
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> replaced{0};
  run_on_workers(resources_.workers, [&](size_t, WorkerEnvironment& environment) {
    // Relaxed: each number is taken once; the end of the parts orders them.
    for (size_t i = next.fetch_add(1, std::memory_order_relaxed); i < storages.size();
         i = next.fetch_add(1, std::memory_order_relaxed)) {
      if (state_.is_cancelled.load(std::memory_order_relaxed)) return;
      const auto found = state_.storages.find(storages[i]);
      if (found == state_.storages.end()) continue;
      replaced.fetch_add(remove_tombstones(environment.transaction.worker(), *found->second),
                         std::memory_order_relaxed);
    }
  });
  ATOLL_TRY(check_not_refused());
  if (state_.is_cancelled.load(std::memory_order_relaxed)) {
    return make_error(ExitCode::failed, "the replay was cancelled");
  }
  logger_->info("replay: this node has removed the tombstones of {} storages from {} pages",
                storages.size(), replaced.load(std::memory_order_relaxed));
  return Json::object();
}

Result<Json> NodeReplay::store_blocked() {
  Result<void> stored;
  run_on_workers(1, [&](size_t, WorkerEnvironment&) { stored = finish_blocked(replayers_); });
  ATOLL_TRY(check_not_refused());
  if (!stored) return std::unexpected(stored.error());
  const std::lock_guard guard(replayers_mutex_);
  finished_ = counters_of(replayers_);
  replayers_.clear();
  return Json::object();
}

}  // namespace atolldb
