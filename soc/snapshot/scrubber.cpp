#include "soc/snapshot/scrubber.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
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
  const auto thread = static_cast<id_t>(::gettid());
  static_cast<void>(::setpriority(PRIO_PROCESS, thread, 19));
  set_io_priority(IoPriority::last);
}

/// Directory, incarnation and logger of a log.
using StreamKey = std::tuple<std::string, uint64_t, uint32_t>;

/// Returns the log files of the node, by stream, and in the order of their ordinals.
Result<std::map<StreamKey, std::vector<LogFilePlace>>> own_logs(const ScrubberSettings& settings) {
  const std::set<std::string> directories(settings.log_directories.begin(),
                                          settings.log_directories.end());
  ATOLL_ASSIGN(auto files, log_files_in(*settings.file_system, directories));
  std::map<StreamKey, std::vector<LogFilePlace>> streams;
  for (LogFilePlace& file : files) {
    if (file.node != settings.node) continue;
    streams[{file.directory, file.name.incarnation, file.name.logger}].push_back(std::move(file));
  }
  return streams;
}

/// Returns the size of the log files that a cycle reads: all but the newest one of each stream.
/// Unreadable files count 0.
uint64_t log_bytes(const ScrubberSettings& settings) {
  const auto streams = own_logs(settings);
  if (!streams) return 0;
  uint64_t bytes = 0;
  for (const auto& [key, files] : *streams) {
    for (size_t i = 0; i + 1 < files.size(); ++i) {
      const auto file = settings.file_system->open_for_reading(path_of(files[i]));
      const auto size = file ? (*file)->size() : Result<uint64_t>(0);
      bytes += size.value_or(0);
    }
  }
  return bytes;
}

/// Returns the bytes of the node's files of a checkpoint.
uint64_t own_bytes(const CheckpointMetadata& metadata, uint32_t node) {
  uint64_t bytes = 0;
  for (const CheckpointFileInfo& file : metadata.files) {
    if (file.node == node) bytes += file.bytes;
  }
  return bytes;
}

}  // namespace

uint64_t FoundDamage::count() const {
  uint64_t sum = 0;
  for (const auto& [path, count] : count_by_path) sum += count;
  return sum;
}

Scrubber::Scrubber(ScrubberSettings settings, Logger logger)
    : settings_(std::move(settings)),
      logger_(std::move(logger)),
      bytes_per_s_(settings_.bytes_per_s),
      pause_(settings_.pause) {
  CHECK(settings_.file_system != nullptr);
}

void Scrubber::start() {
  CHECK(!thread_.joinable());
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

void Scrubber::set_pace(uint64_t bytes_per_s, std::chrono::milliseconds pause) {
  {
    const std::lock_guard guard(mutex_);
    bytes_per_s_ = bytes_per_s;
    pause_ = pause;
  }
  changed_.notify_all();
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
  // Forgets the damage in snapshot files that are not in `places` any more.
  std::set<std::string> paths;
  for (const SnapshotFilePlace& place : places_) {
    paths.insert(snapshot_file_path(place.directory, place.node, place.snapshot));
  }
  const auto is_gone = [&](const std::string& path) {
    return path.ends_with(".atsnap") && !paths.contains(path);
  };
  for (FoundDamage* found : {&last_, &current_}) {
    std::erase_if(found->listed, [&](const ScrubDamage& damage) { return is_gone(damage.path); });
    std::erase_if(found->count_by_path, [&](const auto& entry) { return is_gone(entry.first); });
  }
  progress_.damaged = std::max(last_.count(), current_.count());
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
    changed_.wait(lock, [this] {
      const bool has_files = !places_.empty() || !settings_.checkpoint_data_dir.empty();
      return ends_ || (has_files && bytes_per_s_ != 0);
    });
    // Pauses before the first cycle, too. A starting node has other work, and deletes files.
    pause(lock);
    if (ends_) break;
    lock.unlock();
    run_cycle();
    lock.lock();
  }
}

/// Waits for the pause before a cycle, whose length may change meanwhile, or until the scrub ends.
void Scrubber::pause(std::unique_lock<std::mutex>& lock) {
  const auto begin = Clock::now();
  while (!ends_ && Clock::now() < begin + pause_) changed_.wait_until(lock, begin + pause_);
}

