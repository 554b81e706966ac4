#include "shared/file/io_watch.h"

#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns the slot at which this thread starts its search for a free slot (modulo kMaxCalls).
/// Threads start at different slots, so the first probe mostly succeeds.
uint32_t first_slot() {
  static std::atomic<uint32_t> threads{0};
  thread_local const uint32_t own = threads.fetch_add(1, std::memory_order_relaxed);
  return own;
}

/// Registers a path during one call.
class CallPath {
 public:
  CallPath(IoWatch& watch, const std::string& path)
      : watch_(watch), number_(watch.add_path(path)) {}
  CallPath(const CallPath&) = delete;
  CallPath& operator=(const CallPath&) = delete;
  ~CallPath() { watch_.remove_path(number_); }
  uint64_t number() const { return number_; }

 private:
  IoWatch& watch_;
  uint64_t number_;
};

template <typename Call>
auto noted(IoWatch& watch, IoOperation operation, const std::string& path, Call call) {
  const CallPath place(watch, path);
  const IoWatch::Note note(watch, operation, place.number());
  return call();
}

class WatchedFile : public ForwardingFile {
 public:
  WatchedFile(std::unique_ptr<File> below, IoWatch& watch)
      : ForwardingFile(std::move(below)), path_(watch, path()), watch_(watch) {}

  Result<void> write(uint64_t offset, std::span<const std::span<const std::byte>> slices) override {
    const IoWatch::Note note(watch_, IoOperation::write, path_.number());
    return below().write(offset, slices);
  }
  Result<void> grow(uint64_t bytes) override {
    const IoWatch::Note note(watch_, IoOperation::grow, path_.number());
    return below().grow(bytes);
  }
  Result<void> sync() override {
    const IoWatch::Note note(watch_, IoOperation::sync, path_.number());
    return below().sync();
  }
  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    const IoWatch::Note note(watch_, IoOperation::read, path_.number());
    return below().read(offset, into);
  }
  RawRead begin_raw_read() const override {
    RawRead raw = below().begin_raw_read();
    CHECK(raw.note == nullptr);  // the file below is not watched
    if (raw.descriptor >= 0) raw.note = watch_.begin(IoOperation::read, path_.number());
    return raw;
  }
  void end_raw_read(const RawRead& raw) const override { IoWatch::end(raw.note); }
  Result<uint64_t> next_data(uint64_t offset) const override {
    // The file system may have to read the file's list of blocks from the device.
    const IoWatch::Note note(watch_, IoOperation::read, path_.number());
    return below().next_data(offset);
  }

 private:
  CallPath path_;
  IoWatch& watch_;
};

}  // namespace

const char* to_string(IoOperation operation) {
  constexpr const char* kNames[] = {"none", "read",   "write",          "growth",     "sync",
                                    "open", "create", "directory sync", "name change"};
  static_assert(std::size(kNames) == kIoOperationCount);
  const auto index = static_cast<uint32_t>(operation);
  return index < kIoOperationCount ? kNames[index] : "unknown";
}

uint64_t IoWatch::add_path(const std::string& path) {
  const std::lock_guard guard(mutex_);
  const bool is_new = paths_.emplace(++last_path_, path).second;
  CHECK(is_new);
  return last_path_;
}

void IoWatch::remove_path(uint64_t number) {
  const std::lock_guard guard(mutex_);
  const size_t erased = paths_.erase(number);
  CHECK(erased == 1);
}

std::optional<PendingIo> IoWatch::oldest() const {
  int64_t since = 0;
  uint32_t operation = 0;
  uint64_t path = 0;
  for (const Slot& slot : slots_) {
    // Acquire pairs with the release in `begin`: operation and path are written.
    const int64_t begun = slot.since_ns.load(std::memory_order_acquire);
    if (begun <= 0 || (since != 0 && begun >= since)) continue;
    since = begun;
    operation = slot.operation.load(std::memory_order_relaxed);
    path = slot.path.load(std::memory_order_relaxed);
  }
  if (since == 0) return std::nullopt;
  CHECK(operation < kIoOperationCount);
  CHECK(since <= now_ns());
  PendingIo pending = {static_cast<IoOperation>(operation), "a closed file",
                       std::chrono::nanoseconds(now_ns() - since)};
  const std::lock_guard guard(mutex_);
  if (const auto found = paths_.find(path); found != paths_.end()) pending.path = found->second;
  return pending;
}

