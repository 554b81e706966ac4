// Damaged, interrupted and refused backups and restores.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "engine/log/log_files.h"
#include "ops/launcher/directory_owner.h"
#include "shared/file/io_buffer.h"
#include "tests/engine/log/hooked_file_system.h"
#include "tests/ops/backup/made_backup.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

std::string folder_of(const BackupManifest& manifest) { return backup_path(kBackups, manifest.id); }

/// Expects an error with this code whose message has all of these parts.
template <typename T>
void expect_error(const Result<T>& result, ExitCode code, const std::vector<std::string>& parts) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code) << result.error().message;
  for (const std::string& part : parts) {
    EXPECT_NE(result.error().message.find(part), std::string::npos)
        << part << " is not in: " << result.error().message;
  }
}

TEST(BackupDamage, OfEachFileIsFoundAndNamed) {
  std::mt19937_64 random(seed());
  BackedUpData data;
  const BackupManifest manifest = data.back_up();
  const std::string folder = folder_of(manifest);
  for (const BackupFile& file : manifest.files) {
    const std::string path = path_in(folder, file.path);
    SCOPED_TRACE(path);
    auto files = data.files().copy();
    files->bytes(path)[random() % file.bytes] ^= std::byte{1};
    expect_error(verify_backup(*files, folder, manifest, {}), ExitCode::corruption,
                 {path, fmt::format("manifest says {:08x}", file.crc32c)});
    auto shorter = data.files().copy();
    shorter->bytes(path).resize(file.bytes - kIoBlockBytes);
    expect_error(verify_backup(*shorter, folder, manifest, {}), ExitCode::corruption,
                 {path, fmt::format("has {} bytes, the manifest says {}",
                                    file.bytes - kIoBlockBytes, file.bytes)});
    auto missing = data.files().copy();
    ASSERT_TRUE(missing->remove(path));
    expect_error(verify_backup(*missing, folder, manifest, {}), ExitCode::corruption,
                 {path, "is missing"});
  }
}

TEST(BackupDamage, OfAFileThatARestoreCopiesIsRefused) {
  std::mt19937_64 random(seed());
  BackedUpData data;
  const BackupManifest manifest = data.back_up();
  for (const BackupFile& file : manifest.files) {
    const bool is_copied =
        file.kind == BackupFileKind::log || file.path.ends_with("snapshot_2.atsnap");
    if (!is_copied) continue;
    const std::string path = path_in(folder_of(manifest), file.path);
    SCOPED_TRACE(path);
    auto files = data.files().copy();
    files->bytes(path)[random() % file.bytes] ^= std::byte{1};
    expect_error(restore(*files, manifest, 9, "/new"), ExitCode::corruption, {path});
    const auto owner = read_owner(*files, "/new");
    EXPECT_TRUE(owner && !*owner) << "a start-up must refuse the directory";
  }
}

