#include "coordinator/epoch/acknowledgement_times.h"

#include <algorithm>
#include <utility>

#include "shared/base/check.h"

namespace atolldb {

void SlowestEpochs::add(const EpochTrace& trace) {
  const std::lock_guard guard(mutex_);
  CHECK(trace.epoch > last_epoch_);
  last_epoch_ = trace.epoch;
  while (!slowest_.empty() && slowest_.back().total_ns <= trace.total_ns) slowest_.pop_back();
  if (slowest_.size() == kMaxEpochs) slowest_.erase(slowest_.begin());
  slowest_.push_back(trace);
}

std::optional<EpochTrace> SlowestEpochs::since(uint64_t epoch) const {
  const std::lock_guard guard(mutex_);
  const auto found = std::ranges::lower_bound(slowest_, epoch, {}, &EpochTrace::epoch);
  if (found == slowest_.end()) return std::nullopt;
  return *found;
}

AcknowledgementTimes::AcknowledgementTimes(const EpochBlock& epochs, std::vector<NodeShared*> nodes)
    : epochs_(epochs), nodes_(std::move(nodes)), seen_(nodes_.size()), metrics_(nodes_.size()) {
  for (size_t node = 0; node < nodes_.size(); ++node) {
    CHECK(nodes_[node]->logger_count <= kMaxLoggersPerNode);
    for (uint32_t logger = 0; logger < nodes_[node]->logger_count; ++logger) {
      seen_[node][logger] =
          nodes_[node]->loggers[logger].durable_epoch.load(std::memory_order_acquire);
    }
  }
}

void AcknowledgementTimes::record_markers(uint64_t seen_ns) {
  for (size_t node = 0; node < nodes_.size(); ++node) {
    for (uint32_t logger = 0; logger < nodes_[node]->logger_count; ++logger) {
      const LoggerSlot& slot = nodes_[node]->loggers[logger];
      // Acquire pairs with the logger's release: `synced_at_ns` below is of this marker, or of a
      // later one.
      const uint64_t epoch = slot.durable_epoch.load(std::memory_order_acquire);
      const uint64_t synced_at_ns = slot.synced_at_ns.load(std::memory_order_relaxed);
      // If the time is 0, the logger has synced no batch yet, and the epoch is its initial value.
      if (std::exchange(seen_[node][logger], epoch) == epoch || synced_at_ns == 0) continue;
      metrics_.marker_ns[node].add(ns_since(synced_at_ns, seen_ns));
    }
  }
}

EpochTrace AcknowledgementTimes::trace_of_last_logger(uint64_t seen_ns,
                                                      uint64_t published_ns) const {
  EpochTrace trace;
  const LoggerSlot* last = nullptr;
  uint64_t last_synced_ns = 0;
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    for (uint32_t logger = 0; logger < nodes_[node]->logger_count; ++logger) {
      const LoggerSlot& slot = nodes_[node]->loggers[logger];
      const uint64_t synced_ns = slot.synced_at_ns.load(std::memory_order_relaxed);
      if (last != nullptr && synced_ns <= last_synced_ns) continue;
      last = &slot;
      last_synced_ns = synced_ns;
      trace.node = node;
      trace.logger = logger;
    }
  }
  CHECK(last != nullptr);  // only a logger makes an epoch durable
  for (uint32_t stage = 0; stage < kLoggerStageCount; ++stage) {
    trace.stage_ns[stage] = last->stage_ns[stage].load(std::memory_order_relaxed);
  }
  trace.stage_ns[static_cast<size_t>(EpochStage::marker)] = ns_since(last_synced_ns, seen_ns);
  trace.stage_ns[static_cast<size_t>(EpochStage::publish)] = ns_since(seen_ns, published_ns);
  trace.published_at_ns = published_ns;
  return trace;
}

void AcknowledgementTimes::record_durable(uint64_t done, uint64_t durable, uint64_t seen_ns,
                                          uint64_t published_ns) {
  if (done >= durable) return;  // a closing marker: these epochs have no commits
  metrics_.publish_ns.add(ns_since(seen_ns, published_ns));
  // Skips epochs whose end the clock does not keep any more.
  const uint64_t first = std::max(done + 1, durable - std::min(durable, kEpochEnds - 1));
  for (uint64_t epoch = first; epoch <= durable; ++epoch) {
    const uint64_t ended_ns = epoch_end_ns(epochs_, epoch);
    if (ended_ns == 0) continue;
    const uint64_t total_ns = ns_since(ended_ns, published_ns);
    metrics_.total_ns.add(total_ns);
    if (epoch != first) continue;  // the first epoch has waited longest
    EpochTrace trace = trace_of_last_logger(seen_ns, published_ns);
    trace.epoch = epoch;
    trace.total_ns = total_ns;
    slowest_.add(trace);
  }
}

}  // namespace atolldb
