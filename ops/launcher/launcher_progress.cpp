// Progress of a start-up: a note in the run folder, and lines for the waiting command.
#include <unistd.h>

#include <array>
#include <utility>

#include "ops/launcher/launcher.h"
#include "shared/process/run_paths.h"

namespace atolldb {
namespace {

constexpr std::chrono::milliseconds kReportPause{500};

struct StepName {
  std::string_view awaited;
  const char* words;
};
constexpr std::array<StepName, 4> kSteps = {{{"prepared", "preparing memory and files"},
                                             {"attached", "mapping memory"},
                                             {"running", "starting threads"},
                                             {"opened", kOpeningStep}}};

}  // namespace

void Launcher::begin_progress() {
  start_began_ = std::chrono::steady_clock::now();
  progress_.begin(start_began_);
  progress_reported_at_ = {};
  note_step();
}

void Launcher::note_step() {
  for (const StepName& step : kSteps) {
    if (step.awaited == awaited_) {
      progress_.note("starting", step.words, 0, 0, std::chrono::steady_clock::now());
    }
  }
  report_progress();
}

void Launcher::report_progress() {
  const auto now = std::chrono::steady_clock::now();
  const bool is_new = progress_.step() != progress_reported_step_;
  if (phase_ != Phase::starting || !folder_ || folder_is_gone_) return;
  if (!is_new && now - progress_reported_at_ < kReportPause) return;
  progress_reported_at_ = now;
  progress_reported_step_ = progress_.step();
  const StartReport report = progress_.report(now);
  const auto written = RunFolder::write_file(start_path(config_), to_json_line(report) + "\n");
  if (!written && is_new) logger_->warn("{}", written.error().message);
  if (options_.on_progress) options_.on_progress(report);
  const auto percent = report.percent();
  notifier_.status(report.state + ": " + report.step +
                   (percent ? ", " + std::to_string(*percent) + " %" : ""));
}

void Launcher::end_progress() {
  unlink(start_path(config_).c_str());
  progress_reported_step_.clear();
}

}  // namespace atolldb