TEST(BackupDamage, OfTheManifestIsFoundWhereverItIs) {
  std::mt19937_64 random(seed());
  BackedUpData data;
  const BackupManifest manifest = data.back_up();
  const std::string path = manifest_path(folder_of(manifest));
  const auto again = read_manifest(data.files(), folder_of(manifest));
  ASSERT_TRUE(again && *again);
  EXPECT_EQ(**again, manifest);
  // The flips hit only the text, not the newlines that pad it.
  const auto& bytes = data.files().bytes(path);
  uint64_t length = bytes.size();
  while (length > 0 && bytes[length - 1] == std::byte{'\n'}) --length;
  ASSERT_GT(length, 1'000u);
  const uint64_t count = rounds(300, 5'000);
  for (uint64_t i = 0; i < count; ++i) {
    auto files = data.files().copy();
    std::byte& byte = files->bytes(path)[random() % length];
    const std::byte before = byte;
    byte ^= static_cast<std::byte>(1u << random() % 8);
    const auto read = read_manifest(*files, folder_of(manifest));
    // A flip may turn a blank between two members into another blank, which changes nothing.
    if (read && *read && **read == manifest) continue;
    EXPECT_FALSE(read) << "byte " << static_cast<int>(before) << " became "
                       << static_cast<int>(byte);
    if (!read) {
      EXPECT_EQ(read.error().code, ExitCode::corruption);
    }
  }
}

TEST(BackupDamage, OfTheClustersLogFailsTheBackup) {
  // Removes the newest log file of one node. The log of the other node then names epochs as durable
  // that the removed file had. The log of node 0 is copied first.
  for (const std::string folder : {"/data/node0", "/fast/node1"}) {
    BackedUpData data;
    std::string last;
    for (const std::string& path : data.files().paths()) {
      if (path.starts_with(folder + "/log_")) last = std::max(last, path);
    }
    ASSERT_TRUE(data.files().remove(last));
    data.data.writers.clear();
    for (const bool is_running : {false, true}) {
      SCOPED_TRACE(folder + (is_running ? ", running" : ", stopped"));
      BackupRequest request = data.request(kFirstBackup);
      if (is_running) request.durable_epoch = 9;
      expect_error(take_backup(data.files(), request), ExitCode::corruption,
                   {"was durable", is_running ? folder.substr(0, 5) : folder});
      EXPECT_FALSE(find_backup(data.files(), kBackups, kFirstBackup));
      ASSERT_TRUE(remove_backup(data.files(), kBackups, kFirstBackup));
    }
  }
}

TEST(InterruptedBackup, IsIncompleteAndHarmsNothing) {
  std::printf("seed: none, nothing here is random\n");
  BackedUpData original;
  const BackupManifest first = original.back_up();
  bool is_done = false;
  for (uint64_t changes = 0; !is_done; ++changes) {
    SCOPED_TRACE(std::to_string(changes) + " changes before the kill");
    auto files = original.files().copy();
    BackupRequest request = original.request(kSecondBackup);
    request.previous = first;
    files->changes_left = changes;
    is_done = take_backup(*files, request).has_value();
    files->changes_left = UINT64_MAX;
    // Only a sync follows the write of the manifest, so a backup with a manifest is complete.
    const auto found = find_backup(*files, kBackups, kSecondBackup);
    if (found) {
      const auto intact = verify_backup(*files, folder_of(*found), *found, {});
      EXPECT_TRUE(intact) << intact.error().message;
      continue;
    }
    EXPECT_FALSE(is_done);
    const bool has_folder = *files->exists(backup_path(kBackups, kSecondBackup));
    expect_error(found, ExitCode::failed, {has_folder ? "is incomplete" : "holds no backup"});
    if (has_folder) {
      ASSERT_TRUE(remove_backup(*files, kBackups, kSecondBackup));
    }
    const auto again = take_backup(*files, request);
    ASSERT_TRUE(again) << again.error().message;
    const auto intact = verify_backup(*files, folder_of(first), first, {});
    EXPECT_TRUE(intact) << intact.error().message;
  }
}

TEST(InterruptedBackup, MayBeRemovedInSteps) {
  BackedUpData original;
  const BackupManifest manifest = original.back_up();
  bool is_done = false;
  for (uint64_t changes = 0; !is_done; ++changes) {
    SCOPED_TRACE(std::to_string(changes) + " changes before the kill");
    auto files = original.files().copy();
    files->changes_left = changes;
    is_done = remove_backup(*files, kBackups, manifest.id).has_value();
    files->changes_left = UINT64_MAX;
    const auto found = find_backup(*files, kBackups, manifest.id);
    if (found) {
      EXPECT_TRUE(verify_backup(*files, folder_of(manifest), *found, {})) << "nothing was removed";
      continue;
    }
    if (!is_done && *files->exists(folder_of(manifest))) {
      EXPECT_TRUE(remove_backup(*files, kBackups, manifest.id));
    }
    EXPECT_FALSE(*files->exists(folder_of(manifest)));
  }
}

TEST(InterruptedRestore, IsRefusedByAStartAndBeginsAgain) {
  BackedUpData original;
  const BackupManifest manifest = original.back_up();
  bool is_done = false;
  for (uint64_t changes = 0; !is_done; ++changes) {
    SCOPED_TRACE(std::to_string(changes) + " changes before the kill");
    auto files = original.files().copy();
    files->changes_left = changes;
    is_done = restore(*files, manifest, 7, "/new").has_value();
    files->changes_left = UINT64_MAX;
    ASSERT_TRUE(files->make_directory("/new"));
    const auto owner = read_owner(*files, "/new");
    ASSERT_TRUE(owner);
    if (*owner) {
      EXPECT_TRUE(check_data_directory(*files, "/new", locate_in_memory));
      expect_error(restore(*files, manifest, 7, "/new"), ExitCode::failed, {"/new: is not empty"});
    } else {
      EXPECT_FALSE(is_done);
      const auto names = files->list("/new");
      ASSERT_TRUE(names);
      const bool is_begun = *files->exists(restoring_path("/new"));
      EXPECT_TRUE(is_begun || std::ranges::all_of(*names,
                                                  [](const std::string& name) {
                                                    return name == "owner.restoring.new";
                                                  }))
          << "data without a mark";
      if (is_begun) {
        expect_error(check_data_directory(*files, "/new", locate_in_memory), ExitCode::identity,
                     {"owner.restoring", "was interrupted"});
      }
      const auto again = restore(*files, manifest, 8, "/new");
      ASSERT_TRUE(again) << again.error().message;
    }
    const auto start = examine(*files, "/new", {});
    ASSERT_TRUE(start) << start.error().message;
    EXPECT_EQ(start->recovery_epoch, *owner ? 7u : 8u);
  }
}

TEST(InterruptedRestore, TouchesNoDirectoryWithOtherContent) {
  BackedUpData data;
  const BackupManifest manifest = data.back_up();
  for (const char* name : {"/new/owner", "/new/coordinator/savepoint", "/new/precious"}) {
    auto files = data.files().copy();
    const std::string path = name;
    ASSERT_TRUE(files->make_directory(path.substr(0, path.rfind('/'))));
    ASSERT_TRUE(files->create(path, kIoBlockBytes));
    const auto before = files->paths();
    expect_error(restore(*files, manifest, 9, "/new"), ExitCode::failed, {"/new: is not empty"});
    EXPECT_EQ(files->paths(), before);
  }
}

/// Copies everything durably onto a file system that loses its power.
void copy_to(MemoryFileSystem& from, PowerCutFileSystem& to) {
  for (const std::string& path : from.paths()) {
    const auto& bytes = from.bytes(path);
    const std::string directory = path.substr(0, path.rfind('/'));
    ASSERT_TRUE(to.make_directory(directory));
    const auto file = to.create(path, bytes.size());
    ASSERT_TRUE(file);
    IoBuffer buffer(kIoBlockBytes);
    for (uint64_t offset = 0; offset < bytes.size(); offset += kIoBlockBytes) {
      const auto block = std::span(bytes).subspan(offset, kIoBlockBytes);
      if (std::ranges::all_of(block, [](std::byte byte) { return byte == std::byte{}; })) continue;
      std::ranges::copy(block, buffer.bytes().begin());
      const std::array<std::span<const std::byte>, 1> slices = {buffer.bytes()};
      ASSERT_TRUE((*file)->write(offset, slices));
    }
    ASSERT_TRUE((*file)->sync());
    ASSERT_TRUE(to.sync_directory(directory));
  }
  ASSERT_TRUE(to.make_directory(kBackups));
}

TEST(BackupPowerCut, ABackupWithAManifestIsComplete) {
  std::mt19937_64 random(seed());
  BackedUpData original;
  const BackupManifest first = original.back_up();
  const uint64_t count = rounds(40, 1'000);
  uint64_t complete = 0;
  for (uint64_t round = 0; round < count; ++round) {
    PowerCutFileSystem disk;
    ASSERT_NO_FATAL_FAILURE(copy_to(original.files(), disk));
    BackupRequest request = original.request(kSecondBackup);
    if (random() % 2 == 0) request.previous = first;
    HookedFileSystem killed(disk, {}, random() % 200);
    const bool is_done = take_backup(killed, request).has_value();
    const uint64_t cut_seed = random();
    SCOPED_TRACE("cut " + std::to_string(cut_seed));
    const auto image = disk.cut(cut_seed);
    const auto old = verify_backup(*image, folder_of(first), first, {});
    ASSERT_TRUE(old) << old.error().message;
    const auto found = find_backup(*image, kBackups, kSecondBackup);
    if (is_done) {
      ASSERT_TRUE(found) << found.error().message;
    }
    if (!found) continue;
    ++complete;
    const auto intact = verify_backup(*image, folder_of(*found), *found, {});
    ASSERT_TRUE(intact) << intact.error().message;
  }
  EXPECT_GT(complete, 0u);
}

TEST(BackupPowerCut, ARestoredDirectoryWithAnOwnerIsComplete) {
  std::mt19937_64 random(seed());
  BackedUpData original;
  const BackupManifest manifest = original.back_up();
  const uint64_t count = rounds(40, 1'000);
  uint64_t complete = 0;
  for (uint64_t round = 0; round < count; ++round) {
    PowerCutFileSystem disk;
    ASSERT_NO_FATAL_FAILURE(copy_to(original.files(), disk));
    HookedFileSystem killed(disk, {}, random() % 150);
    const bool is_done = restore(killed, manifest, 8, "/new").has_value();
    const uint64_t cut_seed = random();
    SCOPED_TRACE("cut " + std::to_string(cut_seed));
    const auto image = disk.cut(cut_seed);
    ASSERT_TRUE(image->make_directory("/new"));
    const auto owner = read_owner(*image, "/new");
    ASSERT_TRUE(owner) << owner.error().message;
    if (is_done) {
      ASSERT_TRUE(owner->has_value());
    }
    if (!*owner) {
      const auto again = restore(*image, manifest, 8, "/new");
      ASSERT_TRUE(again) << again.error().message;
    }
    ++complete;
    const auto start = examine(*image, "/new", {});
    ASSERT_TRUE(start) << start.error().message;
    EXPECT_EQ(start->recovery_epoch, 8u);
    ASSERT_TRUE(check_data_directory(*image, "/new", locate_in_memory));
  }
  EXPECT_GT(complete, 0u);
}

}  // namespace
}  // namespace atolldb::test