void Scrubber::run_cycle() {
  std::vector<SnapshotFilePlace> places;
  const uint64_t bytes_of_logs = log_bytes(settings_);
  const std::optional<CheckpointMetadata> checkpoint = find_checkpoint();
  {
    const std::lock_guard guard(mutex_);
    places = places_;
    cycle_bytes_ = bytes_of_logs;
    cycle_done_ = 0;
    for (const SnapshotFilePlace& place : places) cycle_bytes_ += place.page_count * kPageBytes;
    if (checkpoint) cycle_bytes_ += own_bytes(*checkpoint, settings_.node);
    progress_.percent = 0;
  }
  next_read_ = Clock::now();
  ScrubHooks hooks;
  hooks.reads = [this](uint64_t bytes) { return pace(bytes); };
  scrub_snapshots(places, hooks);
  if (checkpoint) scrub_checkpoint(*checkpoint, hooks);
  hooks.found = [this](const ScrubDamage& damage) { record(damage); };
  scrub_logs(hooks);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::lock_guard guard(mutex_);
  if (ends_) return;
  last_ = std::exchange(current_, {});
  progress_.damaged = last_.count();
  progress_.percent = 100;
  ++progress_.cycles;
  progress_.finished_at_s =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

void Scrubber::scrub_snapshots(const std::vector<SnapshotFilePlace>& places,
                               const ScrubHooks& hooks) {
  for (const SnapshotFilePlace& place : places) {
    // Skips a file that is not needed any more: it may have been deleted since the cycle began.
    if (!is_wanted(place)) continue;
    ScrubHooks of_file = hooks;
    of_file.found = [&](const ScrubDamage& damage) {
      if (is_wanted(place)) record(damage);
    };
    const auto scrubbed =
        scrub_snapshot_file(*settings_.file_system, place, settings_.cluster_uuid, of_file);
    if (!scrubbed) logger_->warn("scrub: {}", scrubbed.error().message);
  }
}

/// Returns the newest installed checkpoint, or nothing if there is none or its metadata cannot be
/// read.
std::optional<CheckpointMetadata> Scrubber::find_checkpoint() const {
  if (settings_.checkpoint_data_dir.empty()) return std::nullopt;
  auto newest = newest_checkpoint(*settings_.file_system, settings_.checkpoint_data_dir);
  if (newest) return *std::move(newest);
  // A newer checkpoint may have replaced this one after the list of names was read.
  newest = newest_checkpoint(*settings_.file_system, settings_.checkpoint_data_dir);
  if (newest) return *std::move(newest);
  logger_->error("scrub: {}", newest.error().message);
  return std::nullopt;
}

void Scrubber::scrub_checkpoint(const CheckpointMetadata& metadata, const ScrubHooks& hooks) {
  CHECK(!settings_.checkpoint_data_dir.empty());
  const std::string path = checkpoint_metadata_path(settings_.checkpoint_data_dir, metadata.id);
  for (size_t file = 0; file < metadata.files.size(); ++file) {
    if (metadata.files[file].node != settings_.node) continue;
    ScrubHooks of_file = hooks;
    of_file.found = [&](const ScrubDamage& damage) {
      // The metadata of a checkpoint are deleted before its files. So a file that is missing
      // because a newer checkpoint has replaced this one is not damage.
      if (settings_.file_system->exists(path).value_or(true)) record(damage);
    };
    const auto scrubbed = scrub_checkpoint_file(*settings_.file_system, metadata, file, of_file);
    if (!scrubbed) logger_->warn("scrub: {}", scrubbed.error().message);
  }
}

void Scrubber::scrub_logs(const ScrubHooks& hooks) {
  const auto streams = own_logs(settings_);
  if (!streams) return logger_->warn("scrub: {}", streams.error().message);
  for (const auto& [key, files] : *streams) {
    const auto& [directory, incarnation, logger] = key;
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
  changed_.wait(lock, [this] { return ends_ || bytes_per_s_ != 0; });
  if (ends_) return false;
  const auto cost = std::chrono::nanoseconds(bytes * 1'000'000'000 / bytes_per_s_);
  // If the scrub was slower than its rate, it does not read faster afterwards.
  next_read_ = std::max(next_read_, Clock::now()) + cost;
  progress_.bytes_read += bytes;
  cycle_done_ += bytes;
  progress_.percent = std::min<uint64_t>(99, cycle_done_ * 100 / std::max(cycle_bytes_, bytes));
  return true;
}

void Scrubber::record(const ScrubDamage& damage) {
  const std::lock_guard guard(mutex_);
  const bool is_known = std::ranges::find(last_.listed, damage) != last_.listed.end();
  ++current_.count_by_path[damage.path];
  if (current_.listed.size() < kMaxListedDamage) current_.listed.push_back(damage);
  progress_.damaged = std::max(last_.count(), current_.count());
  if (is_known) return;  // this damage was logged before
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
  // Lists the damage of the last cycle, too. The current cycle may not have reached it yet, and it
  // probably still exists.
  for (const ScrubDamage& damage : current_.listed) json["damage"].push_back(to_json(damage));
  for (const ScrubDamage& damage : last_.listed) {
    if (json["damage"].size() >= kMaxListedDamage) break;
    const bool is_listed = std::ranges::find(current_.listed, damage) != current_.listed.end();
    if (!is_listed) json["damage"].push_back(to_json(damage));
  }
  CHECK(json["damage"].size() <= kMaxListedDamage);
  return json;
}

}  // namespace atolldb
