#include "ops/launcher/service_notifier.h"

#include <systemd/sd-daemon.h>

#include <algorithm>

namespace atolldb {
namespace {

/// Returns the text in one line, because a line end begins another variable of the message.
std::string in_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

void ServiceNotifier::ready(const std::string& status) const {
  if (enabled_) sd_notify(0, ("READY=1\nSTATUS=" + in_one_line(status)).c_str());
}

void ServiceNotifier::stopping() const {
  if (enabled_) sd_notify(0, "STOPPING=1\nSTATUS=stops");
}

void ServiceNotifier::status(const std::string& status) const {
  if (enabled_) sd_notify(0, ("STATUS=" + in_one_line(status)).c_str());
}

}  // namespace atolldb
