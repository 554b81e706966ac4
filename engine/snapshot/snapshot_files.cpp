#include "engine/snapshot/snapshot_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "engine/format/snapshot_format.h"
#include "engine/format/snapshot_page.h"
#include "engine/format/stand_in.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

namespace {

constexpr const char* kRemedy =
    "restore the file from a backup, or give the range up with `atoll up --salvage`";

std::unexpected<Error> damaged(const std::string& path, const std::string& reason) {
  return make_error(ExitCode::corruption,
                    fmt::format("snapshot file {}: {}: {}", path, reason, kRemedy));
}

/// The file is intact, but another build has written it. No salvage may give it up: its data exist.
std::unexpected<Error> of_other_build(const std::string& path, const std::string& reason) {
  return make_error(ExitCode::failed,
                    fmt::format("snapshot file {}: {}: start the cluster with the build that wrote "
                                "it, export the data there, and load them with this build",
                                path, reason));
}

std::unexpected<Error> damaged_page(const std::string& path, SnapshotPointer page,
                                    const std::string& reason) {
  return damaged(path, fmt::format("page {}: {}", page.page(), reason));
}

uint64_t file_key(SnapshotPointer page) {
  return SnapshotPointer::make(page.snapshot(), page.node(), 0).word();
}

std::string defect_of(const SnapshotFileHeader& header, const SnapshotFilePlace& place,
                      const ClusterUuid& cluster_uuid) {
  if (header.magic != kSnapshotFileMagic) return "it has no header: it was never finished";
  if (header.crc != crc_of(header)) return "the checksum of its header is wrong";
  if (!std::ranges::equal(header.cluster_uuid, cluster_uuid))
    return "it belongs to another cluster";
  if (header.snapshot != place.snapshot || header.node != place.node) {
    return fmt::format("its header names snapshot {} and node {}", header.snapshot, header.node);
  }
  if (header.page_count != place.page_count) {
    return fmt::format("its header names {} pages, not {}", header.page_count, place.page_count);
  }
  return {};
}

/// Returns how the format of an intact file differs from that of this build, or an empty text.
std::string difference_of(const SnapshotFileHeader& header) {
  if (header.magic != kSnapshotFileMagic || header.crc != crc_of(header)) return {};
  if (header.version != kSnapshotFormatVersion) {
    return fmt::format("its format has version {}, this program reads version {}", header.version,
                       kSnapshotFormatVersion);
  }
  if (header.layout_hash != snapshot_layout_hash()) {
    return fmt::format("its page layout has hash 0x{:08x}, this build has 0x{:08x}",
                       header.layout_hash, snapshot_layout_hash());
  }
  return {};
}

/// Returns the defect of a page, or an empty text if it has none.
std::string defect_of(const PageHeader& page, SnapshotPointer self) {
  if (page.check != check_of(page)) return "its checksum is wrong";
  if (page.self != self.word()) {
    const SnapshotPointer found = snapshot_self(page);
    return fmt::format("its own pointer names page {} of snapshot {} and node {}", found.page(),
                       found.snapshot(), found.node());
  }
  if (page.is_snapshot != 1) return "it is not marked as a snapshot page";
  return {};
}

Result<std::unique_ptr<File>> open_place(FileSystem& file_system, const SnapshotFilePlace& place,
                                         const ClusterUuid& cluster_uuid) {
  const std::string path = snapshot_file_path(place.directory, place.node, place.snapshot);
  ATOLL_ASSIGN(const bool is_there, file_system.exists(path));
  if (!is_there) return damaged(path, "it is missing");
  ATOLL_ASSIGN(auto file, file_system.open_for_reading(path));
  IoBuffer buffer(kPageBytes);
  ATOLL_ASSIGN(const uint64_t got, file->read(0, buffer.bytes()));
  if (got < kPageBytes)
    return damaged(path, fmt::format("it has {} bytes, its header alone has {}", got, kPageBytes));
  SnapshotFileHeader header;
  std::memcpy(&header, buffer.bytes().data(), sizeof header);
  const std::string difference = difference_of(header);
  if (!difference.empty()) return of_other_build(path, difference);
  const std::string defect = defect_of(header, place, cluster_uuid);
  if (!defect.empty()) return damaged(path, defect);
  ATOLL_ASSIGN(const uint64_t size, file->size());
  if (size != place.page_count * kPageBytes) {
    return damaged(path, fmt::format("it has {} bytes, its {} pages have {}", size,
                                     place.page_count, place.page_count * kPageBytes));
  }
  return file;
}

}  // namespace

