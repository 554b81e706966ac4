// The node's loggers: which worker's log goes where (design: durability).
#include <algorithm>
#include <utility>

#include "engine/log/epoch_logger.h"
#include "engine/log/log_writer.h"
#include "soc/node/node.h"
#include "soc/node/node_segments.h"

namespace atolldb {

Result<void> Node::start_loggers() {
  const uint32_t count = view_.shared[node_]->logger_count;
  if (count == 0) return {};
  const auto warn = [log = logger_](const std::string& text) { log->warn("{}", text); };
  files_ = make_file_system(file_system_settings(config_.durability, warn));
  for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
    Result<LogWriter> writer = LogWriter::create(*files_, log_settings(ordinal));
    if (!writer) return std::unexpected(writer.error());
    LoggerThread::Settings settings;
    settings.view = &view_;
    settings.node = node_;
    settings.ordinal = ordinal;
    settings.metrics = &metrics_->loggers[ordinal];
    settings.on_failure = on_failure_;
    loggers_.push_back(std::make_unique<LoggerThread>(
        std::move(settings), EpochLogger(view_, *std::move(writer), logs_of(ordinal, count)),
        logger_));
  }
  for (const auto& logger : loggers_) logger->start();
  logger_->info("node {} logs with {} loggers, {}", node_, count, files_->describe());
  return {};
}

LogWriterSettings Node::log_settings(uint32_t ordinal) const {
  const ControlSegment& control = *view_.control;
  LogWriterSettings settings;
  settings.directory = log_directory(config_, node_, ordinal);
  settings.node = static_cast<uint16_t>(node_);
  settings.logger = static_cast<uint16_t>(ordinal);
  settings.incarnation = control.incarnation;
  settings.start_epoch = control.start_epoch;
  std::ranges::copy(control.data_uuid, settings.cluster_uuid.begin());
  settings.file_bytes = config_.durability.log_file_size;
  return settings;
}

/// Logger l of n serves the workers l, l + n, ...
std::vector<EpochLogger::Source> Node::logs_of(uint32_t logger, uint32_t logger_count) const {
  const TransactionLimits limits = transaction_limits(config_);
  std::vector<EpochLogger::Source> logs;
  for (uint32_t worker = logger; worker < config_.nodes[node_].workers; worker += logger_count) {
    std::byte* local = local_ + local_offset(limits, worker);
    logs.push_back({&view_.shared[node_]->slot(worker),
                    WorkerLogRing::at(local + limits.log_offset(), limits.log_buffer)});
  }
  return logs;
}

}  // namespace atolldb
