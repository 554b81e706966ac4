#include "soc/snapshot_job/node_snapshot_job.h"

#include <algorithm>

#include "engine/gleaner/snapshot_plan.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/process/start_up.h"

namespace atolldb {

Json to_json(const SnapshotJobProgress& progress) {
  Json json = Json::object();
  for (const SnapshotJobCounter& each : kSnapshotJobCounters) {
    json[each.name] = progress.*each.progress;
  }
  return json;
}

Json to_json(const UnreadablePage& page) {
  return {{"storage", page.storage},  {"snapshot", page.page.snapshot()},
          {"node", page.page.node()}, {"page", unmarked(page.page).page()},
          {"range", page.range},      {"reason", page.reason}};
}

NodeSnapshotJob::NodeSnapshotJob(SnapshotPlan plan, const SnapshotJobResources& resources,
                                 uint64_t disk_reserve, ControlReply prepared, Logger logger)
    : work_(std::move(plan), resources, disk_reserve),
      cpus_(resources.cpus),
      logger_(std::move(logger)) {
  control_ = std::thread([this, prepared = std::move(prepared)] { run(prepared); });
}

NodeSnapshotJob::~NodeSnapshotJob() {
  give_up();
  control_.join();
  CHECK(has_ended_ && parts_running_ == 0);
  CHECK(waiting_.is_empty() && discarding_.is_empty());
}

void NodeSnapshotJob::capture(ControlReply reply) {
  std::unique_lock lock(mutex_);
  if (has_ended_ || capture_ || map_wanted_) {
    const Error late{ExitCode::failed, "snapshot " + std::to_string(number()) +
                                           ": the job has ended, or its capture has begun before"};
    lock.unlock();
    return reply(std::unexpected(late));
  }
  capture_ = std::move(reply);
  changed_.notify_all();
}

void NodeSnapshotJob::map(uint64_t log_bytes, std::vector<CapturedRange> captured, bool holds) {
  const std::lock_guard guard(mutex_);
  if (std::exchange(map_wanted_, true)) return;  // a repeated request
  if (!holds) work_.permit_composing();
  log_bytes_ = log_bytes;
  captured_ = std::move(captured);
  changed_.notify_all();
}

void NodeSnapshotJob::wait(Clock::time_point deadline, ControlReply reply) {
  work_.permit_composing();
  std::unique_lock lock(mutex_);
  waiting_.add(std::move(reply), deadline);
  if (has_ended_) return answer_due(lock);
  changed_.notify_all();
}

void NodeSnapshotJob::discard(const ControlReply& reply) {
  {
    std::unique_lock lock(mutex_);
    is_discarded_ = true;
    if (has_ended_) {
      work_.discard();
      lock.unlock();
      return reply(Json::object());
    }
    // When the job ends, its control thread removes the file and answers this request.
    discarding_.add(reply);
    changed_.notify_all();
  }
  work_.give_up();
}

bool NodeSnapshotJob::give_up() {
  {
    const std::lock_guard guard(mutex_);
    if (has_ended_) return false;
    is_discarded_ = true;
    changed_.notify_all();
  }
  work_.give_up();
  return true;
}

bool NodeSnapshotJob::has_ended() const {
  const std::lock_guard guard(mutex_);
  return has_ended_;
}

SnapshotJobPhase NodeSnapshotJob::phase() const {
  const std::lock_guard guard(mutex_);
  if (has_ended_) return SnapshotJobPhase::idle;
  return is_mapping_ ? SnapshotJobPhase::gleaning : SnapshotJobPhase::preparing;
}

void NodeSnapshotJob::run(const ControlReply& prepared) {
  name_thread("glean");
  const Result<void> ready = work_.prepare();
  if (ready) {
    logger_->info("snapshot {}: this node is prepared: {} reducers", number(),
                  work_.reducer_count());
    start("glean-red", work_.reducer_count(),
          [this](uint32_t ordinal) { return work_.reduce(ordinal); });
    prepared(Json::object());
  } else {
    fail(ready.error());
    prepared(std::unexpected(ready.error()));
  }
  serve();
  if (is_wanted()) {
    // `finish` waits for the device, so it runs on another thread. This thread meanwhile answers
    // waiting requests at their deadlines.
    start("glean-end", 1, [this](uint32_t) -> Result<void> {
      ATOLL_ASSIGN(result_, work_.finish());
      return {};
    });
    serve();
  }
  for (std::thread& part : parts_) part.join();
  end();
}

/// Serves requests until no part runs and none will start.
void NodeSnapshotJob::serve() {
  std::unique_lock lock(mutex_);
  while (!is_idle()) {
    if (must_start()) {
      const auto capture = std::exchange(capture_, std::nullopt);
      is_mapping_ = !capture;
      lock.unlock();
      capture ? start_capture(*capture) : start_mappers();
      lock.lock();
      continue;
    }
    answer_due(lock);
    if (is_idle() || must_start()) continue;
    if (const auto next = waiting_.next_deadline()) {
      changed_.wait_until(lock, *next);
    } else {
      changed_.wait(lock);
    }
  }
}

void NodeSnapshotJob::start_capture(const ControlReply& reply) {
  start("glean-cap", 1, [this, reply](uint32_t) -> Result<void> {
    const auto captured = work_.capture();
    if (!captured) {
      reply(std::unexpected(captured.error()));
      return std::unexpected(captured.error());
    }
    logger_->info("snapshot {}: this node has captured {} pages in {} ranges", number(),
                  work_.progress().pages_captured, captured->size());
    reply(Json{{"captured", to_binary(encode_captured(*captured))}});
    return {};
  });
}

void NodeSnapshotJob::start_mappers() {
  const Result<void> made = work_.make_mappers(log_bytes_, std::move(captured_));
  if (!made) return fail(made.error());
  start("glean-map", work_.mapper_count(), [this](uint32_t ordinal) { return work_.map(ordinal); });
}

bool NodeSnapshotJob::is_idle() const {
  return parts_running_ == 0 && (is_mapping_ || failure_ || is_discarded_);
}

bool NodeSnapshotJob::is_wanted() const {
  const std::lock_guard guard(mutex_);
  return !failure_ && !is_discarded_;
}

void NodeSnapshotJob::start(const char* name, uint32_t count, const Part& part) {
  CHECK(part != nullptr);
  {
    const std::lock_guard guard(mutex_);
    parts_running_ += count;
  }
  for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
    parts_.emplace_back([this, name, ordinal, part] {
      name_thread(name + std::to_string(ordinal));
      // The thread has the ordinary policy and priority, like a worker. As a batch thread it would
      // wait for the end of a worker's time slice after each read: jobs took twice as long, until
      // the pool ran out. It could not raise a lower priority again without privileges. An idle I/O
      // priority could delay the journal of the file system, for which loggers wait.
      const auto pinned = pin_thread(cpus_, "gleaner_cpus");
      // All threads of the job have the same CPUs, so one warning is enough. Relaxed: nothing else
      // depends on the flag.
      if (!pinned && !has_warned_.exchange(true, std::memory_order_relaxed)) {
        logger_->warn("snapshot {}: {}", number(), pinned.error().message);
      }
      const Result<void> done = part(ordinal);
      if (!done) fail(done.error());
      const std::lock_guard guard(mutex_);
      CHECK(parts_running_ > 0 && !has_ended_);
      --parts_running_;
      changed_.notify_all();
    });
  }
}