std::string snapshot_file_name(uint32_t snapshot) {
  return fmt::format("snapshot_{}.atsnap", snapshot);
}

std::string snapshot_file_path(const std::string& directory, uint32_t node, uint32_t snapshot) {
  const std::string folder = node == kCoordinator ? "coordinator" : fmt::format("node{}", node);
  return fmt::format("{}/{}/{}", directory, folder, snapshot_file_name(snapshot));
}

Result<void> SnapshotFiles::open(const std::vector<SnapshotFilePlace>& places) {
  ATOLL_ASSIGN(const auto closed, open_readable(places));
  return closed.empty() ? Result<void>() : std::unexpected(closed.front());
}

Result<std::vector<Error>> SnapshotFiles::open_readable(
    const std::vector<SnapshotFilePlace>& places) {
  std::vector<Error> closed;
  for (const SnapshotFilePlace& place : places) {
    const auto key = SnapshotPointer::make(place.snapshot, place.node, 0);
    if (find(key) != nullptr) continue;
    // Runs without the lock, so that readers do not wait for the device. Two threads that open the
    // same file open it twice.
    auto file = open_place(*file_system_, place, cluster_uuid_);
    if (file) {
      const std::unique_lock lock(mutex_);
      files_.try_emplace(key.word(), OpenFile{std::move(*file), place.page_count});
    } else if (file.error().code == ExitCode::corruption) {
      closed.push_back(file.error());
    } else {
      return std::unexpected(file.error());
    }
  }
  return closed;
}

Result<void> SnapshotFiles::open_only(const std::vector<SnapshotFilePlace>& places) {
  ATOLL_TRY(open(places));
  std::set<uint64_t> wanted;
  for (const SnapshotFilePlace& place : places) {
    wanted.insert(SnapshotPointer::make(place.snapshot, place.node, 0).word());
  }
  const std::unique_lock lock(mutex_);
  std::erase_if(files_, [&](const auto& entry) { return !wanted.contains(entry.first); });
  return {};
}

Result<void> SnapshotFiles::read(SnapshotPointer pointer, PageHeader* into) const {
  return read_run(pointer, 1, reinterpret_cast<std::byte*>(into));
}

const SnapshotFiles::OpenFile* SnapshotFiles::find(SnapshotPointer page) const {
  const std::shared_lock lock(mutex_);
  const auto entry = files_.find(file_key(page));
  return entry != files_.end() ? &entry->second : nullptr;
}

Result<uint32_t> SnapshotFiles::read_ahead(SnapshotPointer first, uint32_t most,
                                           std::byte* into) const {
  DCHECK(most != 0);
  // For a single page, the usual case, read_run checks the end of the file.
  const uint64_t there = most > 1 ? pages_from(first) : 1;
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(most, there));
  if (count > 1 && read_run(first, count, into)) return count;
  // Reads only the first page. Damage to a later page is reported when that page is requested.
  ATOLL_TRY(read_run(first, 1, into));
  return 1;
}

uint64_t SnapshotFiles::pages_from(SnapshotPointer first) const {
  const OpenFile* found = find(first);
  return found != nullptr && first.page() < found->page_count ? found->page_count - first.page()
                                                              : 0;
}

SnapshotFiles::Place SnapshotFiles::place_of(SnapshotPointer first, uint32_t count) const {
  CHECK(count != 0 && !is_stand_in(first));
  const OpenFile* found = find(first);
  if (found == nullptr || first.is_null() || first.page() + uint64_t{count} > found->page_count) {
    return {};
  }
  return {found->file.get(), first.page() * kPageBytes};
}

