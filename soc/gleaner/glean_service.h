// Serves the coordinator's requests for runs of the gleaner, glean.* (soc/README.md lists them).
#pragma once

#include <memory>
#include <mutex>

#include "shared/logging/logger.h"
#include "shared/message/control_message.h"
#include "soc/gleaner/glean_run.h"

namespace atolldb {

/// One run at a time. Any thread may call any function.
class GleanService {
 public:
  GleanService(GleanPlaces places, Logger logger)
      : places_(std::move(places)), logger_(std::move(logger)) {}
  GleanService(const GleanService&) = delete;
  GleanService& operator=(const GleanService&) = delete;
  ~GleanService() { stop(); }

  /// Whether it is one of these requests.
  static bool serves(const ControlRequest& request) { return request.op.starts_with("glean."); }
  void handle(const ControlRequest& request, ControlReply reply);
  /// Gives up a run under way; refuses others from now on.
  void stop();

  /// Of all runs so far, that under way included: never less than before.
  GleanProgress total() const;
  GleanPhase phase() const;

 private:
  void prepare(const ControlRequest& request, ControlReply reply);
  void wait(const ControlRequest& request, ControlReply reply);
  void end(const ControlRequest& request, ControlReply reply);
  /// Takes it out, and counts what it has done. REQUIRES: mutex_.
  std::shared_ptr<GleanRun> take_run();
  /// The run that the request names.
  Result<std::shared_ptr<GleanRun>> run_of(const ControlRequest& request) const;

  const GleanPlaces places_;
  Logger logger_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::shared_ptr<GleanRun> run_;  // shared: a request may outlive it here
  GleanProgress before_;           // of the runs before run_
  bool is_stopped_ = false;
};

}  // namespace atolldb
