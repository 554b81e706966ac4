#include "engine/snapshot/snapshot_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "engine/format/page_lock_word.h"
#include "engine/format/snapshot_format.h"
#include "engine/format/stand_in.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

namespace {

/// Pages per write to the device.
constexpr uint32_t kBufferPages = kHugePageBytes / kPageBytes;
constexpr uint64_t kMaxPages = kStandInBit;

}  // namespace

struct SnapshotWriter::State {
  State(FileSystem& files, SnapshotWriterSettings with)
      : file_system(&files),
        settings(std::move(with)),
        path(snapshot_file_path(settings.directory, settings.node, settings.snapshot)),
        buffer(kBufferPages * kPageBytes) {
    CHECK(settings.snapshot != 0 && settings.snapshot <= SnapshotPointer::kMaxSnapshot);
    CHECK(settings.node <= kCoordinator && settings.epoch <= kMaxEpoch);
  }

  SnapshotPointer pointer_to(uint64_t number) const {
    CHECK(number != 0 && number < kMaxPages);
    return SnapshotPointer::make(settings.snapshot, settings.node, static_cast<uint32_t>(number));
  }

  PageHeader* page(uint32_t slot) {
    return reinterpret_cast<PageHeader*>(buffer.bytes().data() + slot * kPageBytes);
  }

  /// Grows the file to its current number of pages, and writes the pages in the buffer.
  Result<void> flush() {
    CHECK(buffered <= kBufferPages && buffered <= pages);
    if (buffered == 0) return {};
    if (file == nullptr) {
      ATOLL_ASSIGN(auto created, file_system->create(path, 0));
      file = std::move(created);
    }
    const uint64_t first = pages - buffered;
    for (uint32_t slot = first == 0 ? 1 : 0; slot < buffered; ++slot) {
      CHECK(page(slot)->self == pointer_to(first + slot).word());
      const McsWord* const lock = lock_of(page(slot));
      CHECK(page(slot)->is_snapshot == 1 && (lock == nullptr || lock->is_unused()));
      page(slot)->check = check_of(*page(slot));
    }
    ATOLL_TRY(file->grow(pages * kPageBytes));
    const std::span<const std::byte> slice = buffer.bytes().first(buffered * kPageBytes);
    ATOLL_TRY(file->write(first * kPageBytes, {&slice, 1}));
    std::ranges::fill(buffer.bytes().first(buffered * kPageBytes), std::byte{0});
    buffered = 0;
    return {};
  }

  Result<void> write_header() {
    CHECK(pages > 1 && pages <= kMaxPages && buffered == 0);
    SnapshotFileHeader header{};
    header.magic = kSnapshotFileMagic;
    header.version = kSnapshotFormatVersion;
    header.snapshot = settings.snapshot;
    std::ranges::copy(settings.cluster_uuid, header.cluster_uuid);
    header.epoch = settings.epoch;
    header.page_count = pages;
    header.node = settings.node;
    header.layout_hash = snapshot_layout_hash();
    header.crc = crc_of(header);
    const auto bytes = buffer.bytes().first(kPageBytes);
    std::ranges::fill(bytes, std::byte{0});
    std::memcpy(bytes.data(), &header, sizeof header);
    const std::span<const std::byte> slice = bytes;
    return file->write(0, {&slice, 1});
  }

  FileSystem* file_system;
  SnapshotWriterSettings settings;
  std::string path;
  std::unique_ptr<File> file;  // null until the first write
  IoBuffer buffer;
  uint32_t buffered = 1;  // pages in the buffer; page 0 stays zeros until the end
  uint64_t pages = 1;     // number of pages, page 0 and those in the buffer included
  bool is_finished = false;
};

SnapshotWriter::SnapshotWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
SnapshotWriter::~SnapshotWriter() = default;
SnapshotWriter::SnapshotWriter(SnapshotWriter&&) noexcept = default;
SnapshotWriter& SnapshotWriter::operator=(SnapshotWriter&&) noexcept = default;

Result<SnapshotWriter> SnapshotWriter::create(FileSystem& file_system,
                                              SnapshotWriterSettings settings) {
  auto state = std::make_unique<State>(file_system, std::move(settings));
  const std::string folder = std::filesystem::path(state->path).parent_path().string();
  ATOLL_TRY(file_system.make_directory(folder));
  ATOLL_ASSIGN(const bool is_there, file_system.exists(state->path));
  if (is_there) {
    ATOLL_TRY(file_system.remove(state->path));
  }
  return SnapshotWriter(std::move(state));
}

Result<PageHeader*> SnapshotWriter::next(uint32_t storage_id) {
  State& state = *state_;
  CHECK(!state.is_finished);
  if (state.pages == kMaxPages) {
    return make_error(
        ExitCode::resources,
        fmt::format("snapshot file {}: has {} pages, which is the limit of page numbers "
                    "of 31 bits: spread the storages over more nodes",
                    state.path, state.pages));
  }
  if (state.buffered == kBufferPages) {
    ATOLL_TRY(state.flush());
  }
  PageHeader* page = state.page(state.buffered);
  begin_snapshot_page(*page, state.pointer_to(state.pages), state.settings.epoch, storage_id);
  ++state.buffered;
  ++state.pages;
  return page;
}

uint64_t SnapshotWriter::page_count() const { return state_->pages; }

Result<void> SnapshotWriter::finish() {
  State& state = *state_;
  CHECK(!state.is_finished);
  state.is_finished = true;
  if (state.pages == 1) return {};
  ATOLL_TRY(state.flush());
  CHECK(state.file != nullptr);
  // The pages must be durable before the header, because the header declares the file complete.
  ATOLL_TRY(state.file->sync());
  ATOLL_TRY(state.write_header());
  ATOLL_TRY(state.file->sync());
  return state.file_system->sync_directory(
      std::filesystem::path(state.path).parent_path().string());
}

void SnapshotWriter::discard() {
  State& state = *state_;
  state.is_finished = true;
  if (state.file == nullptr) return;
  state.file.reset();
  // If the removal fails, the file only takes space: its id is never reused (R37).
  static_cast<void>(state.file_system->remove(state.path));
}

}  // namespace atolldb
