// Interrupts and progress of `atoll backup` and `atoll restore`.
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <memory>

#include "ops/cli/backup_data.h"
#include "ops/cli/terminal.h"
#include "shared/file/directory_table.h"

namespace atolldb::cli {
namespace {

/// Lock-free, so that a signal handler may store it.
std::atomic<bool> has_interrupt{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void note_interrupt(int) {
  // Relaxed: the flag carries no other data.
  has_interrupt.store(true, std::memory_order_relaxed);
}

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

bool was_interrupted() { return has_interrupt.load(std::memory_order_relaxed); }

OnBackupProgress progress_line() {
  const auto line = std::make_shared<ProgressLine>();
  return [line](const BackupProgress& progress) -> Result<void> {
    if (was_interrupted()) {
      return make_error(ExitCode::failed, progress.step + ": interrupted by a signal");
    }
    if (line->is_due()) {
      line->show(fmt::format("{}: {} read, {} files done", progress.step,
                             format_bytes(progress.read_bytes), format_count(progress.files)));
    }
    return {};
  };
}

}  // namespace atolldb::cli