void NodeSnapshotJob::fail(const Error& error) {
  {
    const std::lock_guard guard(mutex_);
    CHECK(!has_ended_);
    // After one part has failed, the other parts give up and fail with code `failed`. Such an error
    // says less, but may be recorded first. So a later error with another code replaces it.
    const bool says_more =
        !failure_ || (failure_->code == ExitCode::failed && error.code != ExitCode::failed);
    if (says_more) failure_ = error;
    if (says_more && !is_discarded_) logger_->error("snapshot {}: {}", number(), error.message);
    changed_.notify_all();
  }
  work_.give_up();
}

void NodeSnapshotJob::end() {
  work_.release();
  std::unique_lock lock(mutex_);
  CHECK(!has_ended_ && is_idle());
  if (failure_ || is_discarded_) {
    work_.discard();
  } else {
    CHECK(result_.file.snapshot == number());
    answer_ = {{"partitions", to_binary(encode_composed(result_.partitions))},
               {"directory", result_.file.directory},
               {"page_count", result_.file.page_count},
               {"unreadable", Json::array()}};
    for (const UnreadablePage& page : result_.unreadable) {
      answer_["unreadable"].push_back(to_json(page));
      logger_->error("snapshot {}: storage {}: {} cannot be read: {}", number(), page.storage,
                     page.range, page.reason);
    }
    logger_->info("snapshot {}: this node has written {} pages", number(), result_.file.page_count);
  }
  has_ended_ = true;
  const auto discarding = discarding_.take_all();
  const auto capture = std::exchange(capture_, std::nullopt);
  answer_due(lock);
  lock.unlock();
  PendingReplies<>::answer(discarding, Json::object());
  if (!capture) return;
  (*capture)(make_error(ExitCode::failed, "snapshot " + std::to_string(number()) +
                                              ": its job has ended before the capture"));
}

Result<Json> NodeSnapshotJob::outcome() const {
  if (has_ended_ && is_discarded_) {
    return make_error(ExitCode::failed,
                      "snapshot " + std::to_string(number()) + ": its job was given up");
  }
  if (has_ended_ && failure_) return std::unexpected(*failure_);
  Json answer = to_json(work_.progress());
  answer["done"] = has_ended_;
  if (has_ended_) answer.update(answer_);
  return answer;
}

/// Answers all waiting requests if the job has ended, else those whose deadline has passed.
/// Releases the lock while it answers them.
void NodeSnapshotJob::answer_due(std::unique_lock<std::mutex>& lock) {
  CHECK(lock.owns_lock());
  const auto due = has_ended_ ? waiting_.take_all() : waiting_.take_due(Clock::now());
  if (due.empty()) return;
  const Result<Json> answer = outcome();
  lock.unlock();
  PendingReplies<>::answer(due, answer);
  lock.lock();
}

}  // namespace atolldb
