// Loads new versions of procedure libraries into a running node, in two steps: `library.prepare`
// loads and checks a version, and `library.publish` puts it to use. So a command can first prepare
// all nodes, and changes none of them if one fails.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "shared/logging/logger.h"
#include "shared/message/control_message.h"
#include "soc/procedure/library.h"
#include "soc/procedure/registry.h"

namespace atolldb {

class LibraryReloader {
 public:
  /// Gets the names of all procedures by their ordinals, before calls of new ones may begin. One
  /// call at a time.
  using OnNames = std::function<void(std::span<const std::string>)>;

  /// REQUIRES: registry and control segment outlive this object.
  LibraryReloader(ProcedureRegistry& registry, ControlSegment& control, Logger logger,
                  OnNames on_names = {})
      : registry_(registry),
        control_(control),
        logger_(std::move(logger)),
        on_names_(std::move(on_names)) {}
  LibraryReloader(const LibraryReloader&) = delete;
  LibraryReloader& operator=(const LibraryReloader&) = delete;
  ~LibraryReloader() { stop(); }

  /// Serves `library.prepare`, `library.publish` and `library.discard` (soc/README.md). Never waits
  /// for code of a library, which runs on a thread of its own. Thread: any.
  void handle(const ControlRequest& request, const ControlReply& reply);
  /// Refuses new requests, and waits for the load function of a library that is being prepared.
  void stop();

 private:
  /// A version that is ready for use.
  struct Prepared {
    uint64_t token = 0;
    std::unique_ptr<LoadedLibrary> version;
    std::unique_ptr<ProcedureRegistry::Table> table;
  };

  Result<void> start_preparing(const ControlRequest& request, const ControlReply& reply);
  Result<Json> prepare(const std::string& path);
  Result<Json> finish(const ControlRequest& request);

  ProcedureRegistry& registry_;
  ControlSegment& control_;
  Logger logger_;
  const OnNames on_names_;
  std::mutex mutex_;
  std::thread thread_;                // guarded by mutex_
  bool is_preparing_ = false;         // guarded by mutex_
  bool has_ended_ = false;            // guarded by mutex_
  uint64_t last_token_ = 0;           // guarded by mutex_
  std::optional<Prepared> prepared_;  // guarded by mutex_
};

}  // namespace atolldb
