// File system that stops working after a number of changes, as if the process were killed or the
// machine lost power. It can also violate guarantees that loggers rely on. It is as thread-safe as
// the file system below it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/format/log_block.h"
#include "shared/file/file.h"
#include "tests/engine/log/log_blocks.h"

namespace atolldb::test {

/// Guarantees that the file system, or a logger, violates.
struct FileFaults {
  bool skips_sync = false;            // sync returns without doing anything
  bool skips_directory_sync = false;  // sync_directory returns without doing anything
  /// sync_directory does nothing if the last name that was created in, or renamed into, the
  /// directory contains this text. Empty: sync_directory works for all directories.
  std::string skips_directory_sync_after = {};
  bool markers_before_data = false;  // record blocks are written after the sync of their marker
};

class HookedFileSystem : public FileSystem {
 public:
  /// The first `changes` changes succeed; the next change and every later call fail. REQUIRES:
  /// `below` outlives this object.
  HookedFileSystem(FileSystem& below, FileFaults faults, uint64_t changes)
      : below_(below),
        faults_(faults),
        changes_left_(static_cast<int64_t>(std::min<uint64_t>(changes, INT64_MAX))) {}

  bool is_off() const { return is_off_.load(std::memory_order_relaxed); }

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override {
    if (!change()) return off();
    note_name(path);
    return hook(below_.create(path, bytes));
  }
  Result<std::unique_ptr<File>> open(const std::string& path) override {
    if (is_off()) return off();
    return hook(below_.open(path));
  }
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    if (is_off()) return off();
    return below_.open_for_reading(path);
  }
  Result<void> sync_directory(const std::string& path) override {
    if (!change()) return off();
    if (faults_.skips_directory_sync || is_skipped(path)) return {};
    return below_.sync_directory(path);
  }
  Result<void> make_directory(const std::string& path) override {
    if (!change()) return off();
    return below_.make_directory(path);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    if (is_off()) return off();
    return below_.list(path);
  }
  Result<bool> exists(const std::string& path) override {
    if (is_off()) return off();
    return below_.exists(path);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    if (!change()) return off();
    note_name(to);
    return below_.rename(from, to);
  }
  Result<void> remove(const std::string& path) override {
    if (!change()) return off();
    return below_.remove(path);
  }
  Result<bool> link(const std::string& from, const std::string& to) override {
    if (!change()) return off();
    note_name(to);
    return below_.link(from, to);
  }
  Result<void> remove_directory(const std::string& path) override {
    if (!change()) return off();
    return below_.remove_directory(path);
  }
  Result<void> forget_cached(const std::string& path) override {
    if (is_off()) return off();
    return below_.forget_cached(path);
  }
  bool is_durable() const override { return below_.is_durable(); }
  std::string describe() const override { return below_.describe(); }

 private:
  class HookedFile : public File {
   public:
    HookedFile(HookedFileSystem& owner, std::unique_ptr<File> below)
        : owner_(owner), below_(std::move(below)) {}

    Result<void> write(uint64_t offset,
                       std::span<const std::span<const std::byte>> slices) override {
      // The last write before a power cut fails, but still reaches the file system below. The write
      // is never synced, so the cut may keep any part of it.
      if (owner_.is_off()) return off();
      const bool works = owner_.change();
      auto written = owner_.faults_.markers_before_data ? write_markers(offset, slices)
                                                        : below_->write(offset, slices);
      if (!works) return off();
      return written;
    }
    Result<void> grow(uint64_t bytes) override {
      if (!owner_.change()) return off();
      return below_->grow(bytes);
    }
    Result<void> sync() override {
      if (!owner_.change()) return off();
      if (owner_.faults_.skips_sync) return {};
      auto synced = below_->sync();
      for (auto& [offset, block] : held_) {
        const std::span<const std::byte> slice = std::as_bytes(block->all());
        if (auto written = below_->write(offset, {&slice, 1}); !written) return written;
      }
      held_.clear();
      return synced;
    }
    Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
      if (owner_.is_off()) return off();
      return below_->read(offset, into);
    }
    Result<uint64_t> size() const override { return below_->size(); }
    const std::string& path() const override { return below_->path(); }

   private:
    Result<void> write_markers(uint64_t offset,
                               std::span<const std::span<const std::byte>> slices) {
      for (std::span<const std::byte> slice : slices) {
        for (; !slice.empty(); slice = slice.subspan(kLogBlockBytes), offset += kLogBlockBytes) {
          LogBlockHeader header;
          std::memcpy(&header, slice.data(), sizeof header);
          const auto block = slice.first(kLogBlockBytes);
          if (header.magic == kLogBlockMagic && header.type == LogBlockType::records) {
            auto copy = std::make_unique<BlockBuffer>(1);
            std::memcpy(copy->all().data(), block.data(), block.size());
            held_[offset] = std::move(copy);
          } else if (auto written = below_->write(offset, {&block, 1}); !written) {
            return written;
          }
        }
      }
      return {};
    }

    HookedFileSystem& owner_;
    std::unique_ptr<File> below_;
    std::map<uint64_t, std::unique_ptr<BlockBuffer>> held_;
  };

  Result<std::unique_ptr<File>> hook(Result<std::unique_ptr<File>> file) {
    if (!file) return file;
    return std::make_unique<HookedFile>(*this, *std::move(file));
  }
  void note_name(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::lock_guard guard(mutex_);
    last_names_[path.substr(0, slash)] = path.substr(slash + 1);
  }
  bool is_skipped(const std::string& directory) {
    if (faults_.skips_directory_sync_after.empty()) return false;
    const std::lock_guard guard(mutex_);
    return last_names_[directory].contains(faults_.skips_directory_sync_after);
  }
  /// Relaxed: any of several concurrent threads may make the last change.
  bool change() {
    if (changes_left_.fetch_sub(1, std::memory_order_relaxed) <= 0) {
      is_off_.store(true, std::memory_order_relaxed);
    }
    return !is_off();
  }
  static std::unexpected<Error> off() {
    return make_error(ExitCode::durability, "the machine has lost its power");
  }

  FileSystem& below_;
  FileFaults faults_;
  std::atomic<int64_t> changes_left_;
  std::atomic<bool> is_off_{false};
  std::mutex mutex_;
  std::map<std::string, std::string> last_names_;  // last name per directory; guarded by mutex_
};

}  // namespace atolldb::test
