// The rows of CSV files in batches, and which batches an earlier import has committed.
#include "ops/export/import_source.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "tests/support/seed.h"

namespace atolldb {
namespace {

namespace fs = std::filesystem;

class ImportSourceTest : public testing::Test {
 protected:
  ImportSourceTest() {
    std::string pattern = (fs::temp_directory_path() / "atoll_import_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    const auto schema = parse_export_schema(
        "[[table]]\nname = \"t\"\ntype = \"sequential\"\npayload_bytes = 8\n"
        "column = [ { name = \"n\", type = \"u64\", offset = 0 } ]\n",
        "s.toml");
    EXPECT_TRUE(schema) << schema.error().message;
    table_ = schema->tables.front();
  }
  ~ImportSourceTest() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  /// Writes the numbers [first, first + count) as a file.
  std::string write_numbers(const std::string& name, uint64_t first, uint64_t count) const {
    std::string text = "n\n";
    for (uint64_t i = first; i < first + count; ++i) text += std::to_string(i) + "\n";
    return write(name, text);
  }
  std::unique_ptr<ImportSource> open(const std::vector<std::string>& paths) const {
    auto source = ImportSource::open(table_, paths);
    EXPECT_TRUE(source) << source.error().message;
    return source ? *std::move(source) : nullptr;
  }
  std::string memory() const { return folder_ + "/memory"; }

