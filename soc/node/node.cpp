#include "soc/node/node.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/config/job_threads.h"
#include "shared/memory/node_layout.h"
#include "shared/memory/segment_file.h"
#include "shared/process/run_paths.h"
#include "soc/node/node_segments.h"
#include "soc/node/whole_version_limit.h"

namespace atolldb {
namespace {

uint32_t prefault_threads(const Machine& machine, size_t nodes) {
  constexpr size_t kMaxThreads = 16;
  return static_cast<uint32_t>(std::clamp<size_t>(machine.cpus.size() / nodes, 1, kMaxThreads));
}

}  // namespace

Node::Node(Config config, uint32_t node, SegmentSpace& space, OnFailure on_failure, Logger logger)
    : config_(std::move(config)),
      node_(node),
      space_(space),
      on_failure_(std::move(on_failure)),
      logger_(std::move(logger)),
      machine_(Machine::detect()) {
  CHECK(node_ < config_.nodes.size());
}

Node::~Node() { stop(); }

Result<void> Node::prepare() {
  CHECK(metrics_ == nullptr);
  ATOLL_ASSIGN(registry_, ProcedureRegistry::load(config_.procedures.libraries));

  SegmentPlacement placement;
  placement.numa_node = numa_node_of(config_, node_, machine_);
  placement.transparent_huge = config_.memory.huge_pages != HugePages::off;
  placement.prefault_threads = prefault_threads(machine_, config_.nodes.size());
  std::vector<SegmentKind> kinds = {SegmentKind::shared, SegmentKind::pool, SegmentKind::local,
                                    SegmentKind::metrics};
  if (node_segment_sizes(config_, node_).exchange != 0) kinds.push_back(SegmentKind::exchange);
  std::vector<std::byte*> bases;
  for (const SegmentKind kind : kinds) {
    SegmentPlacement part = placement;
    if (kind == SegmentKind::pool) part.prefault_bytes = kPoolBytesAtStart;
    ATOLL_ASSIGN(std::byte* const base, space_.prepare(kind, node_, part));
    bases.push_back(base);
  }
  format_segments(bases);
  set_state(NodeState::starting);
  for (const SegmentKind kind : kinds) space_.publish(kind, node_);
  logger_->info("node {} has prepared its segments: {} MiB of pages of {} bytes", node_,
                config_.memory.volatile_pool >> 20, view_.shared[node_]->header.real_page_bytes);
  return {};
}

void Node::format_segments(const std::vector<std::byte*>& bases) {
  auto& shared = *reinterpret_cast<NodeShared*>(bases[0]);
  shared_layout(config_, node_).format(shared);
  PagePool::format(bases[1], node_segment_sizes(config_, node_).pool);
  local_ = bases[2];
  metrics_ = reinterpret_cast<MetricsSegment*>(bases[3]);
  metrics_->slot_count = shared.slot_count;
  for (uint32_t i = 0; bases.size() > 4 && i < inbox_count(config_.nodes[node_]); ++i) {
    ReducerInbox::format(bases[4] + inbox_offset(config_, i), inbox_bytes(config_));
  }
  view_.add_node(node_, shared, bases[1]);
}

Result<void> Node::attach() {
  CHECK(state() == NodeState::starting && view_.control == nullptr);
  ATOLL_ASSIGN(std::byte* const control, space_.attach(SegmentKind::control, kCoordinator, true));
  view_.control = reinterpret_cast<ControlSegment*>(control);
  for (uint32_t node = 0; node < config_.nodes.size(); ++node) {
    ATOLL_ASSIGN(std::byte* const shared, space_.attach(SegmentKind::shared, node, true));
    ATOLL_ASSIGN(std::byte* const pool, space_.attach(SegmentKind::pool, node, true));
    view_.add_node(node, *reinterpret_cast<NodeShared*>(shared), pool);
    if (node_segment_sizes(config_, node).exchange == 0) continue;
    ATOLL_ASSIGN(std::byte* const exchange, space_.attach(SegmentKind::exchange, node, true));
    exchange_.push_back(exchange);
  }
  CHECK(view_.node_count == config_.nodes.size());
  CHECK(exchange_.empty() || exchange_.size() == view_.node_count);
  pool_ = std::make_unique<PagePool>(view_, node_);
  device_watch_.emplace(io_watch_, metrics_->device, config_.durability.device_hang_limit);
  attached_.store(true, std::memory_order_release);
  beat();
  set_state(NodeState::attached);
  return {};
}

Result<void> Node::start() {
  CHECK(state() == NodeState::attached);
  set_state(NodeState::recovering);
  // Not in `prepare`, because the start waits until all nodes are prepared.
  start_pool_memory();
  open_log_files();
  ATOLL_TRY(start_snapshots());
  ATOLL_TRY(registry_.prepare_libraries(*view_.control));
  reloader_ = std::make_unique<LibraryReloader>(
      registry_, *view_.control, logger_,
      [this](std::span<const std::string> names) { procedure_metrics_->add_names(names); });
  ATOLL_TRY(start_workers());
  start_checkpoints();
  ATOLL_TRY(start_sessions());
  housekeeper_ = std::thread([this] { housekeep(); });
  set_state(NodeState::running);
  logger_->info("node {} runs with {} workers", node_, workers_.size());
  return {};
}

void Node::start_pool_memory() {
  PoolMemorySettings settings;
  settings.segment = segment_name(SegmentKind::pool, node_);
  settings.base = reinterpret_cast<std::byte*>(view_.pool[node_]);
  settings.bytes = node_segment_sizes(config_, node_).pool;
  if (!machine_.has_cpu_quota()) settings.cpus = machine_.cpus;
  settings.used_bytes = [this, bytes = settings.bytes] {
    return bytes - pool_->free_count() * kPageBytes;
  };
  settings.on_failure = on_failure_;
  pool_memory_ = std::make_unique<PoolMemory>(std::move(settings), logger_);
  publish_unallocated();  // before the first heartbeat, because benchmarks wait for 0
}

void Node::publish_unallocated() {
  view_.shared[node_]->unallocated_bytes.store(pool_memory_->unallocated_bytes(),
                                               std::memory_order_relaxed);
}

Result<void> Node::start_workers() {
  CHECK(workers_.empty());
  const TransactionLimits limits = transaction_limits(config_);
  const NodeConfig& own = config_.nodes[node_];
  if (own.running_workers != 0 && own.running_workers < own.workers) {
    gate_ = std::make_unique<RunGate>(own.running_workers);
  }
  ATOLL_ASSIGN(const uint32_t whole_version_bytes,
               whole_version_limit(std::getenv(kWholeVersionVariable)));
  if (whole_version_bytes != kWholeVersionBytes) {
    logger_->warn("{} is set: updates of records of up to {} bytes are logged as whole records",
                  kWholeVersionVariable, whole_version_bytes);
  }
  for (uint32_t ordinal = 0; ordinal < own.workers; ++ordinal) {
    WorkerSettings settings;
    settings.view = &view_;
    settings.pool = pool_.get();
    settings.metrics = &metrics_->worker(ordinal);
    settings.limits = limits;
    settings.local = local_ + local_offset(limits, ordinal);
    settings.gate = gate_.get();
    settings.directory = &directory_;
    if (config_.durability.scheme == DurabilityScheme::silor) {
      settings.whole_version_bytes = whole_version_bytes;
    }
    settings.node = node_;
    settings.ordinal = ordinal;
    if (snapshots_ != nullptr) settings.snapshots = &snapshots_->cache();
    // Without a savepoint there are no snapshots.
    if (snapshots_ != nullptr && config_.durability.mode == DurabilityMode::durable) {
      settings.published = &snapshots_->published();
    }
    settings.cpus = worker_cpus(config_, node_, ordinal, machine_);
    workers_.push_back(std::make_unique<Worker>(std::move(settings), logger_));
    workers_.back()->start();
  }
  return {};
}

Result<void> Node::start_sessions() {
  CHECK(!workers_.empty() && answers_ == nullptr);
  procedure_metrics_ = std::make_unique<ProcedureMetrics>(registry_.procedure_names(),
                                                          static_cast<uint32_t>(workers_.size()));
  answers_ = std::make_unique<DurableAnswers>(*view_.control);
  answers_->start();
  SessionServices services;
  services.node = node_;
  services.incarnation = view_.control->incarnation;
  services.procedures = &registry_;
  for (const auto& worker : workers_) services.workers.push_back(worker.get());
  services.answers = answers_.get();
  services.metrics = &metrics_->sessions;
  services.procedure_metrics = procedure_metrics_.get();
  services.refusal = [this](Isolation isolation) { return refuse(isolation); };
  services.deadline_epoch = [this] { return procedure_deadline(); };
  const Config::Procedures& procedures = config_.procedures;
  services.payloads = {.max_input_bytes = static_cast<uint32_t>(procedures.max_input),
                       .max_output_bytes = static_cast<uint32_t>(procedures.max_output),
                       .memory_bytes = procedures.payload_memory,
                       .transfer_timeout = procedures.transfer_timeout};
  sessions_ = std::make_unique<SessionServer>(std::move(services), logger_);
  ATOLL_TRY(sessions_->start());
  return start_network();
}

Result<void> Node::start_network() {
  const Config::Network& network = config_.network;
  if (!network.enabled) return {};
  const auto port = network.base_port == 0 ? 0 : network.base_port + node_;
  CHECK(port <= UINT16_MAX);  // checked with the config
  ATOLL_ASSIGN(network_, NetworkGateway::start({.address = network.listen,
                                                .port = static_cast<uint16_t>(port),
                                                .key_file = network.key_file,
                                                .authorised_keys = network.authorised_keys,
                                                .endpoints = {config_.control.endpoint,
                                                              node_endpoint(config_, node_)}},
                                               sessions_->sink(), network_metrics_, logger_));
  return {};
}

void Node::drain() {
  if (view_.shared[node_] == nullptr) return;  // `prepare` was not called
  if (state() >= NodeState::draining) return;
  set_state(NodeState::draining);
  if (snapshot_jobs_ != nullptr) snapshot_jobs_->stop();
  if (checkpoints_ != nullptr) checkpoints_->stop();  // a replay needs the workers until its end
  if (installer_ != nullptr) installer_->stop();
  if (scrubber_ != nullptr) scrubber_->stop();
  jobs_.stop_all();
  // Closes all workers before it joins the first one. So no worker takes new tasks while another
  // one ends.
  for (const auto& worker : workers_) worker->close();
  for (const auto& worker : workers_) worker->stop();
}

void Node::stop() {
  if (view_.shared[node_] == nullptr || state() == NodeState::stopped) return;
  drain();
  // The epoch clock still ticks, so the epochs of committed transactions soon become durable, and
  // their answers are sent.
  constexpr std::chrono::milliseconds kDurablePatience{5'000};
  if (answers_ != nullptr) answers_->stop(kDurablePatience);
  {
    const std::lock_guard guard(loggers_mutex_);
    for (const auto& logger : loggers_) logger->stop();
  }
  if (network_ != nullptr) network_->stop();
  if (sessions_ != nullptr) sessions_->stop();
  if (reloader_ != nullptr) reloader_->stop();
  if (warmer_ != nullptr) warmer_->stop();
  lent_pages_.reset();
  if (pool_memory_ != nullptr) pool_memory_->stop();
  {
    const std::lock_guard guard(mutex_);
    housekeeper_ends_ = true;
  }
  housekeeper_wake_.notify_one();
  if (housekeeper_.joinable()) housekeeper_.join();
  set_state(NodeState::stopped);
  logger_->info("node {} has stopped", node_);
}

NodeState Node::state() const {
  return static_cast<NodeState>(view_.shared[node_]->state.load(std::memory_order_acquire));
}

void Node::set_state(NodeState state) {
  CHECK(state >= this->state());
  // Release pairs with the acquire of a thread that reads the state. That thread sees all stores
  // before this one.
  view_.shared[node_]->state.store(static_cast<uint32_t>(state), std::memory_order_release);
}

void Node::beat() {
  // Acquire pairs with the release in `attach`: pool_ and view_ are complete.
  if (!attached_.load(std::memory_order_acquire)) return;
  watch_device();
  pool_->collect_returns();
  NodeShared& shared = *view_.shared[node_];
  shared.pages_total.store(pool_->page_count(), std::memory_order_relaxed);
  // The objects that the metrics describe exist in the state `running` and in later states. state()
  // is an acquire load.
  if (state() >= NodeState::running) {
    publish_unallocated();
    publish_snapshot_metrics();
    if (checkpoints_ != nullptr) checkpoints_->publish(metrics_->checkpoint);
    if (warmer_ != nullptr) tell_warmer();
  }
  shared.heartbeat.fetch_add(1, std::memory_order_relaxed);
}

/// Tells the warmer the newest snapshot once the cluster runs. Before that, a recovery needs the
/// devices for itself.
void Node::tell_warmer() {
  // Acquire pairs with the coordinator's release: the newest snapshot is readable.
  const auto state = view_.control->state.load(std::memory_order_acquire);
  const uint32_t newest = view_.control->readable_snapshot.load(std::memory_order_relaxed);
  if (state != static_cast<uint32_t>(ClusterState::running) || newest == 0) return;
  warmer_->note_snapshot(newest);
}

void Node::watch_device() {
  device_watch_->set_limit(config_.durability.device_hang_limit);
  const auto change = device_watch_->check();
  if (!change) return;
  if (!change->hangs) return logger_->warn("{}", change->text);
  logger_->error("{}", change->text);
  if (config_.durability.on_device_hang != DeviceHang::stop) return;
  on_failure_({ExitCode::durability, change->text + ": durability.on_device_hang is \"stop\""});
}

void Node::give_to_housekeeper(std::function<void(WorkerContext&)> task) {
  CHECK(task != nullptr);
  {
    const std::lock_guard guard(mutex_);
    housekeeper_tasks_.push_back(std::move(task));
  }
  housekeeper_wake_.notify_one();
}

void Node::housekeep() {
  const auto slot = static_cast<uint32_t>(workers_.size());  // the first auxiliary slot
  CHECK(slot < view_.shared[node_]->slot_count);
  WorkerContext context(view_, *pool_, node_, slot, metrics_->worker(slot),
                        config_.memory.write_set);
  std::unique_lock lock(mutex_);
  const auto is_woken = [this] {
    return !housekeeper_tasks_.empty() || deadlines_changed_ || housekeeper_ends_;
  };
  while (!housekeeper_ends_ || !housekeeper_tasks_.empty()) {
    deadlines_changed_ = false;
    if (!housekeeper_tasks_.empty()) {
      const auto task = std::move(housekeeper_tasks_.front());
      housekeeper_tasks_.pop_front();
      lock.unlock();
      context.enter();
      task(context);
      context.leave();
      lock.lock();
      continue;
    }
    lock.unlock();
    const auto until = housekeep_once(context);
    lock.lock();
    if (until) {
      housekeeper_wake_.wait_until(lock, *until, is_woken);
    } else {
      housekeeper_wake_.wait(lock, is_woken);
    }
  }
  lock.unlock();
  // The node ends, so jobs that are not done now never will be. This answers the clients that wait
  // for them. Later requests are answered at once, because the control server still runs.
  jobs_.end_waits();
}

std::optional<JobTable::Clock::time_point> Node::housekeep_once(WorkerContext& context) {
  constexpr std::chrono::milliseconds kGracePause{10};
  const auto next = jobs_.expire(JobTable::Clock::now());
  context.pages().recycle();
  if (context.pages().retired_count() == 0) {
    context.pages().flush();
    return next;
  }
  const auto soon = JobTable::Clock::now() + kGracePause;
  return std::min(next.value_or(soon), soon);
}

uint64_t Node::latest_commit_epoch() const {
  return latest_dirty_epoch(std::span(view_.shared).first(view_.node_count));
}

uint64_t Node::procedure_deadline() const {
  const auto limit = std::chrono::microseconds(config_.procedures.time_limit.get()).count();
  const auto epoch = config_.cluster.epoch.count();
  DCHECK(epoch > 0);
  const uint64_t now = view_.control->epochs.current.load(std::memory_order_relaxed);
  return std::min(kMaxEpoch, now + static_cast<uint64_t>((limit + epoch - 1) / epoch) + 1);
}

}  // namespace atolldb
