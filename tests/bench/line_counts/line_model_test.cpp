// The model of caches: known sequences, and random ones against a naive model.
#include "bench/line_counts/line_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "bench/common/random.h"
#include "tests/support/seed.h"

namespace atolldb::bench {
namespace {

TEST(LineModel, CountsTheFirstAccessOfEachWorkerOnce) {
  LineModel model(2, 4);
  EXPECT_EQ(model.read(0, 3), Touch::first);
  EXPECT_EQ(model.read(0, 3), Touch::hit);
  EXPECT_EQ(model.read(1, 3), Touch::first);
  EXPECT_EQ(model.read(0, 3), Touch::hit);
  EXPECT_EQ(model.copy_count(3), 2u);
  EXPECT_EQ(model.write(0, 3), Touch::upgrade);
  EXPECT_EQ(model.write(0, 2), Touch::first);
  EXPECT_EQ(model.write(0, 2), Touch::hit);
  EXPECT_EQ(model.copy_count(1), 0u);
}

TEST(LineModel, SeparatesFirstAccessesToDirtyLines) {
  LineModel model(4, 2);
  EXPECT_EQ(model.write(0, 0), Touch::first);
  EXPECT_EQ(model.read(1, 0), Touch::first_of_dirty);
  EXPECT_EQ(model.read(2, 0), Touch::first);  // worker 0 has written the line back
  EXPECT_EQ(model.write(1, 0), Touch::upgrade);
  EXPECT_EQ(model.write(3, 0), Touch::first_of_dirty);
  EXPECT_EQ(model.read(0, 0), Touch::miss);
  EXPECT_EQ(model.read(0, 1), Touch::first);
  EXPECT_EQ(model.write(0, 1), Touch::hit);  // no other cache has the line
  EXPECT_EQ(model.read(3, 1), Touch::first_of_dirty);
}

TEST(LineModel, CountsAMissAfterAWriteOfAnotherWorker) {
  LineModel model(3, 1);
  EXPECT_EQ(model.read(0, 0), Touch::first);
  EXPECT_EQ(model.read(1, 0), Touch::first);
  EXPECT_EQ(model.write(2, 0), Touch::first);
  EXPECT_EQ(model.copy_count(0), 1u);
  EXPECT_EQ(model.read(0, 0), Touch::miss);
  EXPECT_EQ(model.read(0, 0), Touch::hit);
  EXPECT_EQ(model.write(1, 0), Touch::miss);
  EXPECT_FALSE(model.has_copy(0, 0));
  EXPECT_FALSE(model.has_copy(2, 0));
  EXPECT_EQ(model.write(1, 0), Touch::hit);
}

TEST(LineModel, CountsAnUpgradeIfAWriterHasACopyThatOthersHaveToo) {
  LineModel model(2, 1);
  EXPECT_EQ(model.read(0, 0), Touch::first);
  EXPECT_EQ(model.read(1, 0), Touch::first);
  EXPECT_EQ(model.write(0, 0), Touch::upgrade);
  EXPECT_EQ(model.write(0, 0), Touch::hit);
  EXPECT_EQ(model.read(1, 0), Touch::miss);
  EXPECT_EQ(model.write(1, 0), Touch::upgrade);
  EXPECT_EQ(model.read(0, 0), Touch::miss);
}

/// Keeps the accesses of each line, and says again from its definition what an access costs.
class NaiveModel {
 public:
  Touch access(uint32_t worker, uint64_t line, bool is_write) {
    std::vector<uint32_t>& users = users_since_write_[line];  // begins with the writer
    const bool is_dirty =
        !users.empty() && std::ranges::count(users, users[0]) == std::ssize(users);
    if (is_write) users.clear();
    if (is_write || !users.empty()) users.push_back(worker);
    std::map<uint32_t, bool>& valid = lines_[line];  // by worker that has touched the line
    const bool is_first = !valid.contains(worker);
    const bool has_copy = !is_first && valid[worker];
    bool others = false;
    for (auto& [other, is_valid] : valid) {
      if (other == worker || !is_valid) continue;
      others = true;
      if (is_write) is_valid = false;
    }
    valid[worker] = true;
    if (is_first) return is_dirty ? Touch::first_of_dirty : Touch::first;
    if (!has_copy) return Touch::miss;
    return is_write && others ? Touch::upgrade : Touch::hit;
  }

 private:
  std::map<uint64_t, std::map<uint32_t, bool>> lines_;
  std::map<uint64_t, std::vector<uint32_t>> users_since_write_;
};

TEST(LineModel, AgreesWithTheNaiveModelForRandomAccesses) {
  Random random(test::seed());
  // More than 64 workers need several words for a set of workers.
  for (const uint32_t workers : {1u, 2u, 64u, 65u, 200u}) {
    constexpr uint32_t kLines = 20;
    LineModel model(workers, kLines);
    NaiveModel naive;
    for (int i = 0; i < 20'000; ++i) {
      const uint32_t worker = random.uniform(0, workers - 1);
      const uint32_t line = random.uniform(0, kLines - 1);
      const bool is_write = random.percent(20);
      const Touch touch = is_write ? model.write(worker, line) : model.read(worker, line);
      ASSERT_EQ(touch, naive.access(worker, line, is_write)) << workers << " workers, step " << i;
    }
  }
}

}  // namespace
}  // namespace atolldb::bench
