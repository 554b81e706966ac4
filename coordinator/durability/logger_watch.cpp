#include "coordinator/durability/logger_watch.h"

#include <algorithm>

#include "shared/base/check.h"

namespace atolldb {

LoggerWatch::LoggerWatch(const std::vector<NodeShared*>& nodes,
                         const std::vector<const MetricsSegment*>& metrics)
    : nodes_(nodes), metrics_(metrics) {
  CHECK(!nodes_.empty() && nodes_.size() == metrics_.size());
}

std::vector<uint64_t> LoggerWatch::bytes_by_node() const {
  std::vector<uint64_t> written(metrics_.size(), 0);
  for (size_t node = 0; node < metrics_.size(); ++node) {
    for (uint32_t logger = 0; logger < nodes_[node]->logger_count; ++logger) {
      written[node] += metrics_[node]->loggers[logger].written_bytes.get();
    }
  }
  return written;
}

uint64_t LoggerWatch::most_bytes() const { return std::ranges::max(bytes_by_node()); }

bool LoggerWatch::lacks_files() const {
  for (size_t node = 0; node < metrics_.size(); ++node) {
    for (uint32_t logger = 0; logger < nodes_[node]->logger_count; ++logger) {
      const LoggerMetrics& metrics = metrics_[node]->loggers[logger];
      // Relaxed: a metric.
      if (metrics.lacks_next_file.load(std::memory_order_relaxed) != 0) return true;
    }
  }
  return false;
}

}  // namespace atolldb
