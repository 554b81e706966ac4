#include "shared/file/batch_reader.h"

#include <liburing.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "shared/base/check.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
namespace {

/// A read in progress.
struct Request {
  const File* file = nullptr;
  uint64_t offset = 0;
  std::span<std::byte> into;
  uint64_t tag = 0;
  File::RawRead raw;  // used with io_uring only
};

/// Preallocated list of numbers, last in first out.
class NumberStack {
 public:
  explicit NumberStack(uint32_t capacity) { numbers_.reserve(capacity); }
  bool is_empty() const { return numbers_.empty(); }
  uint32_t size() const { return static_cast<uint32_t>(numbers_.size()); }
  void push(uint32_t number) {
    CHECK(numbers_.size() < numbers_.capacity());
    numbers_.push_back(number);
  }
  uint32_t pop() {
    CHECK(!numbers_.empty());
    const uint32_t number = numbers_.back();
    numbers_.pop_back();
    return number;
  }

 private:
  std::vector<uint32_t> numbers_;
};

/// Reads through io_uring. File::read repeats a read that failed, or that returned fewer bytes at
/// the end of a file. It also reads files that have no descriptor for io_uring.
class RingReader final : public BatchReader {
 public:
  /// Returns null if the kernel refuses io_uring.
  static std::unique_ptr<RingReader> create(uint32_t depth) {
    std::unique_ptr<RingReader> reader(new RingReader(depth));
    // The kernel allocates its memory here. Later calls only use it.
    if (io_uring_queue_init(depth, &reader->ring_, 0) != 0) return nullptr;
    reader->is_open_ = true;
    return reader;
  }
  ~RingReader() override {
    while (pending() != 0) static_cast<void>(wait());
    if (is_open_) io_uring_queue_exit(&ring_);
  }

  bool submit(const File& file, uint64_t offset, std::span<std::byte> into, uint64_t tag) override {
    CHECK(!into.empty() && is_aligned(offset, into));
    if (free_.is_empty()) return false;
    const uint32_t number = free_.pop();
    Request& request = requests_[number];
    request = {&file, offset, into, tag, file.begin_raw_read()};
    if (request.raw.descriptor < 0) {
      blocking_.push(number);
      return true;
    }
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    CHECK(entry != nullptr);  // the ring has an entry for each request
    io_uring_prep_read(entry, request.raw.descriptor, into.data(),
                       static_cast<unsigned>(into.size()), offset);
    io_uring_sqe_set_data64(entry, number);
    ++in_ring_;
    return true;
  }

  void start() override {
    // After an error the next call submits the rest.
    if (io_uring_sq_ready(&ring_) != 0) check_call(io_uring_submit(&ring_));
  }

  Done wait() override {
    CHECK(pending() != 0);
    if (!blocking_.is_empty()) {
      start();
      return finish(blocking_.pop(), -1);
    }
    io_uring_cqe* done = nullptr;
    while (io_uring_peek_cqe(&ring_, &done) != 0) check_call(io_uring_submit_and_wait(&ring_, 1));
    const auto number = static_cast<uint32_t>(io_uring_cqe_get_data64(done));
    const int result = done->res;
    io_uring_cqe_seen(&ring_, done);
    CHECK(number < requests_.size() && in_ring_ != 0);
    --in_ring_;
    return finish(number, result);
  }

  uint32_t pending() const override { return in_ring_ + blocking_.size(); }
  const char* method() const override { return "io_uring"; }

 private:
  explicit RingReader(uint32_t depth) : requests_(depth), free_(depth), blocking_(depth) {
    for (uint32_t i = 0; i < depth; ++i) free_.push(i);
  }

  /// Accepts the errors after which the caller repeats the call: an interruption, and a kernel that
  /// is short of memory until earlier reads have ended. Other errors are internal errors.
  static void check_call(int result) {
    CHECK(result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY);
  }

  /// `result`: bytes that were read, or a negative errno.
  Done finish(uint32_t number, int result) {
    const Request request = std::exchange(requests_[number], {});
    CHECK(request.file != nullptr);
    CHECK(result < 0 || static_cast<uint64_t>(result) <= request.into.size());
    request.file->end_raw_read(request.raw);
    free_.push(number);
    if (result >= 0 && static_cast<uint64_t>(result) == request.into.size()) {
      return {request.tag, request.into.size()};
    }
    return {request.tag, request.file->read(request.offset, request.into)};
  }

  io_uring ring_{};
  bool is_open_ = false;
  uint32_t in_ring_ = 0;
  std::vector<Request> requests_;
  NumberStack free_;
  NumberStack blocking_;  // requests that File::read must do
};

/// A few threads that read with File::read.
class ThreadReader final : public BatchReader {
 public:
  explicit ThreadReader(uint32_t depth) : depth_(depth), waiting_(depth), done_(depth) {
    CHECK(depth != 0);
    const uint32_t count = std::min(depth, kMaxThreads);
    for (uint32_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  }
  ~ThreadReader() override {
    while (pending() != 0) static_cast<void>(wait());
    {
      const std::lock_guard guard(mutex_);
      ends_ = true;
    }
    submitted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  bool submit(const File& file, uint64_t offset, std::span<std::byte> into, uint64_t tag) override {
    CHECK(!into.empty() && is_aligned(offset, into));
    if (pending_ == depth_) return false;
    ++pending_;
    {
      const std::lock_guard guard(mutex_);
      waiting_.push({&file, offset, into, tag, {}});
    }
    submitted_.notify_one();
    return true;
  }
  void start() override {}
  Done wait() override {
    CHECK(pending_ != 0);
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return !done_.is_empty(); });
    --pending_;
    CHECK(pending_ < depth_);
    return done_.pop();
  }
  uint32_t pending() const override { return pending_; }
  const char* method() const override { return "threads"; }

 private:
  static constexpr uint32_t kMaxThreads = 8;

  /// Bounded queue, first in first out, without allocations after its construction.
  template <typename Entry>
  class Fifo {
   public:
    explicit Fifo(uint32_t capacity) : entries_(capacity) {}
    bool is_empty() const { return count_ == 0; }
    void push(Entry entry) {
      CHECK(count_ < entries_.size());
      entries_[(first_ + count_++) % entries_.size()] = std::move(entry);
    }
    Entry pop() {
      CHECK(count_ != 0);
      --count_;
      return std::move(entries_[std::exchange(first_, (first_ + 1) % entries_.size())]);
    }

   private:
    std::vector<Entry> entries_;
    size_t first_ = 0;
    size_t count_ = 0;
  };

  void work() {
    pthread_setname_np(pthread_self(), "read");
    std::unique_lock lock(mutex_);
    for (;;) {
      submitted_.wait(lock, [this] { return ends_ || !waiting_.is_empty(); });
      if (waiting_.is_empty()) return;
      const Request request = waiting_.pop();
      lock.unlock();
      Done done{request.tag, request.file->read(request.offset, request.into)};
      lock.lock();
      done_.push(std::move(done));
      ended_.notify_one();
    }
  }

  const uint32_t depth_;
  uint32_t pending_ = 0;  // used by the owner only
  std::mutex mutex_;
  std::condition_variable submitted_;
  std::condition_variable ended_;
  // Guarded by mutex_:
  Fifo<Request> waiting_;
  Fifo<Done> done_;
  bool ends_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<BatchReader> BatchReader::create(uint32_t depth, Method method) {
  CHECK(depth >= 1 && depth <= kMaxDepth);
  if (method == Method::automatic) {
    if (auto ring = RingReader::create(depth)) return ring;
  }
  return std::make_unique<ThreadReader>(depth);
}

}  // namespace atolldb