std::atomic<int64_t>* IoWatch::begin(IoOperation operation, uint64_t path) {
  CHECK(operation > IoOperation::none && static_cast<uint32_t>(operation) < kIoOperationCount);
  CHECK(path != 0);
  const uint32_t first = first_slot();
  for (uint32_t i = 0; i < kMaxCalls; ++i) {
    Slot& slot = slots_[(first + i) % kMaxCalls];
    int64_t free = kFree;
    // Acquire pairs with the release in `end` of the slot's previous call, whose words this call
    // overwrites.
    if (!slot.since_ns.compare_exchange_strong(free, kTaken, std::memory_order_acquire,
                                               std::memory_order_relaxed)) {
      continue;
    }
    slot.operation.store(static_cast<uint32_t>(operation), std::memory_order_relaxed);
    slot.path.store(path, std::memory_order_relaxed);
    // Release pairs with the acquire in `oldest`.
    slot.since_ns.store(now_ns(), std::memory_order_release);
    return &slot.since_ns;
  }
  return nullptr;
}

void IoWatch::end(std::atomic<int64_t>* entry) {
  if (entry == nullptr) return;
  CHECK(entry->load(std::memory_order_relaxed) > 0);
  // Release pairs with the acquire of the next `begin` that takes this slot.
  entry->store(kFree, std::memory_order_release);
}

Result<std::unique_ptr<File>> WatchedFileSystem::create(const std::string& path, uint64_t bytes) {
  ATOLL_ASSIGN(auto file, noted(watch_, IoOperation::create, path,
                                [&] { return below().create(path, bytes); }));
  return std::make_unique<WatchedFile>(std::move(file), watch_);
}

Result<std::unique_ptr<File>> WatchedFileSystem::open(const std::string& path) {
  ATOLL_ASSIGN(auto file,
               noted(watch_, IoOperation::open, path, [&] { return below().open(path); }));
  return std::make_unique<WatchedFile>(std::move(file), watch_);
}

Result<std::unique_ptr<File>> WatchedFileSystem::open_for_reading(const std::string& path) {
  ATOLL_ASSIGN(auto file, noted(watch_, IoOperation::open, path,
                                [&] { return below().open_for_reading(path); }));
  return std::make_unique<WatchedFile>(std::move(file), watch_);
}

Result<void> WatchedFileSystem::sync_directory(const std::string& path) {
  return noted(watch_, IoOperation::sync_directory, path,
               [&] { return below().sync_directory(path); });
}

Result<void> WatchedFileSystem::make_directory(const std::string& path) {
  return noted(watch_, IoOperation::other, path, [&] { return below().make_directory(path); });
}

Result<std::vector<std::string>> WatchedFileSystem::list(const std::string& path) {
  return noted(watch_, IoOperation::other, path, [&] { return below().list(path); });
}

Result<bool> WatchedFileSystem::exists(const std::string& path) {
  return noted(watch_, IoOperation::other, path, [&] { return below().exists(path); });
}

Result<void> WatchedFileSystem::rename(const std::string& from, const std::string& to) {
  return noted(watch_, IoOperation::other, from, [&] { return below().rename(from, to); });
}

Result<void> WatchedFileSystem::remove(const std::string& path) {
  return noted(watch_, IoOperation::other, path, [&] { return below().remove(path); });
}

Result<bool> WatchedFileSystem::link(const std::string& from, const std::string& to) {
  return noted(watch_, IoOperation::other, to, [&] { return below().link(from, to); });
}

Result<void> WatchedFileSystem::remove_directory(const std::string& path) {
  return noted(watch_, IoOperation::other, path, [&] { return below().remove_directory(path); });
}

Result<void> WatchedFileSystem::forget_cached(const std::string& path) {
  return noted(watch_, IoOperation::sync, path, [&] { return below().forget_cached(path); });
}

}  // namespace atolldb
