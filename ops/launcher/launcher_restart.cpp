// Restarts of a failed cluster (cluster.restart = "recover"). The launcher keeps the run folder.
// All processes of the previous incarnation are reaped when fail() returns (R31). A restart takes
// the locks of the data again, as every start-up does.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "ops/launcher/launcher.h"
#include "shared/process/run_paths.h"

namespace atolldb {
namespace {

using Clock = std::chrono::steady_clock;

int64_t seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace

/// REQUIRES: all processes have ended.
void Launcher::plan_restart(Error& error, Phase failed_in) {
  restart_wait_.reset();
  if (config_.cluster.restart == RestartPolicy::never) return;
  // Reads the last messages of the children. A message may ask for a stop, or name the cause of the
  // first failure.
  for (Child& child : children_) {
    receive(child);
    if (child.failure && !may_pass(child.failure->code) && may_pass(error.code)) {
      error = died(child);
    }
  }
  take_requests();
  if (failed_in >= Phase::draining || stop_requests_ != 0 || stop_now_) return;
  restart_wait_ = restarts_.after_failure(error, Clock::now());
  if (!restart_wait_) return;
  restart_note_.time = seconds_now();
  restart_note_.reason = error.message;
  // If the run folder was replaced, the new folder may belong to another cluster.
  if (!folder_ || !folder_->is_in_place()) return;
  if (const auto left = folder_->await_restart(); !left) logger_->error("{}", left.error().message);
  note_restart_now(true);
}

void Launcher::note_restart_now(bool is_under_way) {
  restart_note_.count = restarts_.count();
  restart_note_.attempt = restarts_.attempt();
  restart_note_.most_attempts = restarts_.limits().most;
  restart_note_.is_under_way = is_under_way;
  const auto written = note_restart(config_, restart_note_);
  if (!written) logger_->error("{}", written.error().message);
}

bool Launcher::wait_for_restart(std::chrono::milliseconds wait) {
  const auto until = Clock::now() + wait;
  for (;;) {
    take_requests();
    if (stop_requests_ != 0 || stop_now_) return false;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return true;
    std::array<pollfd, 2> fds = {{{stop_fd_.get(), POLLIN, 0}, {options_.signal_fd, POLLIN, 0}}};
    poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left, 3'600'000)));
  }
}

Result<void> Launcher::restart() {
  const auto wait = *std::exchange(restart_wait_, std::nullopt);
  logger_->warn("cluster {} restarts in {} ms: restart {} of at most {} in succession",
                config_.cluster.name, wait.count(), restarts_.attempt(), restarts_.limits().most);
  notifier_.status("restarts after a failure: " + restart_note_.reason);
  if (!wait_for_restart(wait)) {
    logger_->info("cluster {} was told to stop: not restarted", config_.cluster.name);
    clean_up_after_stop();
    unlink(last_failure_path(config_).c_str());
    return {};
  }
  children_.clear();
  phase_ = Phase::starting;
  awaited_ = "prepared";
  if (auto created = create(); !created) return fail(created.error());
  return run_until(Phase::running);
}

}  // namespace atolldb
