// Interrupts and progress of `atoll backup` and `atoll restore`.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "ops/cli/backup_data.h"
#include "ops/cli/terminal.h"
#include "shared/file/directory_table.h"

namespace atolldb::cli {
namespace {

/// Lock-free, so that a signal handler may store it.
std::atomic<bool> is_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void note_interrupt(int) {
  // Relaxed: the flag carries no other data.
  is_interrupted.store(true, std::memory_order_relaxed);
}

/// Erases its line at its end.
class BackupLine {
 public:
  BackupLine() : is_shown_(isatty(STDERR_FILENO) == 1) {}
  ~BackupLine() {
    if (is_open_) std::fprintf(stderr, "\r\033[K");
  }
  BackupLine(const BackupLine&) = delete;
  BackupLine& operator=(const BackupLine&) = delete;

  void show(const BackupProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (!is_shown_ || now - shown_at_ < kPause) return;
    shown_at_ = now;
    is_open_ = true;
    std::fprintf(stderr, "\r\033[K%s: %s read, %s files done", printable(progress.step).c_str(),
                 format_bytes(progress.read_bytes).c_str(), format_count(progress.files).c_str());
    std::fflush(stderr);
  }

 private:
  static constexpr std::chrono::milliseconds kPause{1'000};
  const bool is_shown_;
  bool is_open_ = false;
  std::chrono::steady_clock::time_point shown_at_ = std::chrono::steady_clock::now();
};

}  // namespace

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).string();
  return canonical_path(error ? path : absolute);
}

void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

bool was_interrupted() { return is_interrupted.load(std::memory_order_relaxed); }

OnBackupProgress progress_line() {
  const auto line = std::make_shared<BackupLine>();
  return [line](const BackupProgress& progress) -> Result<void> {
    if (was_interrupted()) {
      return make_error(ExitCode::failed, progress.step + ": interrupted by a signal");
    }
    line->show(progress);
    return {};
  };
}

}  // namespace atolldb::cli
