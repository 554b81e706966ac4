#include "engine/log/ddl_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/format/byte_stream.h"
#include "engine/format/crc32c.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

template <typename Archive>
void fields(Archive& archive, Described<Archive, DdlRecord>& record) {
  archive.enumerator(record.operation, DdlOperation::create_storage, DdlOperation::drop_storage);
  archive.enumerator(record.type, StorageType::none, kLastStorageType);
  archive(record.storage_id, record.epoch, record.payload_bytes, record.record_count, record.name);
}

namespace {

constexpr uint32_t kDdlMagic = 0x4c444441;  // "ADDL"
constexpr uint32_t kDdlVersion = 1;

///   0      4    8        12      16        24            40
///   [magic][crc][version][length][sequence][cluster uuid] record of `length` bytes
struct DdlHeader {
  uint32_t magic;
  uint32_t crc;  // CRC32C of bytes [8, 40 + length)
  uint32_t version;
  uint32_t length;
  uint64_t sequence;  // number of the record, from 0
  uint8_t cluster_uuid[16];
};
static_assert(sizeof(DdlHeader) == 40);
constexpr size_t kDdlChecked = offsetof(DdlHeader, version);
static_assert(sizeof(DdlHeader) + kMaxStorageName + 64 < kIoBlockBytes);

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{}; });
}

bool decode(std::span<const std::byte> bytes, DdlRecord& record) {
  ByteReader reader(bytes);
  reader(record);
  return reader.is_at_end() && record.name.size() <= kMaxStorageName;
}

/// Decodes the block as record number `sequence`. Returns why the record is damaged, or null if it
/// is intact.
const char* defect_of(std::span<const std::byte> block, uint64_t sequence,
                      const ClusterUuid& cluster_uuid, DdlRecord& record) {
  CHECK(block.size() == kIoBlockBytes);
  DdlHeader header;
  std::memcpy(&header, block.data(), sizeof header);
  if (header.magic != kDdlMagic) return "no record of the DDL log begins here";
  if (header.version != kDdlVersion) return "the record's format has another version";
  if (header.length > block.size() - sizeof header) return "the record's length is beyond its end";
  if (header.crc !=
      crc32c(block.subspan(kDdlChecked, sizeof header - kDdlChecked + header.length))) {
    return "the record's checksum is wrong";
  }
  if (header.sequence != sequence) return "the record is not the successor of the one before";
  if (!std::ranges::equal(header.cluster_uuid, cluster_uuid)) {
    return "the record belongs to another cluster";
  }
  if (!decode(block.subspan(sizeof header, header.length), record)) {
    return "the record's content is invalid";
  }
  return nullptr;
}

std::unexpected<Error> corruption(const std::string& what) {
  return make_error(ExitCode::corruption,
                    what +
                        ": the DDL log is damaged: restore a backup, or start "
                        "empty with `atoll up --discard-data`");
}

Result<std::vector<uint32_t>> ordinals_in(FileSystem& file_system, const std::string& directory) {
  std::vector<uint32_t> ordinals;
  ATOLL_ASSIGN(auto exists, file_system.exists(directory));
  if (!exists) return ordinals;
  ATOLL_ASSIGN(auto names, file_system.list(directory));
  for (const std::string& name : names) {
    if (const auto ordinal = parse_ddl_file_name(name)) ordinals.push_back(*ordinal);
  }
  std::ranges::sort(ordinals);
  return ordinals;
}

}  // namespace

Result<DdlContent> read_ddl_log(FileSystem& file_system, const std::string& data_dir,
                                const ClusterUuid& cluster_uuid, uint64_t durable_records) {
  const std::string directory = coordinator_directory(data_dir);
  ATOLL_ASSIGN(auto ordinals, ordinals_in(file_system, directory));
  DdlContent content;
  // Place and reason of the first block without an intact record. Empty until such a block is
  // found.
  std::string ended;
  IoBuffer buffer(kDdlFileBytes);
  uint32_t expected = 0;
  for (const uint32_t ordinal : ordinals) {
    const std::string path = path_in(directory, ddl_file_name(ordinal));
    ATOLL_ASSIGN(const auto file, file_system.open_for_reading(path));
    ATOLL_ASSIGN(const uint64_t bytes, file->read(0, buffer.bytes()));
    if (ordinal != expected && !is_zero(buffer.bytes().first(bytes))) {
      return corruption(path_in(directory, ddl_file_name(expected)) +
                        ": the file is missing, but later files hold records");
    }
    ++expected;
    for (uint64_t offset = 0; offset + kIoBlockBytes <= bytes; offset += kIoBlockBytes) {
      const auto block = buffer.bytes().subspan(offset, kIoBlockBytes);
      const std::string place = fmt::format("{}, offset {}: ", path, offset);
      DdlRecord record;
      const char* defect = nullptr;
      if (is_zero(block)) {
        defect = "nothing is written here";
      } else if (!ended.empty()) {
        return corruption(fmt::format("{}, but a later block is written, in {} at offset {}", ended,
                                      path, offset));
      } else {
        defect = defect_of(block, content.records.size(), cluster_uuid, record);
        if (defect != nullptr) content.torn = place + defect;
      }
      if (defect == nullptr) {
        content.records.push_back(std::move(record));
        content.next_ordinal = ordinal;
        content.next_offset = offset + kIoBlockBytes;
      } else if (ended.empty()) {
        ended = place + defect;
      }
    }
  }
  if (content.records.size() < durable_records) {
    if (ended.empty()) {
      ended = path_in(directory, ddl_file_name(expected)) + ": the file is missing";
    }
    return corruption(fmt::format("{}, but {} records were durable, of which {} are intact", ended,
                                  durable_records, content.records.size()));
  }
  return content;
}