  std::string folder_;
  TableSchema table_;
};

TEST_F(ImportSourceTest, GivesEachRowOnceInBatchesOfOneFile) {
  const uint64_t many = kMaxBatchRows + 1;
  const auto source =
      open({write_numbers("a", 0, many), write("b", "n\n"), write_numbers("c", many, 3)});
  ASSERT_NE(source, nullptr);
  std::vector<size_t> sizes;
  uint64_t next = 0;
  for (;;) {
    const auto batch = source->next();
    ASSERT_TRUE(batch) << batch.error().message;
    if (batch->rows.empty()) break;
    sizes.push_back(batch->rows.size());
    EXPECT_EQ(batch->file, next < many ? 0u : 2u);
    for (const CsvRow& row : batch->rows) EXPECT_EQ(row.fields.at(0).text, std::to_string(next++));
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{kMaxBatchRows, 1, 3}));
  EXPECT_EQ(source->bytes_read(), source->bytes());
  EXPECT_TRUE(source->next()->rows.empty()) << "the end stays the end";
}

TEST_F(ImportSourceTest, RefusesFilesThatItCannotRead) {
  const auto refuse = [&](const std::vector<std::string>& paths, const std::string& why) {
    const auto source = ImportSource::open(table_, paths);
    ASSERT_FALSE(source);
    EXPECT_NE(source.error().message.find(why), std::string::npos) << source.error().message;
  };
  refuse({}, "expected 1 to 10000 files, got 0");
  refuse(std::vector<std::string>(kMaxImportFiles + 1, "none"), "got 10001");
  refuse(std::vector<std::string>(kMaxImportFiles, folder_ + "/none"), "none: cannot be read");
  refuse({folder_}, "cannot be read");
  refuse({write("empty", "")}, "is empty");
  refuse({write("other", "m\n1\n")}, "other:1: \"m\": table \"t\" has no such column");
}

TEST_F(ImportSourceTest, LeavesOutWhatAnEarlierRunHasFinished) {
  std::mt19937_64 random(test::seed());
  for (uint64_t round = 0; round < test::rounds(20, 1'000); ++round) {
    fs::remove(memory());
    const uint64_t first = 1 + random() % 2'000;
    const uint64_t second = 1 + random() % 2'000;
    const std::vector<std::string> paths = {write_numbers("a", 0, first),
                                            write_numbers("b", first, second)};
    std::multiset<uint64_t> finished;
    uint64_t left_out = 0;
    for (uint32_t run = 0; run < 4; ++run) {
      const auto source = open(paths);
      ASSERT_NE(source, nullptr);
      const auto remembered = source->remember_in(memory(), "storage 1", 7);
      ASSERT_TRUE(remembered) << remembered.error().message;
      left_out = 0;
      // All runs but the last finish only some of the batches, and not in their order.
      for (;;) {
        const auto batch = source->next();
        ASSERT_TRUE(batch) << batch.error().message;
        if (batch->rows.empty()) break;
        if (run < 3 && random() % 2 == 0) continue;
        ASSERT_TRUE(source->finish(*batch));
        for (const CsvRow& row : batch->rows) finished.insert(std::stoull(row.fields.at(0).text));
      }
      left_out = source->rows_left_out();
      // Simulates a crash that tears the line of a batch.
      if (random() % 2 == 0) std::ofstream(memory(), std::ios::app) << "0 2 ";
    }
    ASSERT_EQ(finished.size(), first + second) << "a row was lost or came twice";
    ASSERT_EQ(std::set<uint64_t>(finished.begin(), finished.end()).size(), first + second);
    ASSERT_LE(left_out, first + second);
  }
}

TEST_F(ImportSourceTest, RefusesTheMemoryOfAnotherImport) {
  const std::string path = write_numbers("a", 0, 10);
  ASSERT_TRUE(open({path})->remember_in(memory(), "storage 1", 7));
  ASSERT_TRUE(open({path})->remember_in(memory(), "storage 1", 7));
  const auto refuse = [&](uint32_t schema, const std::string& why,
                          const std::string& target = "storage 1") {
    const auto remembered = open({path})->remember_in(memory(), target, schema);
    ASSERT_FALSE(remembered);
    EXPECT_NE(remembered.error().message.find(why), std::string::npos)
        << remembered.error().message;
  };
  refuse(8, "another table, schema or files");
  refuse(7, "into another cluster or storage", "storage 2");
  {
    const auto other = open({path});
    ASSERT_TRUE(other->remember_in(memory(), "storage 1", 7));
    refuse(7, "another `atoll import` runs with it");
  }
  std::ofstream(memory(), std::ios::app) << "0 9 9\n";
  refuse(7, "the line \"0 9 9\" is damaged");
  fs::remove(memory());
  ASSERT_TRUE(open({path})->remember_in(memory(), "storage 1", 7));
  std::ofstream(memory(), std::ios::app) << "0 2 10 0 10 12\n";
  refuse(7, "the line \"0 2 10 0 10 12\" is damaged");
  fs::remove(memory());
  ASSERT_TRUE(open({path})->remember_in(memory(), "storage 1", 7));
  write_numbers("a", 0, 11);
  refuse(7, "another table, schema or files");
}

/// A file of the same name and size whose rows differ, or may differ, is not continued.
TEST_F(ImportSourceTest, RefusesFilesThatHaveChangedWithoutAChangeOfTheirSize) {
  // All numbers have the same number of digits, so all files have the same size.
  constexpr uint64_t kFirst = 100'000;
  constexpr uint64_t kCount = 3 * kImportEndBytes / 7;
  const std::string path = write_numbers("a", kFirst, kCount);
  const fs::file_time_type changed = fs::last_write_time(path);
  ASSERT_TRUE(open({path})->remember_in(memory(), "storage 1", 7));
  const auto is_refused = [&] {
    const auto remembered = open({path})->remember_in(memory(), "storage 1", 7);
    return !remembered && remembered.error().message.contains("or these have changed");
  };
  EXPECT_FALSE(is_refused());
  const auto overwrite = [&](uint64_t offset, char byte) {
    std::fstream file(path, std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
  };
  const uint64_t size = fs::file_size(path);
  for (const uint64_t offset : {kImportEndBytes - 1, size - kImportEndBytes, size - 2}) {
    std::ifstream before(path);
    before.seekg(static_cast<std::streamoff>(offset));
    const auto old = static_cast<char>(before.get());
    overwrite(offset, 'x');
    fs::last_write_time(path, changed);
    EXPECT_TRUE(is_refused()) << "byte " << offset;
    overwrite(offset, old);
    fs::last_write_time(path, changed);
    EXPECT_FALSE(is_refused());
  }
  // Changes a byte in the middle. The ends of the file are the same, so only the time shows it.
  overwrite(size / 2, 'x');
  fs::last_write_time(path, changed + std::chrono::nanoseconds(1'000));
  EXPECT_TRUE(is_refused());
}

}  // namespace
}  // namespace atolldb
