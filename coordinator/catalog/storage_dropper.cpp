#include "coordinator/catalog/storage_dropper.h"

#include <algorithm>

#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

/// Longest time that one step waits for one drop. Then the next drop has its turn.
constexpr std::chrono::milliseconds kTurn{50};
/// Shortest and longest pause after a failed attempt to release pages.
constexpr std::chrono::milliseconds kMinRetryPause{100};
constexpr std::chrono::seconds kMaxRetryPause{10};

}  // namespace

void StorageDropper::start() {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this] { run(); });
}

void StorageDropper::stop() {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
  std::vector<std::unique_ptr<Drop>> left;
  {
    const std::lock_guard guard(mutex_);
    left.swap(drops_);
  }
  for (const auto& drop : left) tell_stopped(*drop);
}

void StorageDropper::tell_stopped(Drop& drop) {
  if (!drop.reply) return;
  // A logged drop counts as complete, because the end of the cluster frees the volatile pages.
  if (drop.is_logged) return drop.reply(uint64_t{0});
  drop.reply(make_error(ExitCode::not_running,
                        "storage \"" + drop.name +
                            "\": hidden, but the cluster stops before the drop is durable: it is "
                            "there again after the next start: drop it then"));
}

void StorageDropper::drop(uint32_t id, std::string name, uint64_t hidden_at, Reply reply) {
  CHECK(reply);
  auto drop = std::make_unique<Drop>();
  drop->id = id;
  drop->name = std::move(name);
  drop->hidden_at = hidden_at;
  drop->reply = std::move(reply);
  drop->tell_at = Clock::now() + patience_;
  {
    const std::lock_guard guard(mutex_);
    if (!ends_) drops_.push_back(std::move(drop));
  }
  if (drop != nullptr) return tell_stopped(*drop);
  changed_.notify_one();
}

std::string StorageDropper::text_of(const Drop& drop) {
  switch (drop.phase) {
    case Phase::transactions:
      return "waits for transactions that began before it";
    case Phase::durability:
      return "waits until what committed before it is durable";
    case Phase::log:
      return "is being logged";
    case Phase::pages:
    case Phase::done:
      break;
  }
  return drop.failure.empty() ? "is durable; its pages are being released"
                              : "is durable; its pages could not be released, which is tried "
                                "again: " +
                                    drop.failure;
}

std::optional<std::string> StorageDropper::progress(uint32_t id) const {
  const std::lock_guard guard(mutex_);
  for (const auto& drop : drops_) {
    if (drop->id == id && drop->phase != Phase::done) return text_of(*drop);
  }
  return std::nullopt;
}

bool StorageDropper::is_unlogged(std::string_view name) const {
  const std::lock_guard guard(mutex_);
  return std::ranges::any_of(
      drops_, [&](const auto& drop) { return !drop->is_logged && drop->name == name; });
}

bool StorageDropper::has_unlogged() const {
  const std::lock_guard guard(mutex_);
  return std::ranges::any_of(drops_, [](const auto& drop) { return !drop->is_logged; });
}

void StorageDropper::enter(Drop& drop, Phase phase) {
  const std::lock_guard guard(mutex_);
  CHECK(phase > drop.phase);  // a drop is never undone
  drop.phase = phase;
}

/// Logs the drop on the DDL thread. After an error hooks_.log has ended the cluster.
void StorageDropper::log(Drop& drop) {
  CHECK(drop.phase == Phase::log && !drop.is_logged);
  const auto logged = hooks_.log(drop.id);
  Reply reply;
  {
    const std::lock_guard guard(mutex_);
    drop.is_logged = logged.has_value();
    drop.phase = logged ? Phase::pages : Phase::done;
    if (!logged) reply = std::exchange(drop.reply, {});
  }
  if (reply) reply(std::unexpected(logged.error()));
}

bool StorageDropper::release(Drop& drop) {
  CHECK(drop.phase == Phase::pages);
  if (Clock::now() < drop.retry_at) return false;
  const auto released = hooks_.release(drop.id);
  if (!released) {
    logger_->error("storage {}: its pages are not released yet: {}", drop.name,
                   released.error().message);
    const std::lock_guard guard(mutex_);
    drop.failure = released.error().message;
    drop.pause = std::clamp<Clock::duration>(2 * drop.pause, kMinRetryPause, kMaxRetryPause);
    drop.retry_at = Clock::now() + drop.pause;
    return false;
  }
  hooks_.free_slot(drop.id);
  logger_->info("storage {} dropped: id {}, {} pages", drop.name, drop.id, *released);
  Reply reply;
  {
    const std::lock_guard guard(mutex_);
    drop.phase = Phase::done;
    reply = std::exchange(drop.reply, {});
  }
  if (reply) reply(*released);
  return true;
}

bool StorageDropper::advance(Drop& drop) {
  switch (drop.phase) {
    case Phase::transactions:
      if (!fault::drop_logged_before_grace && !hooks_.have_begun_after(drop.hidden_at, kTurn)) {
        return false;
      }
      enter(drop, Phase::durability);
      return true;
    case Phase::durability:
      // Loads the epoch once per drop, so that later commits do not delay the drop.
      if (!drop.durable_at) drop.durable_at = hooks_.latest_commit_epoch();
      if (!fault::drop_logged_before_durable && !hooks_.is_durable(*drop.durable_at, kTurn)) {
        return false;
      }
      enter(drop, fault::release_before_drop_logged ? Phase::pages : Phase::log);
      return true;
    case Phase::log:
      log(drop);
      return true;
    case Phase::pages:
      return release(drop);
    case Phase::done:
      break;
  }
  return false;
}

void StorageDropper::tell_late(Drop& drop) {
  if (!drop.reply || Clock::now() < drop.tell_at) return;
  const std::string seconds =
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(patience_).count());
  std::exchange(drop.reply, {})(make_error(
      ExitCode::failed,
      "storage \"" + drop.name + "\": hidden, but not dropped within " + seconds + " s: the drop " +
          text_of(drop) +
          ": it continues by itself: `atoll storage ls` lists the storage until it is complete"));
}

void StorageDropper::run() {
  name_thread("drops");
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (drops_.empty()) {
      changed_.wait(lock, [this] { return ends_ || !drops_.empty(); });
      continue;
    }
    // The lock is released within the loop. Other threads only append drops meanwhile, and only
    // this thread removes them.
    const size_t count = drops_.size();
    bool has_advanced = false;
    for (size_t i = 0; i < count && !ends_; ++i) {
      Drop& drop = *drops_[i];
      lock.unlock();
      has_advanced |= advance(drop);
      tell_late(drop);
      lock.lock();
    }
    std::erase_if(drops_, [](const auto& drop) { return drop->phase == Phase::done; });
    // If no drop has advanced, each one waits for a condition, or for its next attempt to release
    // pages.
    if (!has_advanced) changed_.wait_for(lock, kMinRetryPause / 10, [this] { return ends_; });
  }
}

}  // namespace atolldb
