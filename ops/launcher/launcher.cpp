#include "ops/launcher/launcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/log/log_files.h"
#include "engine/recovery/discard_data.h"
#include "engine/recovery/salvage.h"
#include "ops/launcher/program_folder.h"
#include "ops/launcher/run_notes.h"
#include "shared/base/limits.h"
#include "shared/base/path_errors.h"
#include "shared/base/try.h"
#include "shared/config/job_threads.h"
#include "shared/file/file_errors.h"
#include "shared/file/file_system.h"
#include "shared/process/config_reload.h"
#include "shared/process/run_paths.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kStopNow = uint64_t{1} << 32;
constexpr std::chrono::milliseconds kFolderCheckPause{1'000};

/// Returns the folder as an absolute path. Children leave the working directory before they execute
/// a program in the folder.
std::string absolute_folder(const std::string& folder) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(folder, error);
  return error ? folder : absolute.string();
}

uint64_t random_number() {
  uint64_t number = 0;
  while (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
  }
  return number;
}

/// Returns a member of the endpoints that a child has sent, or "" if it is missing.
std::string endpoint_of(const std::string& text, const char* member) {
  const Json json = Json::parse(text, nullptr, false);
  const auto found = json.is_object() ? json.find(member) : json.end();
  if (!json.is_object() || found == json.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace

Launcher::Launcher(Config config, LaunchOptions options, Logger logger)
    : config_(std::move(config)),
      options_(std::move(options)),
      logger_(std::move(logger)),
      stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      notifier_(options_.notifies_service_manager),
      restarts_(config_.cluster.restart, options_.restarts) {
  if (options_.binary_dir.empty()) options_.binary_dir = program_folder();
  options_.binary_dir = absolute_folder(options_.binary_dir);
  // Fixes the numbers of job threads for all processes, because the sizes of the segments depend on
  // them.
  resolve_job_threads(config_, Machine::detect());
}

Launcher::~Launcher() {
  kill_all();
  clean_up();
}

void Launcher::request_stop(bool now) {
  const uint64_t request = now ? kStopNow : 1;
  [[maybe_unused]] const ssize_t put = write(stop_fd_.get(), &request, sizeof(request));
}

Result<void> Launcher::start() {
  auto result = create();
  if (!result) {
    kill_all();
    clean_up();
    return result;
  }
  result = run_until(Phase::running);
  // The command that waited has been answered. A restart must not salvage or move data.
  options_.waiting_fd = -1;
  options_.on_recovering = {};
  options_.on_progress = {};
  options_.discards_data = false;
  options_.salvages = false;
  return result;
}

Result<void> Launcher::supervise(Result<void> started) {
  Result<void> ended = std::move(started);
  if (ended) ended = run_until(Phase::stopped);
  while (!ended && restart_wait_) {
    ended = restart();
    if (ended) ended = run_until(Phase::stopped);
  }
  return ended;
}

Result<void> Launcher::acquire_folder() {
  if (folder_ && folder_->is_in_place()) return {};
  // A restart makes the run folder again if it was deleted. If the folder now belongs to another
  // cluster, this cluster must not write into it.
  folder_.reset();
  ATOLL_ASSIGN(RunFolder folder, RunFolder::acquire(config_));
  folder_.emplace(std::move(folder));
  if (!folder_->leftovers().empty()) logger_->warn("{}", folder_->leftovers());
  folder_is_gone_ = false;
  return note_ ? Result<void>() : leave_note();
}

Result<void> Launcher::leave_note() {
  if (options_.config_file.empty()) return {};
  Result<ClusterNote> note = ClusterNote::leave(options_.config_file, config_);
  if (note) {
    note_.emplace(*std::move(note));
    return {};
  }
  if (note.error().code == ExitCode::already_running) return std::unexpected(note.error());
  logger_->warn("{}", note.error().message);
  return {};
}

void Launcher::watch_folder() {
  if (folder_is_gone_ || !folder_) return;
  const auto now = Clock::now();
  if (now - folder_seen_at_ < kFolderCheckPause) return;
  folder_seen_at_ = now;
  if (folder_->is_in_place()) return;
  folder_is_gone_ = true;
  logger_->error(
      "{}: the run folder was deleted under the live cluster \"{}\": no new client reaches it: "
      "`atoll down -c FILE` with its config file stops it",
      config_.cluster.run_dir, config_.cluster.name);
}

Result<void> Launcher::create() {
  ATOLL_TRY(check_processor());
  raise_open_files_limit();
  ATOLL_TRY(acquire_folder());
  // Begins the progress note first. Without it, a status command would report a coordinator that
  // hangs.
  begin_progress();
  ATOLL_TRY(check_distinct_folders(config_));
  ATOLL_ASSIGN(auto locked, lock_data(config_));
  data_lock_ = std::move(locked);
  if (data_lock_) {
    for (const std::string& warning : data_lock_->warnings()) logger_->warn("{}", warning);
  }
  folder_->take_endpoint();
  if (data_lock_ && options_.discards_data) {
    ATOLL_TRY(discard());
  }
  if (options_.salvages) {
    ATOLL_TRY(salvage());
  }
  unlink(last_failure_path(config_).c_str());
  std::error_code error;
  std::filesystem::create_directories(config_.cluster.log_dir, error);
  if (error) {
    return std::unexpected(path_error(config_.cluster.log_dir, "cannot be made", error.value(),
                                      "change cluster.log_dir in the config"));
  }
  ATOLL_ASSIGN(SegmentSet segments, SegmentSet::create(config_));
  segments_.emplace(std::move(segments));
  ATOLL_TRY(RunFolder::write_file(running_config_path(config_), to_toml(config_)));
  if (data_lock_) {
    ATOLL_TRY(data_lock_->check_in_place());
  }
  return spawn_all();
}

Result<void> Launcher::discard() {
  const auto files = make_file_system(file_system_settings(config_.durability));
  ATOLL_ASSIGN(const auto moved,
               discard_data(*files, config_.cluster.data_dir, node_directories(config_)));
  for (const std::string& folder : moved) logger_->warn("the old data is in {}", folder);
  return {};
}

Result<void> Launcher::salvage() {
  if (!data_lock_) {
    return make_error(ExitCode::usage,
                      "--salvage: durability.mode is not \"durable\": there is nothing to salvage");
  }
  const auto files = make_file_system(file_system_settings(config_.durability));
  return begin_salvage(*files, config_.cluster.data_dir);
}

Result<void> Launcher::spawn_all() {
  Handover handover;
  handover.cluster_uuid[0] = random_number();
  handover.cluster_uuid[1] = random_number();
  // The time of the clock gives an incarnation number larger than any earlier one, if the clock is
  // about right. With a log, the coordinator makes sure of this.
  handover.incarnation =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                std::chrono::system_clock::now().time_since_epoch())
                                .count());
  handover.restarts = restarts_.count();
  handover.config_text = to_toml(config_);
  handover.lock_fd = folder_->lock_fd();
  if (data_lock_) handover.data_lock_fds = data_lock_->fds();
  std::vector<ProcessId> ids;
  const auto spawn = [&](const std::string& role, uint32_t node,
                         const char* program) -> Result<void> {
    handover.role = role;
    handover.node = node;
    handover.segments = segments_->of_process(node);
    ATOLL_ASSIGN(Child child, spawn_child(options_.binary_dir + "/" + program,
                                          log_path(config_, role), config_.cluster.name, handover));
    ids.push_back(child.id);
    children_.push_back(std::move(child));
    if (data_lock_) {
      ATOLL_TRY(data_lock_->write_processes(ids));
    }
    return folder_->write_processes(ids);
  };
  auto spawned = spawn("coordinator", kCoordinator, "atoll-coordinator");
  for (uint32_t node = 0; spawned && node < config_.nodes.size(); ++node) {
    spawned = spawn("node" + std::to_string(node), node, "atoll-node");
  }
  return spawned;
}

