#include "bench/log_driver/timed_file_system.h"

#include "bench/common/clock.h"
#include "shared/base/try.h"

namespace atolldb::log_bench {
namespace {

class TimedFile : public ForwardingFile {
 public:
  TimedFile(std::unique_ptr<File> below, FileTimes& times)
      : ForwardingFile(std::move(below)), times_(times) {}

  Result<void> write(uint64_t offset, std::span<const std::span<const std::byte>> slices) override {
    const uint64_t begin = bench::monotonic_ns();
    auto written = below().write(offset, slices);
    times_.write_ns += bench::monotonic_ns() - begin;
    ++times_.writes;
    return written;
  }
  Result<void> sync() override {
    const uint64_t begin = bench::monotonic_ns();
    auto synced = below().sync();
    times_.sync_ns += bench::monotonic_ns() - begin;
    ++times_.syncs;
    return synced;
  }

 private:
  FileTimes& times_;
};

}  // namespace

Result<std::unique_ptr<File>> TimedFileSystem::create(const std::string& path, uint64_t bytes) {
  ATOLL_ASSIGN(auto file, below().create(path, bytes));
  return std::make_unique<TimedFile>(std::move(file), times_);
}

}  // namespace atolldb::log_bench
