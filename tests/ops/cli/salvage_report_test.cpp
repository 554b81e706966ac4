#include "ops/cli/salvage_report.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "engine/recovery/salvage.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb::cli {
namespace {

class SalvageReport : public testing::Test {
 protected:
  void write(uint32_t number, std::chrono::seconds age) const {
    const std::string path = salvage_report_path(data_dir_, number);
    std::ofstream(path) << "{}\n";
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - age);
  }

  test::TestFolder folder_;
  std::string data_dir_ = folder_.path();
};

TEST_F(SalvageReport, IsFoundThoughDiscardsTookTheNumbersBefore) {
  EXPECT_EQ(newest_salvage_report(data_dir_), "");
  write(2, std::chrono::seconds(0));
  EXPECT_EQ(newest_salvage_report(data_dir_), salvage_report_path(data_dir_, 2));
}

TEST_F(SalvageReport, IsTheOneThatWasWrittenLastWhateverItsNumber) {
  write(0, std::chrono::seconds(300));
  write(1, std::chrono::seconds(100));
  write(5, std::chrono::seconds(200));
  std::ofstream(data_dir_ + "/salvage-9.json.new") << "{";
  EXPECT_EQ(newest_salvage_report(data_dir_), salvage_report_path(data_dir_, 1));
}

TEST_F(SalvageReport, IsNotSoughtInADirectoryThatIsMissing) {
  EXPECT_EQ(newest_salvage_report(data_dir_ + "/missing"), "");
}

}  // namespace
}  // namespace atolldb::cli