Result<void> Launcher::run_until(Phase phase) {
  while (phase_ < phase) {
    ATOLL_TRY(turn());
  }
  return {};
}

int Launcher::poll_timeout_ms() const {
  Clock::time_point next = phase_ >= Phase::draining ? stop_deadline_ : Clock::time_point::max();
  for (const Child& child : children_) {
    if (child.is_running())
      next = std::min(next, child.last_seen + config_.cluster.hang_limit.get());
  }
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(wait, 0, kFolderCheckPause.count()));
}

Result<void> Launcher::turn() {
  if (!take_events()) return {};
  watch_folder();
  report_progress();
  if (stop_now_) return stop_at_once();
  if (waiting_gone_ && phase_ == Phase::starting) {
    return fail(
        {ExitCode::failed, "cluster \"" + config_.cluster.name +
                               "\": start abandoned: the command that waited for it has ended"});
  }
  ATOLL_TRY(check_children());
  return advance();
}

bool Launcher::take_events() {
  std::vector<pollfd> fds = {{stop_fd_.get(), POLLIN, 0},
                             {options_.signal_fd, POLLIN, 0},
                             {phase_ == Phase::starting ? options_.waiting_fd : -1, POLLIN, 0}};
  const size_t first_child = fds.size();
  for (const Child& child : children_) {
    // A child that has ended sends nothing more. poll ignores negative descriptors.
    fds.push_back({child.is_running() ? child.channel.get() : -1, POLLIN, 0});
    fds.push_back({child.is_running() ? child.pidfd.get() : -1, POLLIN, 0});
  }
  if (poll(fds.data(), fds.size(), poll_timeout_ms()) < 0) return false;  // EINTR
  if (fds[2].revents != 0) waiting_gone_ = true;
  take_requests();
  for (size_t i = 0; i < children_.size(); ++i) {
    const bool has_spoken = fds[first_child + 2 * i].revents != 0;
    const bool has_ended = fds[first_child + 2 * i + 1].revents != 0;
    // Receives the last messages of the child before its end is handled.
    if (has_spoken || has_ended) receive(children_[i]);
    if (has_ended) children_[i].wait_status = reap(children_[i].id.pid);
  }
  return true;
}

