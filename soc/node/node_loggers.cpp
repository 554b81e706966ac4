// The node's loggers: which logger writes the log of which worker, and in which directory.
#include <algorithm>
#include <utility>

#include "engine/log/epoch_logger.h"
#include "engine/log/log_writer.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "soc/node/node.h"
#include "soc/node/node_segments.h"

namespace atolldb {

void Node::open_log_files() {
  CHECK(files_ == nullptr);
  const uint32_t count = view_.shared[node_]->logger_count;
  if (count == 0) return;
  const auto warn = [log = logger_](const std::string& text) { log->warn("{}", text); };
  files_ = make_file_system(file_system_settings(config_.durability, warn, &io_watch_));
  for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
    // All epochs before start_epoch count as durable, because this incarnation has logged nothing
    // yet. Release, as in the logger's own stores.
    view_.shared[node_]->loggers[ordinal].durable_epoch.store(view_.control->start_epoch - 1,
                                                              std::memory_order_release);
  }
}

/// Serves log.begin. The coordinator sends this request after the recovery (R54), and then lists
/// the loggers in the savepoint (R28).
Result<Json> Node::begin_logs(const ControlRequest& request) {
  // Acquire pairs with the release of `start`: the objects that the loggers need exist.
  if (state() != NodeState::running || files_ == nullptr) {
    return make_error(ExitCode::not_running,
                      request.op + ": node " + std::to_string(node_) +
                          ": is not running, or keeps no log: durability.mode is \"off\"");
  }
  ATOLL_TRY(start_loggers());
  return Json::object();
}

Result<void> Node::start_loggers() {
  const std::lock_guard guard(loggers_mutex_);
  if (!loggers_.empty()) return {};  // the request was repeated, because another node had no room
  const uint32_t count = view_.shared[node_]->logger_count;
  ATOLL_ASSIGN(std::vector<LogWriter> writers, make_log_writers(count));
  CHECK(count > 0 && writers.size() == count);
  for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
    LoggerThread::Settings settings;
    settings.view = &view_;
    settings.node = node_;
    settings.ordinal = ordinal;
    settings.metrics = &metrics_->loggers[ordinal];
    settings.on_failure = on_failure_;
    loggers_.push_back(std::make_unique<LoggerThread>(
        std::move(settings),
        EpochLogger(view_, std::move(writers[ordinal]), logs_of(ordinal, count)), logger_));
  }
  for (const auto& logger : loggers_) logger->start();
  logger_->info("node {} logs with {} loggers, {}", node_, count, files_->describe());
  return {};
}

Result<std::vector<LogWriter>> Node::make_log_writers(uint32_t count) {
  std::vector<LogWriter> writers;
  while (writers.size() < count) {
    const auto ordinal = static_cast<uint32_t>(writers.size());
    Result<LogWriter> writer = LogWriter::create(*files_, log_settings(ordinal));
    if (!writer) {
      writers.clear();
      remove_first_files(ordinal);
      return std::unexpected(writer.error());
    }
    writers.push_back(*std::move(writer));
  }
  return writers;
}

/// Removes the files that the first `count` writers have made.
void Node::remove_first_files(uint32_t count) {
  for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
    const LogWriterSettings settings = log_settings(ordinal);
    const std::string path =
        path_in(node_directory(settings.directory, settings.node),
                to_string(LogFileName{settings.incarnation, settings.logger, 0}));
    const auto exists = files_->exists(path);
    if (!exists || !*exists) continue;
    if (const auto removed = files_->remove(path); !removed) {
      logger_->warn("{}", removed.error().message);
    }
  }
}

LogWriterSettings Node::log_settings(uint32_t ordinal) const {
  CHECK(ordinal < view_.shared[node_]->logger_count);
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
  CHECK(logger < logger_count);
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
