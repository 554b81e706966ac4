#include "ops/launcher/start_progress.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

namespace atolldb {
namespace {

/// Minimum time for a rate. A rate over less time is not meaningful.
constexpr std::chrono::milliseconds kLeastRateTime{200};

}  // namespace

std::optional<uint32_t> StartReport::percent() const {
  if (total_bytes == 0) return std::nullopt;
  const double share = static_cast<double>(done_bytes) / static_cast<double>(total_bytes);
  return static_cast<uint32_t>(std::clamp(100 * share, 0.0, 100.0));
}

std::string to_json_line(const StartReport& report) {
  nlohmann::json json = {{"schema_version", 1},
                         {"state", report.state},
                         {"step", report.step},
                         {"done_bytes", report.done_bytes},
                         {"total_bytes", report.total_bytes},
                         {"percent", nullptr},
                         {"bytes_per_second", report.bytes_per_second},
                         {"eta_seconds", nullptr},
                         {"elapsed_seconds", report.elapsed_seconds}};
  if (const auto percent = report.percent()) json["percent"] = *percent;
  if (report.eta_seconds) json["eta_seconds"] = *report.eta_seconds;
  return json.dump();
}

std::optional<StartReport> parse_start_report(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  for (const char* key : {"state", "step"}) {
    if (!json.contains(key) || !json[key].is_string()) return std::nullopt;
  }
  const auto number = [&](const char* key) -> std::optional<uint64_t> {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
    return found->get<uint64_t>();
  };
  StartReport report;
  report.state = json["state"].get<std::string>();
  report.step = json["step"].get<std::string>();
  report.done_bytes = number("done_bytes").value_or(0);
  report.total_bytes = number("total_bytes").value_or(0);
  report.bytes_per_second = number("bytes_per_second").value_or(0);
  report.eta_seconds = number("eta_seconds");
  report.elapsed_seconds = number("elapsed_seconds").value_or(0);
  return report;
}

void StartProgress::begin(Clock::time_point now) {
  report_ = {};
  began_at_ = step_began_at_ = now;
  step_began_with_ = 0;
}

void StartProgress::note(std::string state, std::string step, uint64_t done_bytes,
                         uint64_t total_bytes, Clock::time_point now) {
  const bool is_new = state != report_.state || step != report_.step;
  if (is_new) {
    step_began_at_ = now;
    step_began_with_ = done_bytes;
  }
  report_.state = std::move(state);
  report_.step = std::move(step);
  report_.done_bytes = done_bytes;
  report_.total_bytes = total_bytes;
}

bool StartProgress::note_line(const std::string& line, Clock::time_point now) {
  std::istringstream words(line);
  std::string state;
  std::string step;
  uint64_t done = 0;
  uint64_t total = 0;
  if (!(words >> state >> done >> total) || !std::getline(words >> std::ws, step)) return false;
  note(std::move(state), std::move(step), done, total, now);
  return true;
}

StartReport StartProgress::report(Clock::time_point now) const {
  StartReport report = report_;
  report.elapsed_seconds = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(now - began_at_).count());
  const auto time = now - step_began_at_;
  const uint64_t bytes = report.done_bytes - std::min(report.done_bytes, step_began_with_);
  if (time < kLeastRateTime || bytes == 0) return report;
  const double rate = static_cast<double>(bytes) / std::chrono::duration<double>(time).count();
  report.bytes_per_second = static_cast<uint64_t>(rate);
  if (report.total_bytes != 0) {
    const uint64_t left = report.total_bytes - std::min(report.total_bytes, report.done_bytes);
    report.eta_seconds = static_cast<uint64_t>(static_cast<double>(left) / rate + 0.5);
  }
  return report;
}

}  // namespace atolldb
