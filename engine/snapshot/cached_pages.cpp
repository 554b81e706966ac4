#include "engine/snapshot/cached_pages.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "engine/format/crc32c.h"
#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
namespace {

constexpr uint64_t kMagic = 0x3130'5041'4354'4154;  // "TATCAP01"

struct Header {
  uint64_t magic;
  uint32_t crc;  // CRC32C of the bytes after this field, up to the last name
  uint32_t node;
  uint8_t cluster_uuid[16];
  uint32_t snapshot;
  uint32_t spare;
  uint64_t count;  // number of names
  uint64_t unused[2];
};
static_assert(sizeof(Header) == 64 && sizeof(ClusterUuid) == 16);
constexpr uint64_t kChecked = offsetof(Header, node);
constexpr uint64_t kMaxBytes = sizeof(Header) + kMaxCachedPages * sizeof(uint64_t);

uint32_t crc_of(std::span<const std::byte> file, uint64_t count) {
  CHECK(count <= (file.size() - sizeof(Header)) / sizeof(uint64_t));
  return crc32c(file.subspan(kChecked, sizeof(Header) - kChecked + count * sizeof(uint64_t)));
}

/// Returns why the bytes are not an intact file of this node, or null if they are.
const char* defect_of(std::span<const std::byte> file, uint32_t node) {
  Header header;
  if (file.size() < sizeof header) return "is too short";
  std::memcpy(&header, file.data(), sizeof header);
  if (header.magic != kMagic) return "is no list of cached pages";
  if (header.count > (file.size() - sizeof header) / sizeof(uint64_t)) return "is cut short";
  if (header.crc != crc_of(file, header.count)) return "has a wrong checksum";
  if (header.node != node) return "belongs to another node";
  return nullptr;
}

}  // namespace

std::string cached_pages_path(const std::string& directory, uint32_t node) {
  return path_in(node_directory(directory, node), "cached_pages");
}

Result<void> write_cached_pages(FileSystem& file_system, const std::string& directory,
                                const CachedPages& cached) {
  CHECK(cached.pages.size() <= kMaxCachedPages);
  Header header = {};
  header.magic = kMagic;
  header.node = cached.node;
  std::ranges::copy(cached.cluster_uuid, header.cluster_uuid);
  header.snapshot = cached.snapshot;
  header.count = cached.pages.size();
  IoBuffer buffer(sizeof header + cached.pages.size() * sizeof(uint64_t));
  const std::span<std::byte> bytes = buffer.bytes();
  std::memcpy(bytes.data(), &header, sizeof header);
  std::ranges::copy(std::as_bytes(std::span(cached.pages)), &bytes[sizeof header]);
  header.crc = crc_of(bytes, header.count);
  std::memcpy(bytes.data(), &header, sizeof header);
  CHECK(defect_of(bytes, cached.node) == nullptr);

  const std::string path = cached_pages_path(directory, cached.node);
  const std::string fresh = path + ".new";
  ATOLL_ASSIGN(const bool is_left, file_system.exists(fresh));
  if (is_left) {
    ATOLL_TRY(file_system.remove(fresh));
  }
  ATOLL_ASSIGN(auto file, file_system.create(fresh, bytes.size()));
  const std::span<const std::byte> slice = bytes;
  ATOLL_TRY(file->write(0, {&slice, 1}));
  return file_system.rename(fresh, path);
}

Result<std::optional<CachedPages>> read_cached_pages(FileSystem& file_system,
                                                     const std::string& directory, uint32_t node) {
  const std::string path = cached_pages_path(directory, node);
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  if (!exists) return std::nullopt;
  ATOLL_ASSIGN(const auto file, file_system.open_for_reading(path));
  ATOLL_ASSIGN(const uint64_t size, file->size());
  IoBuffer buffer(std::min(size, kMaxBytes));
  ATOLL_ASSIGN(const uint64_t count, file->read(0, buffer.bytes()));
  const std::span<const std::byte> bytes = buffer.bytes().first(count);
  if (const char* defect = defect_of(bytes, node)) {
    return make_error(ExitCode::corruption, path + ": " + defect);
  }
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  CHECK(header.count <= kMaxCachedPages && header.node == node);
  CachedPages cached;
  std::ranges::copy(header.cluster_uuid, cached.cluster_uuid.begin());
  cached.node = header.node;
  cached.snapshot = header.snapshot;
  cached.pages.resize(header.count);
  std::memcpy(cached.pages.data(), &bytes[sizeof header], header.count * sizeof(uint64_t));
  return cached;
}

}  // namespace atolldb
