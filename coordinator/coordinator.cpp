#include "coordinator/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/durability/disk_room.h"
#include "coordinator/snapshots/log_volume.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_system_wrappers.h"
#include "shared/file/posix_file_system.h"

namespace atolldb {

Coordinator::Coordinator(Config config, uint64_t incarnation, SegmentSpace& space,
                         NodeCall call_node, LauncherCalls launcher, Logger logger)
    : config_(std::move(config)),
      incarnation_(incarnation),
      space_(space),
      call_node_(std::move(call_node)),
      launcher_(std::move(launcher)),
      logger_(std::move(logger)) {}

Coordinator::~Coordinator() { stop(); }

Result<void> Coordinator::prepare() {
  CHECK(control_ == nullptr);
  uint64_t start_epoch = config_.cluster.start_epoch;
  uint64_t incarnation = incarnation_;
  if (config_.durability.mode == DurabilityMode::durable) {
    ATOLL_ASSIGN(auto durable, open_durable_state());
    durable_ = std::move(durable);
    start_epoch = durable_->start_epoch();
    incarnation = durable_->incarnation();
  }
  ATOLL_ASSIGN(std::byte* const base, space_.prepare(SegmentKind::control, kCoordinator, {}));
  control_ = reinterpret_cast<ControlSegment*>(base);
  control_->node_count = static_cast<uint32_t>(config_.nodes.size());
  control_->epoch_interval_us = static_cast<uint32_t>(config_.cluster.epoch.count());
  control_->incarnation = incarnation;
  control_->start_epoch = start_epoch;
  if (durable_ != nullptr) std::ranges::copy(durable_->data_uuid(), control_->data_uuid);
  start_epochs(control_->epochs, start_epoch);
  set_state(ClusterState::starting);
  catalog_ = std::make_unique<CatalogManager>(
      *control_, durable_.get(), nodes_, metrics_, call_node_,
      [this](const Error& error) { fail_durability(error); }, logger_);
  ATOLL_TRY(catalog_->restore());
  space_.publish(SegmentKind::control, kCoordinator);
  return {};
}

Result<std::unique_ptr<DurableState>> Coordinator::open_durable_state() {
  const auto warn = [logger = logger_](const std::string& text) { logger->warn("{}", text); };
  auto files = make_file_system(file_system_settings(config_.durability, warn, &io_watch_));
  // Relaxed: this count and bytes_checked_ are for display.
  bytes_to_check_.store(log_file_bytes(*files, config_), std::memory_order_relaxed);
  return DurableState::open(config_, incarnation_,
                            std::make_unique<CountingFileSystem>(std::move(files), bytes_checked_),
                            logger_);
}

Result<void> Coordinator::attach() {
  CHECK(control_ != nullptr && nodes_.empty());
  for (uint32_t node = 0; node < config_.nodes.size(); ++node) {
    ATOLL_ASSIGN(std::byte* const shared, space_.attach(SegmentKind::shared, node, true));
    nodes_.push_back(reinterpret_cast<NodeShared*>(shared));
    ATOLL_ASSIGN(std::byte* const metrics, space_.attach(SegmentKind::metrics, node, false));
    metrics_.push_back(reinterpret_cast<const MetricsSegment*>(metrics));
  }
  status_ = std::make_unique<StatusReport>(config_, *control_, nodes_, metrics_);
  return {};
}

Result<void> Coordinator::start() {
  CHECK(status_ != nullptr && clock_ == nullptr);
  start_archiver();
  clock_ = std::make_unique<EpochClock>(
      control_->epochs, nodes_, EpochIntervals{config_.cluster.epoch, config_.cluster.epoch_min},
      is_logged(), logger_);
  tick_seen_at_ = std::chrono::steady_clock::now();
  clock_->start();
  if (is_logged()) {
    durable_epoch_ = std::make_unique<DurableEpoch>(
        control_->epochs, nodes_, [this](const Error& error) { fail_durability(error); });
    durable_epoch_->start();
  }
  scheme_ = make_scheme_manager(
      {config_, *control_, nodes_, metrics_, *clock_, *catalog_, durable_.get(), call_node_},
      logger_);
  if (durable_ != nullptr) {
    times_ = std::make_unique<EpochTimeRecorder>(durable_->files(), config_.cluster.data_dir,
                                                 durable_->data_uuid(), logger_);
    times_->start();
  }
  // Release pairs with the acquire in `beat` and `progress`: all objects that they use exist.
  watched_clock_.store(clock_.get(), std::memory_order_release);
  catalog_->start(*clock_);
  return {};
}

/// Starts the archive. REQUIRES: no thread that may report a failure runs yet, because these
/// threads read `archiver_`. IoWatch does not watch the file system of the archive, because a
/// hanging archive is not a hanging device of the cluster (R58).
void Coordinator::start_archiver() {
  CHECK(archiver_ == nullptr);
  if (durable_ == nullptr || durable_->archive() == nullptr) return;
  const auto warn = [logger = logger_](const std::string& text) { logger->warn("{}", text); };
  archiver_ = std::make_unique<LogArchiver>(
      ArchiveSource{durable_->files(), config_.cluster.data_dir, durable_->directories(),
                    *durable_->archive(),
                    [durable = durable_.get()] { return durable->ddl_record_count(); }},
      std::make_unique<PosixFileSystem>(warn), config_.archive, logger_);
  archiver_->start();
}

Result<void> Coordinator::open(const Json& metrics) {
  CHECK(scheme_ != nullptr && state() != ClusterState::running);
  status_->set_metrics_endpoints(metrics);
  // The start fails only if the archive is of other data. It continues if the archive cannot be
  // reached.
  if (archiver_ != nullptr) {
    ATOLL_TRY(archiver_->await_examined(kArchivePatience));
  }
  if (durable_ != nullptr) {
    const auto recovered = scheme_->recover([this](const std::string& readable) {
      set_state(ClusterState::recovering);
      if (launcher_.report_recovering) launcher_.report_recovering(readable);
    });
    if (!recovered) return std::unexpected(with_reason(recovered.error()));
    warn_of_left_directories();
  }
  if (is_logged()) {
    ATOLL_TRY(begin_logs());
  }
  if (durable_ != nullptr) {
    ATOLL_TRY(durable_->begin());
    for (const std::string& warning : low_disk_reserves(config_)) logger_->warn("{}", warning);
    scheme_->start();
  }
  set_state(ClusterState::running);
  logger_->info("cluster {} runs: {} nodes, incarnation {}, epoch {} us, durability: {}",
                config_.cluster.name, nodes_.size(), control_->incarnation,
                config_.cluster.epoch.count(), durability_text(config_));
  return {};
}

void Coordinator::warn_of_left_directories() {
  const auto left = durable_->left_directories();
  if (!left) return logger_->warn("{}", left.error().message);
  for (const auto& [directory, files] : *left) {
    if (files == 0) {
      logger_->info("{}: is not in the config any more, and holds nothing of this cluster",
                    directory);
    } else {
      logger_->warn(
          "{}: is not in the config any more, but holds {} files of snapshots, checkpoints or logs "
          "that are needed: keep it; they are deleted when nothing needs them",
          directory, files);
    }
  }
}

/// Makes the first log files. This comes after the recovery for two reasons (R54). A recovery that
/// fails leaves no new log files. The snapshot of the recovery can use the room that these files
/// would take.
Result<void> Coordinator::begin_logs() {
  const auto begin = [this] {
    return ask_all_nodes(config_, call_node_, ControlOperation::log_begin, Json::object());
  };
  auto begun = begin();
  if (begun || begun.error().code != ExitCode::disk_full || durable_ == nullptr) return begun;
  ATOLL_ASSIGN(const auto released, durable_->release_ballast());
  if (!released) return begun;
  logger_->warn("{}; the ballast is given up for the first log files", begun.error().message);
  return begin();
}

Error Coordinator::with_reason(Error error) const {
  const std::string kept =
      error.code == ExitCode::disk_full && archiver_ != nullptr ? archiver_->waiting_text() : "";
  if (!kept.empty()) error.message += "; " + kept;
  return error;
}

void Coordinator::fail_durability(const Error& cause) {
  const Error error = with_reason(cause);
  logger_->critical("{}", error.message);
  // In state `stopped` no transaction commits, and every wait ends with cluster_failed. All
  // acknowledged commits are durable.
  set_state(ClusterState::stopped);
  launcher_.report_failure(error);
}

void Coordinator::drain() {
  if (control_ == nullptr || state() >= ClusterState::draining) return;
  set_state(ClusterState::draining);
  if (scheme_ != nullptr) scheme_->end_page_supply();
  logger_->info("cluster {} drains", config_.cluster.name);
  // Ends the drops now, while the nodes still answer.
  if (catalog_ != nullptr) catalog_->stop_drops();
}

void Coordinator::stop() {
  if (control_ == nullptr || has_ended_) return;
  has_ended_ = true;
  drain();
  watched_clock_.store(nullptr, std::memory_order_release);
  if (scheme_ != nullptr) scheme_->stop();
  if (archiver_ != nullptr) archiver_->stop();
  // After a failure `drain` returns before it stops the drops. They must stop before the clock and
  // the DDL thread, because they use both.
  if (catalog_ != nullptr) catalog_->stop_drops();
  if (clock_ != nullptr) clock_->stop();
  if (catalog_ != nullptr) catalog_->stop();
  if (durable_epoch_ != nullptr) durable_epoch_->stop();
  if (times_ != nullptr) times_->stop();
  if (durable_ != nullptr && state() == ClusterState::draining) {
    const uint64_t durable = control_->epochs.durable.load(std::memory_order_relaxed);
    if (const auto ended = durable_->end(durable); !ended) {
      logger_->error("{}", ended.error().message);
    }
  }
  set_state(ClusterState::stopped);
  logger_->info("cluster {} has stopped", config_.cluster.name);
}

ClusterState Coordinator::state() const {
  return static_cast<ClusterState>(control_->state.load(std::memory_order_acquire));
}

void Coordinator::set_state(ClusterState state) {
  CHECK(control_ != nullptr && state <= ClusterState::stopped);
  // The state only rises, so a concurrent drain does not undo a failure. Release pairs with the
  // acquire of every thread that waits or begins a transaction.
  const auto wanted = static_cast<uint32_t>(state);
  uint32_t seen = control_->state.load(std::memory_order_relaxed);
  while (seen < wanted && !control_->state.compare_exchange_weak(
                              seen, wanted, std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
}

bool Coordinator::beat() {
  watch_device();
  // Acquire pairs with the release in start: the clock and the control segment exist.
  const EpochClock* clock = watched_clock_.load(std::memory_order_acquire);
  if (clock == nullptr) return true;
  if (state() == ClusterState::recovering) scheme_->record_recovery_progress();
  if (state() == ClusterState::running && durable_ != nullptr) {
    record_idleness();
    times_->beat(control_->epochs, nodes_);
  }
  control_->heartbeat.fetch_add(1, std::memory_order_relaxed);
  const auto now = std::chrono::steady_clock::now();
  const uint64_t ticks = clock->tick_count();
  if (ticks != ticks_seen_) {
    ticks_seen_ = ticks;
    tick_seen_at_ = now;
    return true;
  }
  const std::chrono::microseconds patience = std::max<std::chrono::microseconds>(
      config_.cluster.hang_limit.get() / 2, 4 * config_.cluster.epoch);
  return now - tick_seen_at_ < patience;
}

void Coordinator::watch_device() {
  device_watch_.set_limit(config_.durability.device_hang_limit);
  const auto change = device_watch_.check();
  if (!change) return;
  if (!change->hangs) return logger_->warn("{}", change->text);
  logger_->error("{}", change->text);
  if (config_.durability.on_device_hang != DeviceHang::stop) return;
  const Error error = {ExitCode::durability,
                       change->text + ": durability.on_device_hang is \"stop\""};
  // Acquire pairs with the release in `start`. Without a clock nothing commits, and there may be no
  // control segment.
  if (watched_clock_.load(std::memory_order_acquire) == nullptr) {
    return launcher_.report_failure(error);
  }
  fail_durability(error);
}

/// Records in the savepoint that the cluster is idle and all its commits are durable. The closing
/// markers say the same, but only in the last file of each log. The loss of such a file would look
/// like the torn tail of a crash.
///
/// Only the second heartbeat that finds the cluster idle writes the record, so short pauses in the
/// load cost no writes.
void Coordinator::record_idleness() {
  // Acquire, so that the nodes' words are loaded later. If `durable` is then larger than all dirty
  // epochs, a closing marker has raised it.
  const uint64_t durable = control_->epochs.durable.load(std::memory_order_acquire);
  const uint64_t dirty = dirty_epoch(nodes_);
  if (dirty == 0 || durable <= dirty || durable == idle_epoch_recorded_) return;
  if (std::exchange(idle_epoch_seen_, durable) != durable) return;
  CHECK(durable > idle_epoch_recorded_);
  idle_epoch_recorded_ = durable;
  catalog_->record_idle_epoch(durable);
}

std::string Coordinator::progress() const {
  // Acquire pairs with the release in start: the control segment and the scheme manager exist.
  if (watched_clock_.load(std::memory_order_acquire) == nullptr) {
    // Relaxed: for display.
    const uint64_t bytes = bytes_to_check_.load(std::memory_order_relaxed);
    if (bytes == 0) return "";
    const uint64_t checked = bytes_checked_.load(std::memory_order_relaxed);
    return fmt::format("starting {} {} checking the logs", std::min(checked, bytes), bytes);
  }
  return state() == ClusterState::recovering ? scheme_->recovery_progress() : "";
}

}  // namespace atolldb