Result<void> Launcher::stop_at_once() {
  logger_->warn("stopped at once");
  notifier_.stopping();
  kill_all();
  clean_up_after_stop();
  const bool was_started = phase_ != Phase::starting || restarts_.count() != 0;
  phase_ = Phase::stopped;
  if (was_started) return {};
  return make_error(ExitCode::failed,
                    "cluster \"" + config_.cluster.name + "\": was told to stop before it ran");
}

void Launcher::take_requests() {
  uint64_t requests = 0;
  if (read(stop_fd_.get(), &requests, sizeof(requests)) == sizeof(requests)) {
    stop_requests_ += static_cast<uint32_t>(requests);
    if (requests >= kStopNow) stop_now_ = true;
  }
  signalfd_siginfo signal{};
  while (options_.signal_fd >= 0 &&
         read(options_.signal_fd, &signal, sizeof(signal)) == sizeof(signal)) {
    logger_->info("got {}", signal_name(static_cast<int>(signal.ssi_signo)));
    ++stop_requests_;
  }
  // Nothing commits during a start-up, so it stops at once. Clients that read snapshots can repeat
  // their reads.
  if (stop_requests_ > 1 || (stop_requests_ == 1 && phase_ == Phase::starting)) stop_now_ = true;
}

void Launcher::receive(Child& child) {
  for (const std::string& line : child.reader->read()) {
    child.last_seen = Clock::now();
    take_line(child, line);
  }
}

void Launcher::take_line(Child& child, const std::string& line) {
  if (line == "heartbeat") return;
  const size_t space = line.find(' ');
  const std::string word = line.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  if (word == "stop-requested") {
    ++stop_requests_;
  } else if (word == "stop-now-requested") {
    stop_now_ = true;
  } else if (word == "reload") {
    reload(rest);
  } else if (word == "progress") {
    progress_.note_line(rest, Clock::now());
  } else if (word == "recovering") {
    progress_.note("recovering", "reading the logs", 0, 0, Clock::now());
    if (options_.until_readable && !rest.empty()) {
      options_.waiting_fd = -1;
      restarts_.record_running(
          Clock::now());  // no command waits now, so a failure may cause a restart
    }
    if (options_.on_recovering) options_.on_recovering(rest);
  } else if (word == "failed:") {
    const size_t end = rest.find(' ');
    const int code = std::atoi(rest.c_str());
    child.failure = Error{code == 0 ? ExitCode::failed : static_cast<ExitCode>(code),
                          end == std::string::npos ? rest : rest.substr(end + 1)};
  } else {
    if (word == "running") {
      child.metrics = endpoint_of(rest, "metrics");
      child.status_page = endpoint_of(rest, "status_page");
      child.network = endpoint_of(rest, "network");
    }
    child.reached = word;
  }
}

