// A cluster with four tables of all types, their random records as CSV, and exports of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ops/export/csv.h"
#include "ops/export/row_format.h"
#include "ops/export/table_schema.h"
#include "tests/cluster/restored_ledger.h"

namespace atolldb::test {

inline constexpr const char* kTables[] = {"tree", "list", "heap", "map"};
inline constexpr uint64_t kListRecords = 20'000;

/// A Master-tree, an array, a sequential storage and a hash storage.
inline constexpr const char* kSchema = R"toml(
[[table]]
name = "tree"
type = "mastertree"
payload_bytes = 60
key = [
  { name = "id", type = "u64", offset = 0 },
  { name = "name", type = "varchar(20)", offset = 8 },
]
column = [
  { name = "amount", type = "decimal(12,2)", offset = 0 },
  { name = "at", type = "timestamp", offset = 8, null = 0 },
  { name = "note", type = "char(40)", offset = 16 },
  { name = "flags", type = "bytes(4)", offset = 56 },
]
[[table]]
name = "list"
type = "array"
payload_bytes = 16
key = [ { name = "i", type = "u32", first = 1 } ]
column = [ { name = "a", type = "i64", offset = 0 }, { name = "b", type = "f64", offset = 8 } ]
[[table]]
name = "heap"
type = "sequential"
payload_bytes = 8
column = [
  { name = "n", type = "u64", offset = 0 },
  { name = "text", type = "varchar(200)", offset = 8 },
]
[[table]]
name = "map"
type = "hash"
payload_bytes = 8
key = [
  { name = "id", type = "u64", offset = 0 },
  { name = "name", type = "varchar(20)", offset = 8 },
]
column = [ { name = "n", type = "u64", offset = 0 } ]
)toml";

/// A cluster of real processes, whose tables a test exports and imports.
class ExportCluster : public testing::Test {
 protected:
  ExportCluster() {
    config_.cluster.restart = RestartPolicy::never;
    config_.cluster.hang_limit = std::chrono::minutes(2);
    config_.gleaner.interval = std::chrono::hours(1);  // only the tests take snapshots
    config_.memory.volatile_pool = uint64_t{64} << 20;
    std::ofstream(file_) << to_toml(config_);
    std::ofstream(schema_) << kSchema;
  }
  ~ExportCluster() override {
    if (launcher_) {
      kill(launcher_->pid(), SIGKILL);
      launcher_->wait();
    }
  }

  void start() {
    launcher_ = std::make_unique<LauncherProcess>(config_);
    ASSERT_EQ(launcher_->next_line(), "running");
  }
  void stop() {
    kill(launcher_->pid(), SIGTERM);
    EXPECT_EQ(launcher_->wait(), 0);
    launcher_.reset();
  }
  /// Kills the launcher, and so all other processes.
  void kill_all() {
    kill(launcher_->pid(), SIGKILL);
    launcher_->wait();
    launcher_.reset();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  }
  void create_storages() {
    ASSERT_EQ(atoll({"storage", "create", "tree", "--type", "mastertree"}).code, 0);
    ASSERT_EQ(atoll({"storage", "create", "list", "--type", "array", "--payload-bytes", "16",
                     "--records", std::to_string(kListRecords)})
                  .code,
              0);
    ASSERT_EQ(atoll({"storage", "create", "heap", "--type", "sequential"}).code, 0);
    ASSERT_EQ(atoll({"storage", "create", "map", "--type", "hash"}).code, 0);
  }

