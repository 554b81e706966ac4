#include "ops/cluster/thread_cluster.h"

#include <future>
#include <utility>

#include "shared/base/try.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

SegmentIdentity identity_of(const Config& config) {
  SegmentIdentity identity;
  // The id is fixed, because no other process can map these segments.
  identity.cluster_uuid[0] = 1;
  identity.config_digest = config_digest(config);
  return identity;
}

/// Sends a request to `target` (Node or Coordinator) and waits for the answer.
template <typename Target>
Result<Json> ask(Target& target, ControlOperation operation, const Json& body,
                 std::chrono::milliseconds timeout) {
  const auto answered = std::make_shared<std::promise<Result<Json>>>();
  std::future<Result<Json>> answer = answered->get_future();
  target.handle({operation, body},
                [answered](Result<Json> result) { answered->set_value(std::move(result)); });
  if (answer.wait_for(timeout) != std::future_status::ready) {
    return make_error(ExitCode::coordinator_unreachable,
                      std::string(to_string(operation)) + ": no answer within " +
                          std::to_string(timeout.count()) + " ms");
  }
  return answer.get();
}

}  // namespace

ThreadCluster::ThreadCluster(const Config& config, SegmentSet segments)
    : Cluster(config),
      segments_(std::move(segments)),
      space_(segments_.all(), identity_of(config), SegmentSpace::kAnyAddress) {}

Result<std::unique_ptr<Cluster>> ThreadCluster::launch(const Config& config) {
  ATOLL_TRY(check_processor());
  ATOLL_ASSIGN(auto data_lock, lock_data(config));
  ATOLL_ASSIGN(SegmentSet segments, SegmentSet::create(config));
  if (data_lock) {
    ATOLL_TRY(data_lock->check_in_place());
  }
  std::unique_ptr<ThreadCluster> cluster(new ThreadCluster(config, std::move(segments)));
  cluster->data_lock_ = std::move(data_lock);
  ATOLL_TRY(cluster->start());
  return cluster;
}

Result<void> ThreadCluster::start() {
  coordinator_ = std::make_unique<Coordinator>(
      config_, 1, space_,
      [this](uint32_t node, ControlOperation operation, const Json& body) {
        return call(node, operation, body, kDdlTimeout);
      },
      LauncherCalls{[](bool) {}, [this](const Error& error) { note_failure(error); }},
      make_silent_logger("coordinator"));
  for (uint32_t node = 0; node < config_.nodes.size(); ++node) {
    nodes_.push_back(std::make_unique<Node>(
        config_, node, space_, [this](const Error& error) { note_failure(error); },
        make_silent_logger("node" + std::to_string(node))));
  }
  Result<void> result = coordinator_->prepare();
  for (const auto& node : nodes_) result = result ? node->prepare() : result;
  if (result) result = coordinator_->attach();
  for (const auto& node : nodes_) result = result ? node->attach() : result;
  if (result) result = coordinator_->start();
  for (const auto& node : nodes_) result = result ? node->start() : result;
  if (result) result = coordinator_->open(Json::object());
  if (!result) return result;
  heart_ = std::thread([this] { beat(); });
  return {};
}

void ThreadCluster::beat() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, config_.cluster.heartbeat, [this] { return ends_; })) {
    lock.unlock();
    coordinator_->beat();
    for (const auto& node : nodes_) node->beat();
    lock.lock();
  }
}

ThreadCluster::~ThreadCluster() { [[maybe_unused]] const auto ended = shutdown(); }

Result<Json> ThreadCluster::call(uint32_t node, ControlOperation operation, const Json& body,
                                 std::chrono::milliseconds timeout) {
  if (node >= nodes_.size()) return no_such_node(node);
  return ask(*nodes_[node], operation, body, timeout);
}

Result<Json> ThreadCluster::coordinator(ControlOperation operation, const Json& body,
                                        std::chrono::milliseconds timeout) {
  return ask(*coordinator_, operation, body, timeout);
}

Result<std::unique_ptr<SessionClient>> ThreadCluster::connect_session(uint32_t node) {
  if (node >= nodes_.size()) return no_such_node(node);
  ATOLL_ASSIGN(UniqueFd socket, nodes_[node]->connect_session());
  return SessionClient::over(std::move(socket));
}

Result<void> ThreadCluster::shutdown() {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  if (heart_.joinable()) heart_.join();
  if (coordinator_ != nullptr) coordinator_->drain();
  for (const auto& node : nodes_) node->drain();
  for (const auto& node : nodes_) node->stop();
  if (coordinator_ != nullptr) coordinator_->stop();
  const std::lock_guard guard(mutex_);
  return failure_ ? Result<void>(std::unexpected(*failure_)) : Result<void>();
}

void ThreadCluster::note_failure(const Error& error) {
  const std::lock_guard guard(mutex_);
  if (!failure_) failure_ = error;
}

}  // namespace atolldb