/// Takes new values from the coordinator. Restarts of the cluster use them, too.
void Launcher::reload(const std::string& values) {
  const auto wanted = reload_values(config_, Json::parse(values, nullptr, false), logger_);
  if (!wanted) return logger_->error("{}", wanted.error().message);
  config_.log.level = wanted->log.level;
  // A run folder that was replaced may belong to another cluster.
  if (!folder_ || !folder_->is_in_place()) return;
  const auto written = RunFolder::write_file(running_config_path(config_), to_toml(config_));
  if (!written) logger_->error("{}", written.error().message);
}

Error Launcher::died(const Child& child) const {
  const std::string where = "cluster \"" + config_.cluster.name + "\": " + child.name();
  const std::string stopped = ": the cluster has stopped: see " + child.log_file;
  if (child.failure) {
    // The message of the child says what to do.
    return {child.failure->code, where + ": " + child.failure->message + stopped};
  }
  const bool is_recovered = config_.cluster.restart == RestartPolicy::recover;
  return {ExitCode::failed, where + " " + describe_exit(*child.wait_status) + stopped +
                                (is_recovered ? "" : ", start it again with `atoll up`")};
}

const Child* Launcher::most_telling_failure() const {
  const Child* first = nullptr;
  for (const Child& child : children_) {
    if (!child.failure) continue;
    // Prefers the child that names a file. Other children fail as a consequence.
    if (file_failure_in(child.failure->message)) return &child;
    if (first == nullptr) first = &child;
  }
  return first;
}

Result<void> Launcher::check_children() {
  const auto now = Clock::now();
  if (const Child* failed = most_telling_failure()) return fail(died(*failed));
  for (Child& child : children_) {
    const bool may_end = phase_ == Phase::stopping_nodes || phase_ == Phase::stopping_coordinator;
    if (!child.is_running()) {
      const bool in_order = may_end && *child.wait_status == 0 &&
                            (child.node != kCoordinator || phase_ == Phase::stopping_coordinator);
      if (!in_order) return fail(died(child));
      continue;
    }
    if (now - child.last_seen < config_.cluster.hang_limit) continue;
    // Receives first, because heartbeats may have arrived while this launcher was suspended.
    receive(child);
    if (Clock::now() - child.last_seen < config_.cluster.hang_limit) continue;
    return fail({ExitCode::failed, "cluster \"" + config_.cluster.name + "\": " + child.name() +
                                       " hung: no heartbeat for " +
                                       std::to_string(config_.cluster.hang_limit.get().count()) +
                                       " ms: the cluster has stopped: see " + child.log_file +
                                       ", raise cluster.hang_limit if the machine is slow"});
  }
  if (phase_ >= Phase::draining && phase_ < Phase::stopped && now >= stop_deadline_) {
    return fail({ExitCode::failed, "cluster \"" + config_.cluster.name +
                                       "\": did not stop within " +
                                       std::to_string(stop_patience().count()) +
                                       " ms (cluster.hang_limit + procedures.time_limit): killed: "
                                       "find the procedure or job that ignores the stop, or raise "
                                       "procedures.time_limit"});
  }
  return {};
}

std::chrono::milliseconds Launcher::stop_patience() const {
  // A procedure in progress may run until its time limit.
  return config_.cluster.hang_limit.get() + config_.procedures.time_limit.get();
}

bool Launcher::all_reached(const char* step) const {
  return std::ranges::all_of(children_, [&](const Child& child) { return child.reached == step; });
}

