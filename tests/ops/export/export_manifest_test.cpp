// The manifest of an export, and its files.
#include "ops/export/export_manifest.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "ops/export/part_file.h"
#include "shared/file/posix_file_system.h"
#include "tests/support/seed.h"

namespace atolldb {
namespace {

namespace fs = std::filesystem;

class ExportManifestTest : public testing::Test {
 protected:
  ExportManifestTest() {
    std::string pattern = (fs::temp_directory_path() / "atoll_manifest_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~ExportManifestTest() override { fs::remove_all(folder_); }

  std::string text() const {
    std::ostringstream text;
    text << std::ifstream(export_manifest_path(folder_)).rdbuf();
    return text.str();
  }

  std::string folder_;
  PosixFileSystem files_;
};

ExportManifest random_manifest(std::mt19937_64& random) {
  ExportManifest manifest;
  manifest.pin = "atoll-export-" + std::to_string(random());
  manifest.cluster_uuid[3] = static_cast<uint8_t>(random());
  manifest.snapshot = static_cast<uint32_t>(random());
  manifest.epoch = random();
  manifest.schema_crc32c = static_cast<uint32_t>(random());
  manifest.input_crc32c = static_cast<uint32_t>(random());
  manifest.is_complete = random() % 2 == 0;
  for (uint64_t i = random() % 5; i > 0; --i) {
    ExportTable table{"t" + std::to_string(i), {{"c", "decimal(4,2)"}}, {}};
    table.storage = static_cast<uint32_t>(random());
    for (uint64_t part = random() % 5; part > 0; --part) {
      table.parts.push_back({{random(), random()},
                             random() % 2 == 0,
                             random(),
                             random(),
                             static_cast<uint32_t>(random())});
    }
    manifest.tables.push_back(std::move(table));
  }
  return manifest;
}

TEST_F(ExportManifestTest, IsReadAsItWasWritten) {
  std::mt19937_64 random(test::seed());
  const auto none = read_export_manifest(files_, folder_);
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
  for (uint32_t round = 0; round < 50; ++round) {
    const ExportManifest manifest = random_manifest(random);
    ASSERT_TRUE(write_export_manifest(files_, folder_, manifest));
    const auto read = read_export_manifest(files_, folder_);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_TRUE(read->has_value());
    ASSERT_EQ(**read, manifest);
  }
}

TEST_F(ExportManifestTest, AnyChangedDigitIsDamage) {
  std::mt19937_64 random(test::seed());
  ExportManifest manifest = random_manifest(random);
  ASSERT_TRUE(write_export_manifest(files_, folder_, manifest));
  const std::string good = text();
  for (size_t at = 0; at < good.size(); ++at) {
    if (good[at] < '0' || good[at] > '9') continue;
    std::string bad = good;
    bad[at] = bad[at] == '9' ? '8' : '9';
    std::ofstream(export_manifest_path(folder_)) << bad;
    const auto read = read_export_manifest(files_, folder_);
    ASSERT_FALSE(read) << "offset " << at << " of " << good;
    EXPECT_EQ(read.error().code, ExitCode::corruption);
    EXPECT_NE(read.error().message.find("export.json"), std::string::npos);
  }
}

TEST_F(ExportManifestTest, HasNamesForAllParts) {
  EXPECT_EQ(part_name(0), "part-0000.csv");
  EXPECT_EQ(part_name(kMaxTableParts - 1), "part-1023.csv");
}

TEST_F(ExportManifestTest, APartHasItsNameOnlyWhenItIsComplete) {
  const std::string path = folder_ + "/part";
  auto file = PartFile::create(path, 0);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(file->write("one,"));
  ASSERT_TRUE(file->write("two\n"));
  EXPECT_FALSE(fs::exists(path));
  const auto missing = sum_of_part(path);
  ASSERT_TRUE(missing);
  EXPECT_EQ(*missing, PartSum{});
  const auto sum = file->finish();
  ASSERT_TRUE(sum) << sum.error().message;
  EXPECT_EQ(sum->bytes, 8u);
  const auto read = sum_of_part(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, *sum);
  std::ofstream(path) << "one,twO\n";
  EXPECT_NE(sum_of_part(path)->crc32c, sum->crc32c);
  auto full = PartFile::create(path, UINT64_MAX / 2);
  ASSERT_TRUE(full);
  const auto refused = full->write("x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::disk_full);
  EXPECT_FALSE(PartFile::create(folder_ + "/none/part", 0));
}

}  // namespace
}  // namespace atolldb
