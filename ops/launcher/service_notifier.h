// Tells a service manager (systemd, units with Type=notify) how far the start or the stop is.
#pragma once

#include <string>

namespace atolldb {

/// Sends nothing if `enabled` is false or no service manager has set NOTIFY_SOCKET. A message that
/// cannot be sent is dropped, because a cluster does not depend on its supervisor.
class ServiceNotifier {
 public:
  explicit ServiceNotifier(bool enabled) : enabled_(enabled) {}

  /// The cluster serves requests. Sent again after a restart.
  void ready(const std::string& status) const;
  /// The cluster stops on request.
  void stopping() const;
  /// `status` is shown by `systemctl status`.
  void status(const std::string& status) const;

 private:
  bool enabled_;
};

}  // namespace atolldb