bool Launcher::nodes_ended() const {
  return std::ranges::all_of(children_, [](const Child& child) {
    return child.node == kCoordinator || !child.is_running();
  });
}

void Launcher::send_all(const char* command) {
  for (const Child& child : children_) send_line(child.channel.get(), command);
}

Result<void> Launcher::advance_start() {
  if (awaited_ == "prepared" && all_reached("prepared")) {
    awaited_ = "attached";
    note_step();
    send_all("ATTACH");
  } else if (awaited_ == "attached" && all_reached("attached")) {
    awaited_ = "running";
    note_step();
    send_all("START");
  } else if (awaited_ == "running" && all_reached("running")) {
    awaited_ = "opened";
    note_step();
    Json metrics = Json::object();
    for (const Child& child : children_) {
      if (!child.metrics.empty()) metrics[child.role] = child.metrics;
      if (!child.network.empty()) metrics["network"][child.role] = Json::parse(child.network);
    }
    send_line(children_.front().channel.get(), "OPEN " + metrics.dump());
  } else if (awaited_ == "opened" && children_.front().reached == "opened") {
    phase_ = Phase::running;
    end_progress();
    restarts_.record_running(Clock::now());
    logger_->info("cluster {} runs, {:.3f} s after the begin of its start", config_.cluster.name,
                  std::chrono::duration<double>(Clock::now() - start_began_).count());
    const auto announced = announce(config_, children_);
    if (!announced) return fail(announced.error());
    if (restarts_.count() != 0) note_restart_now(false);
    notifier_.ready("runs: " + std::to_string(config_.nodes.size()) + " nodes, control " +
                    config_.control.endpoint);
  }
  return {};
}

Result<void> Launcher::advance() {
  switch (phase_) {
    case Phase::starting:
      return advance_start();
    case Phase::running:
      if (stop_requests_ != 0) begin_drain();
      return {};
    case Phase::draining:
      if (!all_reached("drained")) return {};
      phase_ = Phase::stopping_nodes;
      for (const Child& child : children_) {
        if (child.node != kCoordinator) send_line(child.channel.get(), "STOP");
      }
      return {};
    case Phase::stopping_nodes:
      if (!nodes_ended()) return {};
      phase_ = Phase::stopping_coordinator;
      send_line(children_.front().channel.get(), "STOP");
      return {};
    case Phase::stopping_coordinator:
      if (children_.front().is_running()) return {};
      phase_ = Phase::stopped;
      clean_up_after_stop();
      logger_->info("cluster {} has stopped", config_.cluster.name);
      return {};
    case Phase::stopped:
      return {};
  }
  return {};
}

void Launcher::begin_drain() {
  logger_->info("cluster {} drains", config_.cluster.name);
  notifier_.stopping();
  phase_ = Phase::draining;
  stop_deadline_ = Clock::now() + stop_patience();
  send_all("DRAIN");
}

std::unexpected<Error> Launcher::fail(Error error) {
  const Phase failed_in = std::exchange(phase_, Phase::stopped);
  kill_all();
  plan_restart(error, failed_in);
  logger_->critical("{}", error.message);
  release();
  if (!restart_wait_) clean_up();
  const auto written = note_failure(config_, error);
  if (!written) logger_->error("{}", written.error().message);
  return std::unexpected(std::move(error));
}

void Launcher::kill_all() {
  for (const Child& child : children_) {
    if (child.is_running()) send_signal(child.pidfd, SIGKILL);
  }
  for (Child& child : children_) {
    if (child.is_running()) child.wait_status = reap(child.id.pid);
  }
}

void Launcher::release() {
  segments_.reset();
  if (data_lock_) data_lock_->forget_processes();
  data_lock_.reset();
}

void Launcher::clean_up_after_stop() {
  // Before the folder is released: the next launcher of this cluster writes the same file.
  if (const auto withdrawn = withdraw_targets(config_); !withdrawn) {
    logger_->error("{}", withdrawn.error().message);
  }
  clean_up();
}

void Launcher::clean_up() {
  release();
  folder_.reset();
  note_.reset();
}

}  // namespace atolldb