  std::vector<std::string> of_cluster(std::vector<std::string> words) const {
    words.insert(words.end(), {"-c", file_});
    return words;
  }
  Ran atoll(std::vector<std::string> words) const {
    return runner_.atoll(of_cluster(std::move(words)));
  }
  Ran import(const std::string& table, const std::string& csv,
             std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"import", table, csv, "--schema", schema_};
    words.insert(words.end(), more.begin(), more.end());
    return atoll(std::move(words));
  }
  Ran export_to(const std::string& directory, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"export", directory, "--schema", schema_};
    words.insert(words.end(), more.begin(), more.end());
    return atoll(std::move(words));
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  std::vector<std::string> pins() const { return pins_in(config_.cluster.data_dir); }

  std::string write_csv(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  /// Makes random records of a table as CSV.
  std::string random_csv(const TableSchema& table, uint64_t rows) {
    std::string text = header_row(table);
    std::string payload;
    std::string key;
    for (uint64_t i = 0; i < rows; ++i) {
      const auto number = [&] {
        const uint64_t bits = random_();
        return std::string(reinterpret_cast<const char*>(&bits), 8);
      };
      if (table.name == "tree" || table.name == "map") {
        // The first digits of the number depend on `i`, so no key occurs twice.
        const uint64_t id = __builtin_bswap64(i * (UINT64_MAX / rows) + random_() % 1'000);
        key = std::string(reinterpret_cast<const char*>(&id), 8) + word(20);
        payload = number();
      }
      if (table.name == "tree") {
        const auto amount = static_cast<int64_t>(random_() % 1'999'999'999'999) - 999'999'999'999;
        const uint64_t at = random_() % 3 == 0 ? 0 : random_() % 253'402'300'800'000'000;
        payload = std::string(60, '\0');
        std::memcpy(payload.data(), &amount, 8);
        std::memcpy(payload.data() + 8, &at, 8);
        const std::string note = word(40);
        payload.replace(16, note.size(), note);
        payload.replace(56, 4, number().substr(0, 4));
      } else if (table.name == "list") {
        const uint64_t index = __builtin_bswap64(i);
        key = std::string(reinterpret_cast<const char*>(&index), 8);
        const double real = static_cast<double>(random_()) / 3.0;
        payload = number() + std::string(reinterpret_cast<const char*>(&real), 8);
      } else if (table.name == "heap") {
        payload = number() + word(200);
      }
      const auto done =
          append_row(table, key, std::as_bytes(std::span(payload.data(), payload.size())), text);
      EXPECT_TRUE(done) << done.error();
    }
    return text;
  }
  std::string word(uint64_t most) {
    constexpr std::string_view kLetters = "abcxyz \",\r\n'\xc3\xa9";
    std::string letters;
    for (uint64_t n = random_() % (most / 2 + 1); n > 0; --n) {
      const char letter = kLetters[random_() % (kLetters.size() - 1)];
      letters += letter == '\xc3' ? "\xc3\xa9" : std::string(1, letter);
    }
    return letters;
  }

  using Rows = std::multiset<std::vector<std::string>>;
  using Tables = std::map<std::string, Rows>;

  /// Returns the rows of all parts as sets of fields, without their order.
  static Rows rows_of(const std::vector<std::string>& files) {
    Rows rows;
    for (const std::string& file : files) {
      std::ifstream stream(file, std::ios::binary);
      CsvReader reader(stream, file);
      CsvRow row;
      for (bool is_header = true;; is_header = false) {
        const auto has_row = reader.next(row);
        EXPECT_TRUE(has_row) << has_row.error().message;
        if (!has_row || !*has_row) break;
        std::vector<std::string> fields;
        for (const CsvField& field : row.fields) {
          fields.push_back(field.is_null() ? "(null)" : field.text);
        }
        if (!is_header) rows.insert(fields);
      }
    }
    return rows;
  }
  static std::vector<std::string> parts_of(const std::string& folder,
                                           const std::string& suffix = ".csv") {
    std::vector<std::string> parts;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == suffix) parts.push_back(entry.path());
    }
    std::ranges::sort(parts);
    return parts;
  }
  /// Compares the export in the directory of this name.
  void expect_tables(const std::string& name, const Tables& expected) const {
    for (const auto& [table, rows] : expected) {
      SCOPED_TRACE(name + "/" + table);
      EXPECT_EQ(rows_of(parts_of(path(name) + "/" + table)), rows);
    }
    EXPECT_TRUE(pins().empty());
  }
  /// Returns the text of each CSV file of an export, by its path in the export.
  static std::map<std::string, std::string> files_of(const std::string& directory) {
    std::map<std::string, std::string> files;
    for (const char* table : kTables) {
      for (const std::string& part : parts_of(directory + "/" + table)) {
        files[std::filesystem::relative(part, directory)] = read_text(part);
      }
    }
    return files;
  }

  /// Creates the storages, imports random records, and returns the CSV files by table.
  std::map<std::string, std::string> fill(uint64_t rows) {
    std::map<std::string, std::string> files;
    create_storages();
    const auto schema = parse_export_schema(kSchema, "schema");
    EXPECT_TRUE(schema) << schema.error().message;
    for (const char* table : kTables) {
      files[table] = write_csv(std::string(table) + ".csv", random_csv(*schema->find(table), rows));
      const Ran ran = import(table, files[table]);
      EXPECT_EQ(ran.code, 0) << ran.error;
    }
    return files;
  }

  TestFolder folder_;
  CliRunner runner_{folder_};
  Config config_ = folder_.config("export-source");
  std::string file_ = folder_.path() + "/source.toml";
  std::string schema_ = folder_.path() + "/schema.toml";
  std::mt19937_64 random_{seed()};
  std::unique_ptr<LauncherProcess> launcher_;
};

}  // namespace atolldb::test
