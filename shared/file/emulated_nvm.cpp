#include "shared/file/emulated_nvm.h"

#include <immintrin.h>

namespace atolldb {
namespace {

/// Spins on the steady clock. It is the scaled time-stamp counter, read without entering the
/// kernel.
void spin(std::chrono::nanoseconds time) {
  if (time.count() <= 0) return;
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) _mm_pause();
}

class SlowFile : public ForwardingFile {
 public:
  SlowFile(std::unique_ptr<File> below, EmulatedLatency latency)
      : ForwardingFile(std::move(below)), latency_(latency) {}

  Result<void> write(uint64_t offset, std::span<const std::span<const std::byte>> slices) override {
    auto written = below().write(offset, slices);
    spin(latency_.write);
    return written;
  }
  Result<void> sync() override {
    auto synced = below().sync();
    spin(latency_.sync);
    return synced;
  }
  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    auto got = below().read(offset, into);
    spin(latency_.read);
    return got;
  }

 private:
  EmulatedLatency latency_;
};

Result<std::unique_ptr<File>> slow(Result<std::unique_ptr<File>> file, EmulatedLatency latency) {
  if (!file) return file;
  return std::make_unique<SlowFile>(std::move(*file), latency);
}

}  // namespace

Result<std::unique_ptr<File>> EmulatedNvm::create(const std::string& path, uint64_t bytes) {
  return slow(below().create(path, bytes), latency_);
}

Result<std::unique_ptr<File>> EmulatedNvm::open(const std::string& path) {
  return slow(below().open(path), latency_);
}

Result<std::unique_ptr<File>> EmulatedNvm::open_for_reading(const std::string& path) {
  return slow(below().open_for_reading(path), latency_);
}

Result<void> EmulatedNvm::sync_directory(const std::string& path) {
  auto synced = below().sync_directory(path);
  spin(latency_.sync);
  return synced;
}

std::string EmulatedNvm::describe() const {
  return below().describe() + "; emulated latency in ns: read " +
         std::to_string(latency_.read.count()) + ", write " +
         std::to_string(latency_.write.count()) + ", sync " + std::to_string(latency_.sync.count());
}

}  // namespace atolldb
