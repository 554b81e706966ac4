#include "shared/file/gradual_removal.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <utility>

#include "shared/base/check.h"

namespace atolldb {

GradualRemoval::~GradualRemoval() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

int GradualRemoval::remove(const std::string& path) {
  UniqueFd file = open_large(path);
  if (calls_.unlink(path.c_str()) != 0) return errno;
  if (!file.is_open()) return 0;
  // A file with another name, for example in a backup, must keep its blocks. A file without a name
  // cannot get one again.
  struct stat status;
  if (::fstat(file.get(), &status) == 0 && status.st_nlink == 0) hand_over(std::move(file));
  return 0;
}

/// Returns an empty descriptor if the file is small or cannot be opened. Its removal is then left
/// to the kernel alone.
UniqueFd GradualRemoval::open_large(const std::string& path) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  constexpr uint64_t kUnit = 512;  // of st_blocks, on every file system
  if (static_cast<uint64_t>(status.st_blocks) * kUnit <= kStepBytes) return {};
  // O_NOFOLLOW and O_NONBLOCK: the path may have got another file meanwhile.
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  return UniqueFd(std::max(-1, calls_.open(path.c_str(), kFlags, 0)));
}

void GradualRemoval::hand_over(UniqueFd file) {
  const std::lock_guard lock(mutex_);
  CHECK(!is_stopping_);
  if (files_.size() + in_use_.size() >= kMaxFiles) return;
  DCHECK(file.is_open());
  in_use_.push_back({std::move(file), Clock::now()});
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

void GradualRemoval::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !is_busy_; });
  std::deque<Removed> files = std::exchange(files_, {});
  std::ranges::move(std::exchange(in_use_, {}), std::back_inserter(files));
  // Keeps the mutex, so that the thread and other removals wait. The disk is full now.
  for (Removed& removed : files) {
    const Step step = free_end(removed.file.get(), UINT64_MAX);
    if (step == Step::in_use) in_use_.push_back(std::move(removed));
  }
  changed_.notify_all();
}

void GradualRemoval::run() {
  std::unique_lock lock(mutex_);
  const auto is_stopping = [&] { return is_stopping_; };
  while (!is_stopping_) {
    if (!files_.empty()) {
      Removed removed = std::move(files_.front());
      files_.pop_front();
      is_busy_ = true;
      lock.unlock();
      const auto begin = Clock::now();
      const bool is_new = begin < removed.at + kRetryPause;
      const Step step = is_new ? Step::in_use : free_end(removed.file.get(), kStepBytes);
      if (step == Step::done) removed.file.reset();
      const Clock::duration took = Clock::now() - begin;
      lock.lock();
      is_busy_ = false;
      if (step == Step::more) {
        files_.push_front(std::move(removed));
      } else if (step == Step::in_use) {
        in_use_.push_back(std::move(removed));
      }
      changed_.notify_all();
      changed_.wait_for(lock, std::max<Clock::duration>(took, kShortestPause), is_stopping);
    } else if (in_use_.empty()) {
      changed_.wait(lock, [&] { return is_stopping_ || !files_.empty() || !in_use_.empty(); });
    } else {
      changed_.wait_for(lock, kRetryPause, is_stopping);
      std::ranges::move(std::exchange(in_use_, {}), std::back_inserter(files_));
    }
  }
}

GradualRemoval::Step GradualRemoval::free_end(int file, uint64_t bytes) {
  struct stat status;
  if (::fstat(file, &status) != 0 || status.st_nlink != 0) return Step::done;
  if (calls_.check_sole_user(file) != 0) return errno == EAGAIN ? Step::in_use : Step::done;
  const uint64_t size = static_cast<uint64_t>(status.st_size);
  const uint64_t rest = size - std::min(size, bytes);
  const bool is_cut = uninterrupted([&] { return calls_.ftruncate(file, rest); }) == 0;
  steps_.fetch_add(1, std::memory_order_relaxed);
  return is_cut && rest != 0 ? Step::more : Step::done;
}

}  // namespace atolldb
