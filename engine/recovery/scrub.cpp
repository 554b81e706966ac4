#include "engine/recovery/scrub.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/compose/page_output.h"
#include "engine/format/stand_in.h"
#include "engine/format/tree_page.h"
#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
namespace {

/// Number of pages per read: 256 KiB.
constexpr uint32_t kScrubPages = 64;

/// Adds the storage and range from the header of a damaged page, if the header has the page's own
/// pointer.
void describe(const PageHeader& page, SnapshotPointer self, ScrubDamage& damage) {
  if (page.self != self.word()) return;
  damage.storage = page.storage_id;
  const bool is_border = page.type == PageType::mastertree_border;
  if (!is_border && page.type != PageType::mastertree_interior) return;
  damage.range = "by its damaged bytes: " +
                 text_of_range("", range_of(reinterpret_cast<const TreePage&>(page)));
  if (page.layer != 0) damage.range += fmt::format(" in layer {}", page.layer);
}

/// Reads the pages one by one, and reports the damaged ones.
void find_damage(const SnapshotFiles& files, SnapshotPointer first, uint32_t count,
                 const std::string& path, const ScrubHooks& hooks) {
  CHECK(count != 0 && !first.is_null());
  IoBuffer buffer(kPageBytes);
  auto* page = reinterpret_cast<PageHeader*>(buffer.bytes().data());
  for (uint32_t i = 0; i < count; ++i) {
    const SnapshotPointer self(first.word() + i);
    std::ranges::fill(buffer.bytes(), std::byte{0});
    const auto read = files.read(self, page);
    if (read) continue;
    ScrubDamage damage{path, self.page() * uint64_t{kPageBytes}, 0, "", read.error().message};
    describe(*page, self, damage);
    hooks.found(damage);
  }
}

/// Returns where the stream ends with a defect before its newest file, or nothing.
Result<std::optional<LogEnd>> find_defect(FileSystem& file_system, const LogStream& stream,
                                          const ScrubHooks& hooks) {
  ATOLL_ASSIGN(LogReader reader, LogReader::open(file_system, stream));
  if (reader.ordinals().empty()) return std::nullopt;
  const uint32_t newest = reader.ordinals().back();
  for (;;) {
    if (!hooks.reads(kLogBlockBytes)) return std::nullopt;
    ATOLL_ASSIGN(const auto block, reader.next());
    if (block == nullptr) break;
    if (block->header.file_ordinal == newest) return std::nullopt;
  }
  // A stream may end without a defect before its newest file, because a logger creates that file
  // before it needs it.
  if (!reader.end().is_defect) return std::nullopt;
  return reader.end();
}

}  // namespace

Result<void> scrub_snapshot_file(FileSystem& file_system, const SnapshotFilePlace& place,
                                 const ClusterUuid& cluster_uuid, const ScrubHooks& hooks) {
  CHECK(hooks.reads && hooks.found);
  const std::string path = snapshot_file_path(place.directory, place.node, place.snapshot);
  SnapshotFiles files(file_system, cluster_uuid);
  ATOLL_ASSIGN(auto closed, files.open_readable({place}));
  if (!closed.empty()) {
    hooks.found({path, 0, 0, "all of its pages", closed.front().message});
    return {};
  }
  IoBuffer buffer(kScrubPages * kPageBytes);
  for (uint64_t page = 1; page < place.page_count;) {
    const auto count =
        static_cast<uint32_t>(std::min<uint64_t>(kScrubPages, place.page_count - page));
    if (!hooks.reads(count * kPageBytes)) return {};
    const auto first =
        SnapshotPointer::make(place.snapshot, place.node, static_cast<uint32_t>(page));
    if (!files.read_run(first, count, buffer.bytes().data())) {
      find_damage(files, first, count, path, hooks);
    }
    page += count;
    CHECK(page <= place.page_count);
  }
  return {};
}

Result<void> scrub_checkpoint_file(FileSystem& file_system, const CheckpointMetadata& metadata,
                                   size_t file, const ScrubHooks& hooks) {
  CHECK(hooks.reads && hooks.found && file < metadata.files.size());
  const CheckpointFileInfo& info = metadata.files[file];
  const std::string path =
      checkpoint_file_path(info.directory, info.node, {metadata.id, info.writer, info.number});
  const auto report = [&](const Error& error, uint64_t offset) -> Result<void> {
    if (error.code != ExitCode::corruption) return std::unexpected(error);
    hooks.found({path, offset, 0, "all of its records from there on", error.message});
    return {};
  };
  auto reader = CheckpointReader::open(file_system, metadata, file);
  if (!reader) return report(reader.error(), 0);
  while (hooks.reads(kCheckpointBlockBytes)) {
    const auto block = reader->next();
    if (!block) return report(block.error(), reader->bytes());
    if (*block == nullptr) break;
    CHECK(reader->bytes() <= info.bytes);
  }
  return {};
}

Result<void> scrub_log(FileSystem& file_system, LogStream stream, const ScrubHooks& hooks) {
  CHECK(hooks.reads && hooks.found);
  stream.covered_epoch = kMaxEpoch;  // missing first files are not damage: they were deleted
  ATOLL_ASSIGN(auto first, find_defect(file_system, stream, hooks));
  if (!first) return {};
  // Reads the stream again, and reports only damage that is at the same place both times. A logger
  // may have created the newest file in advance, and may still write to the file before it. A read
  // during such a write may find half a block.
  ATOLL_ASSIGN(auto second, find_defect(file_system, stream, hooks));
  if (!second || second->file != first->file || second->offset != first->offset) {
    return {};
  }
  const LogEnd& end = *second;
  CHECK(end.is_defect);
  ATOLL_ASSIGN(const auto exists, file_system.exists(end.file));
  if (exists) hooks.found({end.file, end.offset, 0, "all of its log after that", end.reason});
  return {};
}

}  // namespace atolldb