Result<DdlLog> DdlLog::open(FileSystem& file_system, const std::string& data_dir,
                            const ClusterUuid& cluster_uuid) {
  DdlLog log(file_system, coordinator_directory(data_dir), cluster_uuid);
  ATOLL_ASSIGN(auto content, read_ddl_log(file_system, data_dir, cluster_uuid));
  log.content_ = std::move(content);
  // Syncs the records that were read, because a coordinator that crashed may not have synced the
  // last one. Callers rely on that record from now on, so a power cut must not remove it.
  if (!log.content_.records.empty()) {
    ATOLL_TRY(log.open_file());
    ATOLL_TRY(log.file_->sync());
    ATOLL_TRY(file_system.sync_directory(log.directory_));
  }
  return log;
}

Result<void> DdlLog::append(const DdlRecord& record) {
  if (failure_) return std::unexpected(*failure_);
  CHECK(record.name.size() <= kMaxStorageName);
  if (auto written = write(record); !written) {
    failure_ = written.error();
    return written;
  }
  content_.records.push_back(record);
  content_.next_offset += kIoBlockBytes;
  return {};
}

Result<void> DdlLog::write(const DdlRecord& record) {
  if (content_.next_offset == kDdlFileBytes) {
    file_.reset();
    ++content_.next_ordinal;
    content_.next_offset = 0;
  }
  if (!file_) {
    ATOLL_TRY(open_file());
  }
  CHECK(content_.next_offset % kIoBlockBytes == 0 && content_.next_offset < kDdlFileBytes);
  ByteWriter body;
  body(record);
  DdlHeader header = {kDdlMagic,
                      0,
                      kDdlVersion,
                      static_cast<uint32_t>(body.bytes().size()),
                      content_.records.size(),
                      {}};
  std::ranges::copy(cluster_uuid_, header.cluster_uuid);
  CHECK(sizeof header + header.length <= kIoBlockBytes);
  IoBuffer buffer(kIoBlockBytes);
  const std::span<std::byte> bytes = buffer.bytes();
  std::memcpy(bytes.data(), &header, sizeof header);
  std::ranges::copy(body.bytes(), bytes.begin() + sizeof header);
  header.crc = crc32c(bytes.subspan(kDdlChecked, sizeof header - kDdlChecked + header.length));
  std::memcpy(bytes.data(), &header, sizeof header);
  DdlRecord decoded;
  CHECK(defect_of(bytes, content_.records.size(), cluster_uuid_, decoded) == nullptr);
  CHECK(decoded == record);
  const std::array<std::span<const std::byte>, 1> slices = {bytes};
  ATOLL_TRY(file_->write(content_.next_offset, slices));
  return file_->sync();
}

Result<void> DdlLog::open_file() {
  CHECK(file_ == nullptr);
  const std::string path = path_in(directory_, ddl_file_name(content_.next_ordinal));
  ATOLL_TRY(file_system_->make_directory(directory_));
  ATOLL_ASSIGN(auto exists, file_system_->exists(path));
  // The file has no records yet. If it exists, a crash may have left it too short, so it is created
  // again.
  if (exists && content_.next_offset == 0) {
    ATOLL_TRY(file_system_->remove(path));
    exists = false;
  }
  ATOLL_ASSIGN(auto file,
               exists ? file_system_->open(path) : file_system_->create(path, kDdlFileBytes));
  ATOLL_ASSIGN(const uint64_t size, file->size());
  if (size < kDdlFileBytes) {  // damage has cut the file short after its last record
    ATOLL_TRY(file->grow(kDdlFileBytes));
  }
  if (!exists) {
    ATOLL_TRY(file->sync());
    ATOLL_TRY(file_system_->sync_directory(directory_));
  }
  file_ = std::move(file);
  return {};
}

}  // namespace atolldb
