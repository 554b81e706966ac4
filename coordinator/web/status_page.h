// The status page of a cluster: a web page, and the JSON that it shows. coordinator/web/README.md
// lists the paths.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "coordinator/web/status_history.h"
#include "coordinator/web/status_server.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// A text that all clients share. It is computed at most once per `max_age`. Thread: any.
class CachedText {
 public:
  using Text = std::shared_ptr<const std::string>;

  CachedText(std::chrono::milliseconds max_age, std::function<std::string()> make)
      : max_age_(max_age), make_(std::move(make)) {}

  /// Returns a text that is not older than `max_age`. A caller waits while another one computes it.
  Text get();

 private:
  const std::chrono::milliseconds max_age_;
  const std::function<std::string()> make_;
  std::mutex mutex_;
  Text text_;  // guarded by mutex_, as is the time at which it was computed
  std::chrono::steady_clock::time_point made_at_;
};

/// Calls of the page to the coordinator. Thread: any.
struct StatusPageSources {
  std::function<nlohmann::json()> status;  // with the members `healthy` and `problems`
  std::function<ClusterCounts()> counts;
  std::function<ClusterState()> state;
};

/// Serves the page until its destruction.
class StatusPage {
 public:
  /// The status is computed at most once in this time, for all clients together.
  static constexpr std::chrono::milliseconds kMaxAge{200};

  /// Starts the server and the history. Returns code resources if the server cannot listen.
  /// REQUIRES: what `sources` uses outlives the page. `config.enabled` is true.
  static Result<std::unique_ptr<StatusPage>> start(const Config::StatusPage& config,
                                                   StatusPageSources sources);
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;
  ~StatusPage() = default;

  std::string url() const { return server_->url(); }

 private:
  explicit StatusPage(StatusPageSources sources);
  HttpAnswer get(std::string_view path, std::string_view query);
  HttpAnswer readiness() const;
  /// Adds a sample to the history in each period, until the page ends.
  void sample(const std::stop_token& stop);

  const StatusPageSources sources_;
  StatusHistory history_;
  CachedText status_;
  CachedText full_history_;
  std::jthread sampler_;
  std::unique_ptr<StatusServer> server_;  // destroyed first: its threads use all other members
};

/// Returns the text of status_page.html. coordinator/CMakeLists.txt embeds it into the program.
std::string_view status_page_html();

}  // namespace atolldb
