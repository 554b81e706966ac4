#include "soc/snapshot/scrubber.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "engine/log/discard_data.h"
#include "shared/limits.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

Json to_json(const ScrubDamage& damage) {
  return {{"file", damage.path},
          {"offset", damage.offset},
          {"storage", damage.storage},
          {"range", damage.range},
          {"reason", damage.reason}};
}

/// Gives other threads priority for processors and devices, if the system supports that.
void yield_to_others() {
  constexpr int kIoPriorityWhoProcess = 1;
  constexpr int kIoPriorityIdle = 3 << 13;
  const auto thread = static_cast<id_t>(::gettid());
  static_cast<void>(::setpriority(PRIO_PROCESS, thread, 19));
  static_cast<void>(::syscall(SYS_ioprio_set, kIoPriorityWhoProcess, 0, kIoPriorityIdle));
}

}  // namespace

Scrubber::Scrubber(ScrubberSettings settings, Logger logger)
    : settings_(std::move(settings)), logger_(std::move(logger)) {}

void Scrubber::start() {
  if (settings_.bytes_per_s == 0) return;
  thread_ = std::thread([this] { work(); });
}

void Scrubber::stop() {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

/// Node 0 also scrubs the coordinator's files.
bool Scrubber::is_own(const SnapshotFilePlace& place) const {
  return place.node == settings_.node || (settings_.node == 0 && place.node == kCoordinator);
}

void Scrubber::set_files(const std::vector<SnapshotFilePlace>& places) {
  const std::lock_guard guard(mutex_);
  places_.clear();
  for (const SnapshotFilePlace& place : places) {
    const bool is_listed = std::ranges::find(places_, place) != places_.end();
    if (is_own(place) && !is_listed) places_.push_back(place);
  }
  // Damage of files that nothing needs any more does not count.
  std::set<std::string> paths;
  for (const SnapshotFilePlace& place : places_) {
    paths.insert(snapshot_file_path(place.directory, place.node, place.snapshot));
  }
  const auto is_gone = [&](const ScrubDamage& damage) {
    return damage.path.ends_with(".atsnap") && !paths.contains(damage.path);
  };
  last_count_ -= std::erase_if(last_, is_gone);
  current_count_ -= std::erase_if(current_, is_gone);
  progress_.damaged = std::max(last_count_, current_count_);
  changed_.notify_all();
}

bool Scrubber::is_wanted(const SnapshotFilePlace& place) const {
  const std::lock_guard guard(mutex_);
  return std::ranges::find(places_, place) != places_.end();
}

void Scrubber::work() {
  name_thread("scrub");
  yield_to_others();
  std::unique_lock lock(mutex_);
  while (!ends_) {
    changed_.wait(lock, [this] { return ends_ || !places_.empty(); });
    // Also before the first cycle: a starting node has other work, and deletes files.
    if (changed_.wait_for(lock, settings_.pause, [this] { return ends_; })) break;
    lock.unlock();
    run_cycle();
    lock.lock();
  }
}

void Scrubber::run_cycle() {
  std::vector<SnapshotFilePlace> places;
  {
    const std::lock_guard guard(mutex_);
    places = places_;
    cycle_bytes_ = 0;
    cycle_done_ = 0;
    for (const SnapshotFilePlace& place : places) cycle_bytes_ += place.page_count * kPageBytes;
    progress_.percent = 0;
  }
  next_read_ = Clock::now();
  ScrubHooks hooks;
  hooks.reads = [this](uint64_t bytes) { return pace(bytes); };
  scrub_snapshots(places, hooks);
  hooks.found = [this](const ScrubDamage& damage) { note(damage); };
  scrub_logs(hooks);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::lock_guard guard(mutex_);
  if (ends_) return;
  last_ = std::exchange(current_, {});
  last_count_ = std::exchange(current_count_, 0);
  progress_.damaged = last_count_;
  progress_.percent = 100;
  ++progress_.cycles;
  progress_.finished_at_s =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

void Scrubber::scrub_snapshots(const std::vector<SnapshotFilePlace>& places,
                               const ScrubHooks& hooks) {
  for (const SnapshotFilePlace& place : places) {
    // The file may have been deleted since the cycle began.
    if (!is_wanted(place)) continue;
    ScrubHooks of_file = hooks;
    of_file.found = [&](const ScrubDamage& damage) {
      if (is_wanted(place)) note(damage);
    };
    const auto scrubbed =
        scrub_snapshot_file(*settings_.file_system, place, settings_.cluster_uuid, of_file);
    if (!scrubbed) logger_->warn("scrub: {}", scrubbed.error().message);
  }
}

void Scrubber::scrub_logs(const ScrubHooks& hooks) {
  const std::set<std::string> directories(settings_.log_directories.begin(),
                                          settings_.log_directories.end());
  const auto files = log_files_in(*settings_.file_system, directories);
  if (!files) return logger_->warn("scrub: {}", files.error().message);
  std::set<std::tuple<std::string, uint64_t, uint32_t>> streams;
  for (const LogFilePlace& file : *files) {
    if (file.node != settings_.node) continue;
    streams.insert({file.directory, file.name.incarnation, file.name.logger});
  }
  for (const auto& [directory, incarnation, logger] : streams) {
    LogStream stream;
    stream.directory = directory;
    stream.node = static_cast<uint16_t>(settings_.node);
    stream.logger = static_cast<uint16_t>(logger);
    stream.incarnation = incarnation;
    stream.cluster_uuid = settings_.cluster_uuid;
    const auto scrubbed = scrub_log(*settings_.file_system, std::move(stream), hooks);
    if (!scrubbed) logger_->warn("scrub: {}", scrubbed.error().message);
  }
}

/// Waits until this many bytes may be read. Returns false if the scrub ends.
bool Scrubber::pace(uint64_t bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, next_read_, [this] { return ends_; });
  if (ends_) return false;
  const auto cost = std::chrono::nanoseconds(bytes * 1'000'000'000 / settings_.bytes_per_s);
  // Unused bandwidth of the past is not made up for.
  next_read_ = std::max(next_read_, Clock::now()) + cost;
  progress_.bytes_read += bytes;
  cycle_done_ += bytes;
  progress_.percent = std::min<uint64_t>(99, cycle_done_ * 100 / std::max(cycle_bytes_, bytes));
  return true;
}

void Scrubber::note(const ScrubDamage& damage) {
  const std::lock_guard guard(mutex_);
  const bool is_known = std::ranges::find(last_, damage) != last_.end();
  ++current_count_;
  if (current_.size() < kMaxListedDamage) current_.push_back(damage);
  progress_.damaged = std::max(last_count_, current_count_);
  if (is_known) return;  // logged before
  logger_->error("scrub: {}: offset {}: storage {}: {}: {}", damage.path, damage.offset,
                 damage.storage, damage.range, damage.reason);
}

ScrubProgress Scrubber::progress() const {
  const std::lock_guard guard(mutex_);
  return progress_;
}

Json Scrubber::describe() const {
  const std::lock_guard guard(mutex_);
  Json json = {{"percent", progress_.percent},
               {"cycles", progress_.cycles},
               {"finished_at_s", progress_.finished_at_s},
               {"bytes_read", progress_.bytes_read},
               {"damaged", progress_.damaged},
               {"damage", Json::array()}};
  // Damage of the last cycle that the current cycle has not reached yet probably still exists.
  for (const ScrubDamage& damage : current_) json["damage"].push_back(to_json(damage));
  for (const ScrubDamage& damage : last_) {
    if (json["damage"].size() >= kMaxListedDamage) break;
    const bool is_listed = std::ranges::find(current_, damage) != current_.end();
    if (!is_listed) json["damage"].push_back(to_json(damage));
  }
  return json;
}

}  // namespace atolldb
