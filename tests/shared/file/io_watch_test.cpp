// Reports about calls that the device has not answered (R58).
#include "shared/file/io_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

#include "shared/metrics/device_watch.h"
#include "tests/support/power_cut_file_system.h"

namespace atolldb::test {
namespace {

/// A file system whose syncs and searches for data return only after the test releases them.
class HangingFileSystem : public ForwardingFileSystem {
 public:
  explicit HangingFileSystem(PowerCutFileSystem& below) : ForwardingFileSystem(below) {}
  std::atomic<bool> hangs{true};

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override {
    auto file = below().create(path, bytes);
    if (!file) return file;
    return std::make_unique<HangingFile>(*this, *std::move(file));
  }

 private:
  class HangingFile : public ForwardingFile {
   public:
    HangingFile(HangingFileSystem& owner, std::unique_ptr<File> below)
        : ForwardingFile(std::move(below)), owner_(owner) {}
    Result<void> sync() override {
      hang();
      return below().sync();
    }
    Result<uint64_t> next_data(uint64_t offset) const override {
      hang();
      return below().next_data(offset);
    }

   private:
    void hang() const {
      while (owner_.hangs.load(std::memory_order_acquire)) std::this_thread::yield();
    }

    HangingFileSystem& owner_;
  };
};

TEST(IoWatch, TellsTheOldestCallThatIsUnderWayAndItsFile) {
  PowerCutFileSystem disk;
  auto hanging = std::make_unique<HangingFileSystem>(disk);
  std::atomic<bool>& hangs = hanging->hangs;
  IoWatch watch;
  WatchedFileSystem files(std::move(hanging), watch);
  auto file = files.create("/log", kIoBlockBytes);
  ASSERT_TRUE(file);
  EXPECT_FALSE(watch.oldest());
  std::jthread caller([&] { EXPECT_TRUE((*file)->sync()); });
  while (!watch.oldest()) std::this_thread::yield();
  const auto pending = watch.oldest();
  ASSERT_TRUE(pending);
  EXPECT_EQ(pending->operation, IoOperation::sync);
  EXPECT_EQ(pending->path, "/log");
  const auto later = watch.oldest();
  ASSERT_TRUE(later);
  EXPECT_GE(later->age, pending->age);
  hangs.store(false, std::memory_order_release);
  caller.join();
  EXPECT_FALSE(watch.oldest());
}

TEST(IoWatch, NotesTheSearchForData) {
  PowerCutFileSystem disk;
  auto hanging = std::make_unique<HangingFileSystem>(disk);
  std::atomic<bool>& hangs = hanging->hangs;
  IoWatch watch;
  WatchedFileSystem files(std::move(hanging), watch);
  auto file = files.create("/log", kIoBlockBytes);
  ASSERT_TRUE(file);
  std::atomic<bool> has_returned{false};
  std::jthread caller([&] {
    EXPECT_TRUE((*file)->next_data(0));
    has_returned.store(true, std::memory_order_release);
  });
  auto pending = watch.oldest();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!pending && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
    pending = watch.oldest();
  }
  EXPECT_FALSE(has_returned.load(std::memory_order_acquire));
  hangs.store(false, std::memory_order_release);
  caller.join();
  ASSERT_TRUE(pending) << "the call was not noted";
  EXPECT_EQ(pending->operation, IoOperation::read);
  EXPECT_EQ(pending->path, "/log");
  EXPECT_FALSE(watch.oldest());
}

TEST(IoWatch, NotesAsManyCallsAsItHasRoomForAndLeavesOutOthers) {
  IoWatch watch;
  const uint64_t path = watch.add_path("/file");
  std::deque<IoWatch::Note> notes;
  for (uint32_t i = 0; i < IoWatch::kMaxCalls; ++i) {
    notes.emplace_back(watch, IoOperation::read, path);
  }
  {
    const IoWatch::Note one_more(watch, IoOperation::write, path);
    EXPECT_EQ(watch.oldest()->operation, IoOperation::read);
  }
  notes.clear();
  EXPECT_FALSE(watch.oldest());
  const IoWatch::Note again(watch, IoOperation::write, path);
  EXPECT_EQ(watch.oldest()->operation, IoOperation::write);
}

TEST(DeviceWatch, TellsAHangOncePastItsLimitAndItsEnd) {
  using namespace std::chrono_literals;
  IoWatch watch;
  DeviceMetrics metrics{};
  DeviceWatch device(watch, metrics, 0ms);
  DeviceMetrics patient_metrics{};
  DeviceWatch patient(watch, patient_metrics, std::chrono::hours(1));
  const uint64_t path = watch.add_path("/data/log");
  EXPECT_FALSE(device.check());
  {
    const IoWatch::Note note(watch, IoOperation::sync, path);
    while (watch.oldest()->age == 0ns) std::this_thread::yield();
    const auto begun = device.check();
    ASSERT_TRUE(begun);
    EXPECT_TRUE(begun->hangs);
    EXPECT_TRUE(begun->text.starts_with("device hangs: sync on /data/log for ")) << begun->text;
    EXPECT_TRUE(begun->text.ends_with("(limit 0us)")) << begun->text;
    EXPECT_FALSE(device.check()) << "it was told";
    EXPECT_TRUE(device_hang_text(metrics, 0ms).starts_with("device hangs: sync on /data/log"));
    EXPECT_GT(metrics.pending_ns.load(std::memory_order_relaxed), 0u);
    EXPECT_EQ(metrics.hangs.load(std::memory_order_relaxed), 1u);
    EXPECT_FALSE(patient.check()) << "below the limit";
    EXPECT_GT(patient_metrics.pending_ns.load(std::memory_order_relaxed), 0u);
    EXPECT_EQ(device_hang_text(patient_metrics, std::chrono::hours(1)), "");
  }
  const auto over = device.check();
  ASSERT_TRUE(over);
  EXPECT_FALSE(over->hangs);
  EXPECT_TRUE(over->text.starts_with("the device answers again: sync on /data/log")) << over->text;
  EXPECT_EQ(device_hang_text(metrics, 0ms), "");
  EXPECT_EQ(metrics.pending_ns.load(std::memory_order_relaxed), 0u);
  EXPECT_EQ(metrics.hangs.load(std::memory_order_relaxed), 1u) << "counters stay";
}

TEST(SharedText, KeepsTheEndOfALongText) {
  DeviceMetrics metrics{};
  EXPECT_EQ(metrics.path.text(), "");
  metrics.path.set("/short");
  EXPECT_EQ(metrics.path.text(), "/short");
  const std::string full(SharedText::kBytes, 'f');
  metrics.path.set(full);
  EXPECT_EQ(metrics.path.text(), full);
  metrics.path.set("x" + full);
  EXPECT_EQ(metrics.path.text(), full);
}

}  // namespace
}  // namespace atolldb::test
