#include "soc/snapshot_job/node_snapshot_job.h"

#include <algorithm>

#include "engine/gleaner/glean_plan.h"
#include "shared/base/try.h"
#include "shared/process/start_up.h"

namespace atolldb {

Json to_json(const SnapshotJobProgress& progress) {
  return {{"bytes_read", progress.bytes_read},
          {"records_read", progress.records_read},
          {"records_shipped", progress.records_shipped},
          {"records_received", progress.records_received},
          {"bytes_received", progress.bytes_received},
          {"sorted_runs", progress.sorted_runs},
          {"bytes_dumped", progress.bytes_dumped},
          {"records_composed", progress.records_composed},
          {"pages_written", progress.pages_written},
          {"pages_read", progress.pages_read},
          {"pages_unreadable", progress.pages_unreadable}};
}

Json to_json(const UnreadablePage& page) {
  return {{"storage", page.storage},  {"snapshot", page.page.snapshot()},
          {"node", page.page.node()}, {"page", unmarked(page.page).page()},
          {"range", page.range},      {"reason", page.reason}};
}

NodeSnapshotJob::NodeSnapshotJob(GleanPlan plan, const GleanPlaces& places, uint64_t disk_reserve,
                                 ControlReply prepared, Logger logger)
    : work_(std::move(plan), places, disk_reserve), logger_(std::move(logger)) {
  control_ = std::thread([this, prepared = std::move(prepared)] { run(prepared); });
}

NodeSnapshotJob::~NodeSnapshotJob() {
  give_up();
  control_.join();
}

void NodeSnapshotJob::map() {
  const std::lock_guard guard(mutex_);
  map_wanted_ = true;
  changed_.notify_all();
}

void NodeSnapshotJob::wait(Clock::time_point deadline, ControlReply reply) {
  std::unique_lock lock(mutex_);
  waiters_.push_back({deadline, std::move(reply)});
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
    // The end of the run removes the file and answers this request.
    discarders_.push_back(reply);
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

GleanPhase NodeSnapshotJob::phase() const {
  const std::lock_guard guard(mutex_);
  if (has_ended_) return GleanPhase::idle;
  return is_mapping_ ? GleanPhase::gleaning : GleanPhase::preparing;
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
    // A part of its own, because it waits for the device while waiters have deadlines.
    start("glean-end", 1, [this](uint32_t) -> Result<void> {
      ATOLL_ASSIGN(auto gleaned, work_.finish());
      gleaned_ = std::move(gleaned);
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
    if (map_wanted_ && !is_mapping_) {
      is_mapping_ = true;
      lock.unlock();
      const Result<void> made = work_.make_mappers();
      if (made) {
        start("glean-map", work_.mapper_count(),
              [this](uint32_t ordinal) { return work_.map(ordinal); });
      }
      if (!made) fail(made.error());
      lock.lock();
      continue;
    }
    answer_due(lock);
    if (is_idle() || (map_wanted_ && !is_mapping_)) continue;
    auto next = Clock::time_point::max();
    for (const Waiter& waiter : waiters_) next = std::min(next, waiter.deadline);
    if (next == Clock::time_point::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, next);
    }
  }
}

bool NodeSnapshotJob::is_idle() const {
  return parts_going_ == 0 && (is_mapping_ || failure_ || is_discarded_);
}

bool NodeSnapshotJob::is_wanted() const {
  const std::lock_guard guard(mutex_);
  return !failure_ && !is_discarded_;
}

void NodeSnapshotJob::start(const char* name, uint32_t count, const Part& part) {
  {
    const std::lock_guard guard(mutex_);
    parts_going_ += count;
  }
  for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
    parts_.emplace_back([this, name, ordinal, part] {
      name_thread(name + std::to_string(ordinal));
      const Result<void> done = part(ordinal);
      if (!done) fail(done.error());
      const std::lock_guard guard(mutex_);
      --parts_going_;
      changed_.notify_all();
    });
  }
}

void NodeSnapshotJob::fail(const Error& error) {
  {
    const std::lock_guard guard(mutex_);
    // A part that fails gives the run up. The other parts then fail with code `failed`, perhaps
    // earlier. Those errors say less, so a later error with another code replaces them.
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
  if (failure_ || is_discarded_) {
    work_.discard();
  } else {
    result_ = {{"partitions", encode_composed(gleaned_.partitions)},
               {"directory", gleaned_.file.directory},
               {"page_count", gleaned_.file.page_count},
               {"unreadable", Json::array()}};
    for (const UnreadablePage& page : gleaned_.unreadable) {
      result_["unreadable"].push_back(to_json(page));
      logger_->error("snapshot {}: storage {}: {} cannot be read: {}", number(), page.storage,
                     page.range, page.reason);
    }
    logger_->info("snapshot {}: this node has written {} pages", number(),
                  gleaned_.file.page_count);
  }
  has_ended_ = true;
  const std::vector<ControlReply> discarders = std::move(discarders_);
  answer_due(lock);
  lock.unlock();
  for (const ControlReply& reply : discarders) reply(Json::object());
}

Result<Json> NodeSnapshotJob::outcome() const {
  if (has_ended_ && is_discarded_) {
    return make_error(ExitCode::failed,
                      "snapshot " + std::to_string(number()) + ": its run was given up");
  }
  if (has_ended_ && failure_) return std::unexpected(*failure_);
  Json answer = to_json(work_.progress());
  answer["done"] = has_ended_;
  if (has_ended_) answer.update(result_);
  return answer;
}

/// Answers all waiters if the run has ended, else those whose deadline has passed. Releases the
/// lock while it calls them.
void NodeSnapshotJob::answer_due(std::unique_lock<std::mutex>& lock) {
  const auto now = Clock::now();
  std::vector<Waiter> due;
  std::erase_if(waiters_, [&](Waiter& waiter) {
    if (!has_ended_ && waiter.deadline > now) return false;
    due.push_back(std::move(waiter));
    return true;
  });
  if (due.empty()) return;
  const Result<Json> answer = outcome();
  lock.unlock();
  for (const Waiter& waiter : due) waiter.reply(answer);
  lock.lock();
}

}  // namespace atolldb
