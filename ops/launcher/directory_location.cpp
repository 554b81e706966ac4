#include "ops/launcher/directory_location.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "shared/base/unique_fd.h"
#include "shared/file/directory_table.h"

namespace atolldb {
namespace {

/// Has the layout of <linux/fs.h> in Linux 6.9. The installed headers may be older than the kernel.
struct FileSystemUuid {
  uint8_t length;
  uint8_t bytes[16];
};
constexpr unsigned long kGetFileSystemUuid = _IOR(0x15, 0, FileSystemUuid);

constexpr long kF2fsMagic = 0xF2F52010;
constexpr long kBtrfsMagic = 0x9123683E;
constexpr long kOverlayMagic = 0x794c7630;
constexpr long kExfatMagic = 0x2011BAB0;

std::string hexadecimal(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// Returns f_fsid if the file system derives it from the id in its superblock; on btrfs also from
/// the subvolume. Returns an empty text for other file systems, which derive it from the device
/// number.
std::string fsid_of(const struct statfs& info) {
  const long type = info.f_type;
  if (type != EXT4_SUPER_MAGIC && type != kBtrfsMagic && type != kF2fsMagic) return "";
  std::array<uint8_t, sizeof info.f_fsid> bytes{};
  std::memcpy(bytes.data(), &info.f_fsid, bytes.size());
  if (std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; })) return "";
  return "fsid " + hexadecimal(bytes);
}

std::string file_system_of(int directory) {
  struct statfs info{};
  if (fstatfs(directory, &info) != 0) return "";
  // The id of an overlay file system is not used, because it may be given only at the mount.
  if (info.f_type == kOverlayMagic) return "";
  // Tries f_fsid first, because older kernels also have it. So an upgrade of the kernel does not
  // make a known directory look like a copy.
  if (std::string fsid = fsid_of(info); !fsid.empty()) return fsid;
  FileSystemUuid uuid{};
  if (ioctl(directory, kGetFileSystemUuid, &uuid) != 0) return "";
  const size_t length = std::min<size_t>(uuid.length, sizeof uuid.bytes);
  const std::span<const uint8_t> bytes(uuid.bytes, length);
  if (std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; })) return "";
  return "uuid " + hexadecimal(bytes);
}

/// Returns the inode. Returns 0 on file systems that number their files when they are opened,
/// because a remount changes these numbers.
uint64_t inode_of(int directory, const struct stat& info) {
  struct statfs file_system{};
  if (fstatfs(directory, &file_system) != 0) return 0;
  const long type = file_system.f_type;
  if (type == FUSE_SUPER_MAGIC || type == MSDOS_SUPER_MAGIC || type == kExfatMagic) return 0;
  return info.st_ino;
}

std::string first_word(const char* path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

/// Returns the text as a JSON file stores it: bytes that are not UTF-8 are replaced. Paths may
/// contain such bytes.
std::string as_stored(const std::string& text) {
  const nlohmann::json stored(text);
  return nlohmann::json::parse(
      stored.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void add_difference(std::string& all, const char* what, const std::string& recorded,
                    const std::string& present) {
  if (recorded.empty() || present.empty() || recorded == present) return;
  all += fmt::format("{}its {} was {} and is {}", all.empty() ? "" : ", ", what, recorded, present);
}

/// Returns an empty text for 0 (unknown).
std::string number_text(uint64_t number) { return number == 0 ? "" : std::to_string(number); }

}  // namespace

Result<DirectoryLocation> locate_directory(const std::string& directory) {
  const UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info{};
  if (!fd.is_open() || fstat(fd.get(), &info) != 0) {
    return make_error(ExitCode::failed, directory + ": cannot be examined: " +
                                            std::strerror(errno) + ": check its permissions");
  }
  return DirectoryLocation{as_stored(canonical_path(directory)), file_system_of(fd.get()),
                           inode_of(fd.get(), info), first_word("/etc/machine-id"),
                           first_word("/sys/class/dmi/id/product_uuid")};
}

std::string difference(const DirectoryLocation& recorded, const DirectoryLocation& present) {
  std::string all;
  add_difference(all, "path", recorded.path, present.path);
  add_difference(all, "inode", number_text(recorded.inode), number_text(present.inode));
  // Only ids of the same kind ("fsid" or "uuid") can be compared.
  const bool is_comparable = recorded.file_system.substr(0, 4) == present.file_system.substr(0, 4);
  if (is_comparable) {
    add_difference(all, "file system", recorded.file_system, present.file_system);
  }
  add_difference(all, "machine", recorded.machine, present.machine);
  add_difference(all, "hardware", recorded.hardware, present.hardware);
  return all;
}

}  // namespace atolldb
