#include "soc/snapshot_job/snapshot_job_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/compose/capture.h"
#include "engine/compose/compose.h"
#include "engine/hooks/mutants.h"
#include "engine/snapshot/page_ahead.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/message/control_limits.h"

namespace atolldb {

/// Counts the records of one reducer that its composers have applied or that merges have elided.
/// Elided records count, because a merge has to compare them like others. Pauses the reducer's
/// thread if the job is ahead of its goal. Thread: the reducer's.
class SnapshotJobWork::ReducerPace {
 public:
  /// REQUIRES: the reducer has collected its records.
  ReducerPace(const Reducer& reducer, SnapshotJobWork& work)
      : reducer_(reducer), work_(work), throttle_(work.throttle_), elided_(reducer.elided()) {
    work_.records_elided_.fetch_add(elided_, std::memory_order_relaxed);
    // Relaxed: this thread is the only writer of the counter.
    const uint64_t received = reducer.progress().records_received.load(std::memory_order_relaxed);
    throttle_.add_to_compose(received - std::min(received, elided_));
  }
  ReducerPace(const ReducerPace&) = delete;
  ReducerPace& operator=(const ReducerPace&) = delete;
  ~ReducerPace() { throttle_.composed(take_count()); }

  /// `before_pause`: called before each pause.
  void add(uint64_t applied, const std::function<void()>& before_pause) {
    applied_ += applied;
    // Calls the throttle only after kCountedRecords records, because it reads the clock.
    if (applied_ + (reducer_.elided() - elided_) < kCountedRecords) return;
    throttle_.composed(take_count());
    if (!throttle_.must_pause()) return;
    before_pause();
    throttle_.pause();
  }

 private:
  static constexpr uint64_t kCountedRecords = 1024;

  /// Returns the number of records since the last call, and adds them to the progress.
  uint64_t take_count() {
    const uint64_t applied = std::exchange(applied_, 0);
    const uint64_t elided = reducer_.elided() - elided_;
    elided_ += elided;
    // Relaxed: the words show the progress. The composers of a node share them, but seldom write to
    // them.
    work_.records_composed_.fetch_add(applied, std::memory_order_relaxed);
    work_.records_elided_.fetch_add(elided, std::memory_order_relaxed);
    return applied + elided;
  }

  const Reducer& reducer_;
  SnapshotJobWork& work_;
  JobThrottle& throttle_;
  uint64_t applied_ = 0;  // applied records that the throttle does not know yet
  uint64_t elided_;       // elided records that the throttle knows
};

struct SnapshotJobWork::Composing {
  Reducer& reducer;
  ReducerPace& pace;
  WorkClock& clock;
  PageAhead ahead;  // reads pages of the base ahead
};

namespace {

/// The log records of a composer. Calls `on_applied` between two batches. Counts the time of the
/// merge apart from that of the composer.
class PacedLogs : public LogSource {
 public:
  using OnApplied = std::function<void(uint64_t records)>;

  PacedLogs(LogSource& logs, WorkClock& clock, OnApplied on_applied)
      : logs_(logs), clock_(clock), on_applied_(std::move(on_applied)) {
    batch_ = logs_.batch();
  }
  Result<void> advance() override {
    CHECK(!batch_.empty());
    on_applied_(batch_.size());
    clock_.charge(SnapshotWork::compose);
    ATOLL_TRY(logs_.advance());
    clock_.charge(SnapshotWork::merge);
    batch_ = logs_.batch();
    return {};
  }

