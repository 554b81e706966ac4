// Test cluster with one logger per node, over files in memory. Epochs and loggers advance only when
// the test calls them.
#pragma once

#include <memory>
#include <vector>

#include "engine/log/epoch_logger.h"
#include "tests/engine/log/log_content.h"
#include "tests/engine/transaction/anomaly_stage.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

inline TestClusterOptions logged_options(uint64_t log_buffer = uint64_t{1} << 20) {
  TestClusterOptions options;
  options.clock = false;
  options.limits.log_buffer = log_buffer;
  options.limits.is_logged = true;
  return options;
}

class LoggedCluster {
 public:
  LoggedCluster(uint32_t nodes, uint32_t workers, const TestClusterOptions& options,
                uint64_t file_bytes = uint64_t{1} << 20)
      : limits_(options.limits), cluster_(nodes, workers, options) {
    const uint64_t start = epoch();
    for (uint32_t node = 0; node < nodes; ++node) {
      std::vector<EpochLogger::Source> sources;
      for (uint32_t ordinal = 0; ordinal < workers; ++ordinal) {
        sources.push_back(
            {&cluster_.view().shared[node]->slot(ordinal), ring_of(node * workers + ordinal)});
      }
      LogWriterSettings settings;
      settings.directory = "/data";
      settings.node = static_cast<uint16_t>(node);
      settings.incarnation = 1;
      settings.start_epoch = start;
      settings.file_bytes = file_bytes;
      Result<LogWriter> writer = LogWriter::create(files_, settings);
      CHECK(writer.has_value());
      loggers_.push_back(
          std::make_unique<EpochLogger>(cluster_.view(), *std::move(writer), std::move(sources)));
    }
    cluster_.view().control->epochs.durable.store(start - 1, std::memory_order_relaxed);
  }

  TestCluster& cluster() { return cluster_; }
  MemoryFileSystem& files() { return files_; }
  EpochLogger& logger(uint32_t node) { return *loggers_[node]; }
  TestWorker& worker(uint32_t index) { return cluster_.worker(index); }
  WorkerLogControl& log_control(uint32_t worker) { return *ring_of(worker).control; }
  uint64_t epoch() {
    return cluster_.view().control->epochs.current.load(std::memory_order_seq_cst);
  }
  void tick() { cluster_.view().control->epochs.current.fetch_add(1, std::memory_order_seq_cst); }
  /// Makes every logger close `epoch`, so that it is durable.
  void close(uint64_t epoch) {
    for (const auto& logger : loggers_) {
      if (logger->durable_epoch() < epoch) CHECK(logger->close(epoch).has_value());
    }
    cluster_.view().control->epochs.durable.store(epoch, std::memory_order_release);
    cluster_.view().control->epochs.settled.store(epoch, std::memory_order_release);
  }

 private:
  WorkerLogRing ring_of(uint32_t worker) {
    return WorkerLogRing::at(cluster_.worker(worker).local.get() + limits_.log_offset(),
                             limits_.log_buffer);
  }

  TransactionLimits limits_;
  TestCluster cluster_;
  MemoryFileSystem files_;
  std::vector<std::unique_ptr<EpochLogger>> loggers_;
};

}  // namespace atolldb::test