bool SnapshotFiles::is_intact(const PageHeader& page, SnapshotPointer self) {
  return defect_of(page, self).empty();
}

Error SnapshotFiles::error_of_stand_in(SnapshotPointer marked) const {
  CHECK(is_stand_in(marked));
  IoBuffer page(kPageBytes);
  SnapshotPointer lost = marked;
  // The page that a stand-in replaces may itself be a stand-in. The depth is limited, because
  // damaged pointers may form a cycle.
  constexpr uint32_t kMaxStandIns = 64;
  for (uint32_t depth = 0; is_stand_in(lost) && depth < kMaxStandIns; ++depth) {
    if (auto read = read_run(unmarked(lost), 1, page.bytes().data()); !read) return read.error();
    lost = SnapshotPointer(reinterpret_cast<const StandInPage*>(page.bytes().data())->lost);
  }
  const OpenFile* found = find(unmarked(lost));
  const std::string reason =
      fmt::format("it could not be read when snapshot {} was made", marked.snapshot());
  if (found != nullptr) return damaged_page(found->file->path(), unmarked(lost), reason).error();
  return {ExitCode::corruption,
          fmt::format("page {} of snapshot {} and node {}: {}: {}", unmarked(lost).page(),
                      lost.snapshot(), lost.node(), reason, kRemedy)};
}

Result<void> SnapshotFiles::read_run(SnapshotPointer first, uint32_t count, std::byte* into) const {
  DCHECK(count != 0 && reinterpret_cast<uintptr_t>(into) % kIoBlockBytes == 0);
  if (is_stand_in(first)) return std::unexpected(error_of_stand_in(first));
  const OpenFile* found = find(first);
  if (found == nullptr) {
    return make_error(
        ExitCode::corruption,
        fmt::format("page {} of snapshot {} and node {}: its file is not open: the snapshot's "
                    "metadata does not list it: {}",
                    first.page(), first.snapshot(), first.node(), kRemedy));
  }
  const File& file = *found->file;
  if (first.is_null() || first.page() + uint64_t{count} > found->page_count) {
    return damaged_page(file.path(), first,
                        fmt::format("a pointer leads to {} pages from there, the file has {}",
                                    count, found->page_count));
  }
  const uint64_t bytes = count * kPageBytes;
  ATOLL_ASSIGN(const uint64_t got, file.read(first.page() * kPageBytes, {into, bytes}));
  if (got != bytes)
    return damaged_page(file.path(), first,
                        fmt::format("the file ends after {} of {} bytes from there", got, bytes));
  for (uint32_t i = 0; i < count; ++i) {
    const auto self = SnapshotPointer::make(first.snapshot(), first.node(), first.page() + i);
    const auto& page = *reinterpret_cast<const PageHeader*>(into + i * kPageBytes);
    // `defect` costs little for an intact page, because an empty text allocates no memory.
    const std::string defect = defect_of(page, self);
    if (!defect.empty()) return damaged_page(file.path(), self, defect);
  }
  return {};
}

Result<void> PageReader::read(SnapshotPointer pointer, PageHeader* into) {
  const uint64_t word = pointer.word();
  const bool is_near = word > last_ && word - last_ <= kPagesPerRead;
  last_ = word;
  if (word - first_ >= count_) {
    count_ = 0;
    if (!is_near) return files_.read(pointer, into);
    ATOLL_ASSIGN(const auto read, files_.read_ahead(pointer, kPagesPerRead, pages_.bytes().data()));
    CHECK(read != 0 && read <= kPagesPerRead);
    first_ = word;
    count_ = read;
  }
  const std::byte* page = pages_.bytes().data() + (word - first_) * kPageBytes;
  std::memcpy(reinterpret_cast<std::byte*>(into), page, kPageBytes);
  return {};
}

}  // namespace atolldb