 private:
  LogSource& logs_;
  WorkClock& clock_;
  const OnApplied on_applied_;
};

}  // namespace

SnapshotJobWork::SnapshotJobWork(SnapshotPlan plan, const SnapshotJobResources& resources,
                                 uint64_t disk_reserve)
    : plan_(std::move(plan)),
      resources_(resources),
      syncing_(*resources.file_system),
      files_(syncing_, disk_reserve),
      throttle_([this] { return is_over(); }, resources.throttle) {
  CHECK(resources.snapshots != nullptr);
  CHECK(resources.directory && resources.inbox && resources.has_failed);
}

Result<void> SnapshotJobWork::prepare() {
  CHECK(!writer_ && inboxes_.empty());
  directory_ = resources_.directory(plan_.snapshot);
  ATOLL_TRY(files_.check_room(directory_, 0));
  // Skips files that cannot be opened. A composer reports such a file when it needs a page of it.
  ATOLL_TRY(resources_.snapshots->open_readable(plan_.files));
  ATOLL_ASSIGN(auto writer,
               SnapshotWriter::create(files_, {directory_, resources_.node, plan_.snapshot,
                                               plan_.epoch, plan_.cluster_uuid}));
  writer_.emplace(std::move(writer));
  const auto mappers = static_cast<uint32_t>(plan_.mappers.size());
  const auto own_reducers = static_cast<uint32_t>(std::ranges::count_if(
      plan_.reducers, [&](const ReducerPlace& place) { return place.node == resources_.node; }));
  const std::lock_guard guard(mutex_);
  for (const ReducerPlace& place : plan_.reducers) {
    std::byte* memory = resources_.inbox(place);
    if (memory == nullptr) {
      return make_error(ExitCode::failed, "the plan names reducer " +
                                              std::to_string(place.reducer) + " of node " +
                                              std::to_string(place.node) + ", which has no inbox");
    }
    inboxes_.push_back(std::make_unique<ReducerInbox>(memory, [this] { return is_over(); }));
    inbox_order_.push_back(inboxes_.back().get());
    if (place.node != resources_.node) continue;
    ATOLL_TRY(inboxes_.back()->begin(plan_.snapshot, mappers));
    ReducerSettings settings;
    settings.directory = directory_;
    settings.node = place.node;
    settings.reducer = place.reducer;
    settings.snapshot = plan_.snapshot;
    settings.max_merged_runs = merged_runs_of(own_reducers);
    reducers_.push_back(std::make_unique<Reducer>(files_, *inboxes_.back(), std::move(settings)));
    places_of_reducers_.push_back(place);
  }
  return {};
}

Result<std::vector<CapturedRange>> SnapshotJobWork::capture() {
  WorkClock clock(resources_.times);
  clock.begin();
  std::vector<CapturedRange> ranges;
  FenceMapSource* source = resources_.fence_maps ? resources_.fence_maps() : nullptr;
  if (source == nullptr) return ranges;
  for (size_t index = 0; index < plan_.storages.size(); ++index) {
    const PlannedStorage& storage = plan_.storages[index];
    if (!is_tree(storage.type)) continue;
    for (uint32_t i = 0; i < storage.partitions.size(); ++i) {
      if (storage.partitions[i].owner.node != resources_.node) continue;
      ATOLL_TRY(capture_partition(*source, index, i, ranges));
    }
  }
  clock.charge(SnapshotWork::capture);
  CHECK(do_ascend(ranges));
  return ranges;
}

Result<void> SnapshotJobWork::capture_partition(FenceMapSource& source, size_t storage,
                                                uint32_t partition,
                                                std::vector<CapturedRange>& ranges) {
  CHECK(writer_.has_value());
  const PlannedStorage& planned = plan_.storages[storage];
  const std::function<bool()> cancelled = [this] { return is_over(); };
  PageOutput pages(*resources_.snapshots, *writer_, &writer_mutex_, planned.id, cancelled);
  const CaptureTask task{.range = range_of_partition(planned, partition),
                         .base_epoch = plan_.base_epoch,
                         .epoch = plan_.epoch,
                         .write = [&](PageBuffer& image) { return pages.write(image); },
                         .cancelled = cancelled,
                         .max_ranges = max_captured_ranges()};
  std::vector<CapturedPage> captured;
  ATOLL_TRY(source.capture_pages_of(planned.id, task, captured));
  add_captured_ranges(planned.id, captured, ranges);
  const std::lock_guard guard(mutex_);
  last_.pages_captured += captured.size();
  captured_pages_[{storage, partition}] = std::move(captured);
  return {};
}

/// Returns the maximum number of ranges of one partition. With this limit, the ranges of all
/// partitions fit in one message.
size_t SnapshotJobWork::max_captured_ranges() const {
  constexpr size_t kMaxRanges = kMaxControlBytes / (2 * kCapturedRangeBytes);
  size_t partitions = 1;
  for (const PlannedStorage& storage : plan_.storages) partitions += storage.partitions.size();
  return std::min(kMaxCapturedRanges, kMaxRanges / partitions);
}

Result<void> SnapshotJobWork::make_mappers(uint64_t log_bytes,
                                           std::vector<CapturedRange> captured) {
  throttle_.plan(log_bytes, reducer_count());
  captured_ = std::move(captured);
  MapperSettings settings;
  settings.captured = captured_;
  settings.on_read = [this](uint64_t bytes) {
    throttle_.mapped(bytes);
    throttle_.pause();
  };
  const std::lock_guard guard(mutex_);
  CHECK(mappers_.empty() && inbox_order_.size() == plan_.reducers.size());
  for (const PlannedMapper& task : plan_.mappers) {
    if (task.node != resources_.node) continue;
    settings.clock = &mapper_clocks_.emplace_back(resources_.times);
    ATOLL_ASSIGN(auto mapper,
                 Mapper::create(*resources_.file_system, plan_, task, inbox_order_, settings));
    mappers_.push_back(std::move(mapper));
  }
  return {};
}

Result<void> SnapshotJobWork::map(uint32_t ordinal) {
  CHECK(ordinal < mappers_.size() && mappers_.size() == mapper_clocks_.size());
  WorkClock& clock = mapper_clocks_[ordinal];
  clock.begin();
  auto done = mappers_[ordinal]->run();
  clock.charge(SnapshotWork::map);
  return done;
}

Result<void> SnapshotJobWork::reduce(uint32_t ordinal) {
  CHECK(ordinal < reducers_.size() && reducers_.size() == places_of_reducers_.size());
  Reducer& reducer = *reducers_[ordinal];
  WorkClock clock(resources_.times);
  clock.begin();
  const auto collected = reducer.collect();
  clock.charge(SnapshotWork::merge);
  ATOLL_TRY(collected);
  ATOLL_TRY(await_permission());
  ReducerPace pace(reducer, *this);
  Composing composing{
      reducer, pace, clock,
      PageAhead(*resources_.snapshots, BatchReader::Method::automatic, resources_.cache)};
  auto composed = compose_all(composing, places_of_reducers_[ordinal]);
  clock.charge(SnapshotWork::compose);
  return composed;
}

void SnapshotJobWork::permit_composing() {
  {
    const std::lock_guard guard(hold_mutex_);
    may_compose_ = true;
  }
  permitted_.notify_all();
}

/// Waits until the reducers may compose (R84). Returns an error if the job is given up before.
Result<void> SnapshotJobWork::await_permission() {
  /// Limits the delay until the thread notices that the cluster has failed.
  constexpr std::chrono::milliseconds kCheckPause{50};
  std::unique_lock lock(hold_mutex_);
  while (!may_compose_ && !is_over() && !fault::compose_amid_install) {
    permitted_.wait_for(lock, kCheckPause);
  }
  if (may_compose_ || fault::compose_amid_install) return {};
  return make_error(
      ExitCode::failed,
      fmt::format("snapshot {}: the job ended before its reducers could compose", plan_.snapshot));
}

/// Composes all partitions of the reducer, in the order in which it returns its records.
Result<void> SnapshotJobWork::compose_all(Composing& composing, const ReducerPlace& place) {
  Reducer& reducer = composing.reducer;
  for (size_t index = 0; index < plan_.storages.size(); ++index) {
    const PlannedStorage& storage = plan_.storages[index];
    if (storage.type == StorageType::sequential) {
      // Reducer 0 of each node composes the appends of that node.
      if (place.reducer != 0) continue;
      ATOLL_TRY(compose_one(composing, index, place.node));
      continue;
    }
    for (uint32_t i = 0; i < storage.partitions.size(); ++i) {
      if (storage.partitions[i].owner != place) continue;
      ATOLL_TRY(compose_one(composing, index, i));
    }
  }
  // Every record belongs to a partition. Records that are left now would be missing in the
  // snapshot.
  if (reducer.skipped() == 0 && reducer.is_at_end()) return {};
  return make_error(ExitCode::failed,
                    fmt::format("snapshot {}: reducer {} of node {} got records of no partition of "
                                "its own: internal error",
                                plan_.snapshot, place.reducer, place.node));
}

Result<void> SnapshotJobWork::compose_one(Composing& composing, size_t storage,
                                          uint32_t partition) {
  CHECK(writer_.has_value());
  const PlannedStorage& planned = plan_.storages[storage];
  std::string_view low;
  std::optional<std::string_view> high;
  if (planned.type != StorageType::sequential) {
    low = planned.partitions[partition].low;
    if (partition + 1 < planned.partitions.size()) high = planned.partitions[partition + 1].low;
  }
  std::span<const CapturedPage> captured;
  {
    const std::lock_guard guard(mutex_);
    const auto found = captured_pages_.find({storage, partition});
    if (found != captured_pages_.end()) captured = found->second;
  }
  ATOLL_ASSIGN(auto opened, composing.reducer.open(planned.id, low, high));
  PacedLogs logs(*opened, composing.clock, [&composing](uint64_t records) {
    // Takes over the reads that have ended. Until then they count as pending, and during a pause
    // they would look like the reads of a hung device.
    composing.pace.add(records, [&composing] { composing.ahead.finish(); });
  });
  const ComposeTask task{
      .plan = plan_,
      .storage = storage,
      .partition = partition,
      .logs = logs,
      .base = *resources_.snapshots,
      .writer = *writer_,
      .writer_mutex = writer_mutex_,
      .cancelled = [this] { return is_over(); },
      .fence_maps = resources_.fence_maps ? resources_.fence_maps() : nullptr,
      .on_unreadable = [this](const UnreadablePage& page) { record_unreadable(page); },
      .captured = captured,
      .ahead = &composing.ahead};
  ATOLL_ASSIGN(ComposedPartition composed, compose(task));
  composing.ahead.clear();
  const std::lock_guard guard(mutex_);
  last_.pages_written += composed.pages_written;
  last_.pages_read += composed.pages_read;
  last_.pages_cached += composed.pages_cached;
  composed_.push_back(std::move(composed));
  return {};
}

void SnapshotJobWork::record_unreadable(const UnreadablePage& page) {
  const std::lock_guard guard(mutex_);
  ++last_.pages_unreadable;
  if (unreadable_.size() < kMaxListedPages) unreadable_.push_back(page);
}

Result<SnapshotJobResult> SnapshotJobWork::finish() {
  CHECK(writer_.has_value());
  WorkClock clock(resources_.times);
  clock.begin();
  const auto finished = writer_->finish();
  clock.charge(SnapshotWork::finish);
  ATOLL_TRY(finished);
  SnapshotJobResult result;
  result.file = {plan_.snapshot, resources_.node, directory_, writer_->page_count()};
  const std::lock_guard guard(mutex_);
  result.partitions = std::move(composed_);
  result.unreadable = std::move(unreadable_);
  std::ranges::sort(result.partitions, {}, [](const ComposedPartition& partition) {
    return std::tuple(partition.storage_id, partition.partition);
  });
  return result;
}

void SnapshotJobWork::discard() {
  if (writer_) writer_->discard();
}

void SnapshotJobWork::give_up() {
  gives_up_.store(true, std::memory_order_relaxed);
  throttle_.wake();
  permitted_.notify_all();
  const std::lock_guard guard(mutex_);
  for (const auto& inbox : inboxes_) inbox->give_up(plan_.snapshot);
}

void SnapshotJobWork::release() {
  const std::lock_guard guard(mutex_);
  last_ = progress_locked();
  mappers_.clear();
  reducers_.clear();
}

SnapshotJobProgress SnapshotJobWork::progress() const {
  const std::lock_guard guard(mutex_);
  return progress_locked();
}

SnapshotJobProgress SnapshotJobWork::progress_locked() const {
  const auto load = [](const std::atomic<uint64_t>& count) {
    return count.load(std::memory_order_relaxed);
  };
  SnapshotJobProgress sum = last_;
  sum.records_composed = load(records_composed_);
  sum.records_elided = load(records_elided_);
  sum.paused_us = static_cast<uint64_t>(throttle_.paused().count());
  for (const auto& mapper : mappers_) {
    sum.bytes_read += load(mapper->progress().bytes_read);
    sum.records_read += load(mapper->progress().records_read);
    sum.records_shipped += load(mapper->progress().records_shipped);
    sum.records_captured += load(mapper->progress().records_captured);
  }
  for (const auto& reducer : reducers_) {
    sum.records_received += load(reducer->progress().records_received);
    sum.bytes_received += load(reducer->progress().bytes_received);
    sum.sorted_runs += load(reducer->progress().sorted_runs);
    sum.bytes_dumped += load(reducer->progress().bytes_dumped);
  }
  return sum;
}

}  // namespace atolldb
