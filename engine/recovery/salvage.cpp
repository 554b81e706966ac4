#include "engine/recovery/salvage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>

#include "engine/log/log_files.h"
#include "engine/log/savepoint.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
namespace {

constexpr std::string_view kMark = "salvage_";

std::string parent_of(const std::string& path) {
  CHECK(path.contains('/'));
  return path.substr(0, path.rfind('/'));
}
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string aside(const std::string& directory, uint32_t number) {
  return path_in(directory, fmt::format("discarded-{}", number));
}

/// Creates a file with these bytes, padded with `blank` to a whole block, and syncs it.
Result<void> write_whole(FileSystem& file_system, const std::string& path,
                         std::span<const std::byte> bytes, std::byte blank) {
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  if (exists) {
    ATOLL_TRY(file_system.remove(path));
  }
  IoBuffer buffer((bytes.size() + kIoBlockBytes - 1) / kIoBlockBytes * kIoBlockBytes);
  CHECK(buffer.bytes().size() >= bytes.size() && buffer.bytes().size() % kIoBlockBytes == 0);
  std::ranges::fill(buffer.bytes(), blank);
  std::ranges::copy(bytes, buffer.bytes().begin());
  ATOLL_ASSIGN(auto file, file_system.create(path, buffer.bytes().size()));
  const std::array<std::span<const std::byte>, 1> slices = {buffer.bytes()};
  ATOLL_TRY(file->write(0, slices));
  ATOLL_TRY(file->sync());
  return file_system.sync_directory(parent_of(path));
}

Result<std::string> read_whole(FileSystem& file_system, const std::string& path) {
  ATOLL_ASSIGN(auto file, file_system.open_for_reading(path));
  ATOLL_ASSIGN(const uint64_t size, file->size());
  IoBuffer buffer((size + kIoBlockBytes - 1) / kIoBlockBytes * kIoBlockBytes);
  ATOLL_ASSIGN(const uint64_t got, file->read(0, buffer.bytes()));
  return std::string(reinterpret_cast<const char*>(buffer.bytes().data()), got);
}

Result<void> copy_file(FileSystem& file_system, const std::string& from, const std::string& to) {
  ATOLL_ASSIGN(auto text, read_whole(file_system, from));
  return write_whole(file_system, to, std::as_bytes(std::span(text)), std::byte{0});
}

/// Returns the first number that has neither a report nor a savepoint in discarded-<number>.
Result<uint32_t> free_salvage_number(FileSystem& file_system, const std::string& data_dir) {
  for (uint32_t number = 0;; ++number) {
    ATOLL_ASSIGN(const bool is_used, file_system.exists(savepoint_path(aside(data_dir, number))));
    if (is_used) continue;
    ATOLL_ASSIGN(const bool has_report, file_system.exists(salvage_report_path(data_dir, number)));
    if (!has_report) return number;
  }
}

}  // namespace

std::string salvage_report_path(const std::string& data_dir, uint32_t number) {
  return path_in(data_dir, fmt::format("salvage-{}.json", number));
}

std::optional<uint32_t> parse_salvage_mark(std::string_view name) {
  if (!name.starts_with(kMark)) return std::nullopt;
  uint32_t number = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kMark.size(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

Result<std::optional<uint32_t>> find_salvage(FileSystem& file_system, const std::string& data_dir) {
  const std::string directory = coordinator_directory(data_dir);
  ATOLL_ASSIGN(const bool exists, file_system.exists(directory));
  if (!exists) return std::nullopt;
  ATOLL_ASSIGN(auto names, file_system.list(directory));
  for (const std::string& name : names) {
    if (const auto number = parse_salvage_mark(name)) return number;
  }
  return std::nullopt;
}

Result<void> begin_salvage(FileSystem& file_system, const std::string& data_dir) {
  ATOLL_ASSIGN(auto under_way, find_salvage(file_system, data_dir));
  if (under_way) return {};
  ATOLL_ASSIGN(const bool exists, file_system.exists(savepoint_path(data_dir)));
  if (!exists) {
    return make_error(ExitCode::failed, data_dir +
                                            ": there is no savepoint, so nothing can be salvaged: "
                                            "restore a backup, or start without `--salvage`");
  }
  ATOLL_ASSIGN(auto number, free_salvage_number(file_system, data_dir));
  const std::string target = coordinator_directory(aside(data_dir, number));
  ATOLL_TRY(file_system.make_directory(target));
  ATOLL_TRY(copy_file(file_system, savepoint_path(data_dir), path_in(target, "savepoint")));
  ATOLL_TRY(file_system.sync_directory(data_dir));
  const std::string mark =
      path_in(coordinator_directory(data_dir), fmt::format("{}{}", kMark, number));
  CHECK(parse_salvage_mark(name_of(mark)) == number);
  return write_whole(file_system, mark, {}, std::byte{0});
}

Result<std::string> read_salvage_report(FileSystem& file_system, const std::string& data_dir,
                                        uint32_t number) {
  const std::string path = salvage_report_path(data_dir, number);
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  return exists ? read_whole(file_system, path) : std::string();
}

Result<void> write_salvage_report(FileSystem& file_system, const std::string& data_dir,
                                  uint32_t number, const std::string& report) {
  const std::string path = salvage_report_path(data_dir, number);
  ATOLL_TRY(write_whole(file_system, path + ".new", std::as_bytes(std::span(report)),
                        static_cast<std::byte>('\n')));
  ATOLL_TRY(file_system.rename(path + ".new", path));
  return file_system.sync_directory(parent_of(path));
}

Result<void> give_up_salvage(FileSystem& file_system, const std::string& data_dir,
                             uint32_t number) {
  ATOLL_ASSIGN(const bool exists, file_system.exists(salvage_report_path(data_dir, number)));
  return exists ? Result<void>() : end_salvage(file_system, data_dir, number);
}

Result<void> end_salvage(FileSystem& file_system, const std::string& data_dir, uint32_t number) {
  const std::string directory = coordinator_directory(data_dir);
  ATOLL_TRY(file_system.remove(path_in(directory, fmt::format("{}{}", kMark, number))));
  return file_system.sync_directory(directory);
}

Result<void> move_aside(FileSystem& file_system, const std::vector<std::string>& paths,
                        uint32_t number) {
  for (const std::string& path : paths) {
    const std::string folder = parent_of(path);
    const std::string target = path_in(aside(parent_of(folder), number), name_of(folder));
    ATOLL_TRY(file_system.make_directory(target));
    ATOLL_TRY(file_system.rename(path, path_in(target, name_of(path))));
    ATOLL_TRY(file_system.sync_directory(target));
    ATOLL_TRY(file_system.sync_directory(folder));
  }
  return {};
}

}  // namespace atolldb
