// All YCSB workloads on several nodes and workers in this process, verified.
#include <gtest/gtest.h>

#include <numeric>

#include "bench/common/clock.h"
#include "engine/api/storage_lookup.h"
#include "tests/bench/ycsb/database.h"
#include "tests/support/seed.h"

namespace atolldb::ycsb {
namespace {

using test::YcsbDatabase;

struct Setting {
  const char* workload;
  uint32_t nodes;
  uint32_t workers;
  uint32_t operations;
  bool is_array;
  bool is_ordered;
  uint32_t fields;
};

JobInput input_of(const Setting& setting) {
  JobInput input;
  const Workload* workload = find_workload(setting.workload);
  input.mix = workload->mix;
  input.distribution = workload->distribution;
  input.records = 3'001;
  input.operations = setting.operations;
  input.is_array = setting.is_array;
  input.is_ordered = setting.is_ordered;
  input.shape = {setting.fields == 1 ? 100 : 320u, setting.fields};
  input.seed = test::seed();
  return input;
}

TEST(BlindUpdates, TearNothingAndCountNoUpdates) {
  JobInput input;
  input.records = 2'000;
  input.mix = {50, 50, 0, 0, 0};
  input.blind_updates = input.prefetch = true;
  input.seed = test::seed();
  YcsbDatabase database(1, 2, input);
  const RunSummary& run = database.run(100);
  EXPECT_EQ(run.ended_early, "");
  EXPECT_NE(run.commits[static_cast<uint32_t>(Operation::update)], 0u);
  EXPECT_EQ(run.updates, 0u) << "such an update counts nothing";
  EXPECT_EQ(run.torn_reads, 0u);
  EXPECT_EQ(database.verify(), std::vector<std::string>());
}

class Run : public testing::TestWithParam<Setting> {};

TEST_P(Run, LosesNothingAndTearsNothing) {
  const Setting& setting = GetParam();
  YcsbDatabase database(setting.nodes, setting.workers, input_of(setting));
  for (int round = 0; round < 2; ++round) {
    const RunSummary& run = database.run(100);
    EXPECT_EQ(run.ended_early, "");
    EXPECT_GT(run.tps, 0);
    uint64_t commits = 0;
    for (uint32_t type = 0; type < kTypes; ++type) {
      EXPECT_EQ(run.latency[type].count(), run.commits[type]) << kTypeNames[type];
      const bool is_expected = setting.operations == 1
                                   ? type < kOperations && database.input.mix[type] != 0
                                   : type == kManyOperations;
      EXPECT_EQ(run.commits[type] != 0, is_expected) << kTypeNames[type];
      commits += run.commits[type];
    }
    const Mix& mix = database.input.mix;
    const bool writes = percent_of(mix, Operation::update) != 0 ||
                        percent_of(mix, Operation::read_modify_write) != 0;
    EXPECT_EQ(run.updates != 0, writes);
    EXPECT_LE(run.updates, commits * setting.operations);
    EXPECT_EQ(run.scanned_records != 0, percent_of(mix, Operation::scan) != 0);
    if (setting.nodes > 1) {
      EXPECT_GT(run.engine.remote_accesses, 0u);
    }
  }
  EXPECT_EQ(database.verify(), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, Run,
    testing::Values(Setting{"A", 2, 1, 1, false, false, 1}, Setting{"A", 1, 3, 1, true, false, 5},
                    Setting{"A", 2, 2, 10, false, false, 10},
                    Setting{"A", 2, 2, 10, true, false, 1}, Setting{"B", 2, 1, 1, false, true, 10},
                    Setting{"C", 2, 1, 1, true, false, 1}, Setting{"C", 1, 1, 1, false, false, 1},
                    Setting{"D", 2, 2, 1, false, false, 1}, Setting{"D", 3, 1, 4, false, true, 1},
                    Setting{"E", 2, 1, 1, false, true, 1}, Setting{"E", 1, 2, 3, false, false, 1},
                    Setting{"F", 2, 2, 1, false, false, 10}, Setting{"F", 2, 1, 10, true, false, 1},
                    Setting{"silor", 2, 2, 1, false, false, 1}),
    [](const auto& instance) {
      const Setting& setting = instance.param;
      return std::string(setting.workload) + "_" + std::to_string(setting.nodes) + "nodes_" +
             std::to_string(setting.workers) + "workers_" + std::to_string(setting.operations) +
             "operations_" + std::to_string(setting.fields) + "fields_" +
             (setting.is_array     ? "array"
              : setting.is_ordered ? "ordered"
                                   : "hashed");
    });

TEST(Scans, ReturnTheRecordsThatFollowInTheirPartition) {
  for (const bool is_array : {false, true}) {
    JobInput input;
    input.records = 300;
    input.is_array = is_array;
    input.is_ordered = true;
    YcsbDatabase database(2, 1, input);
    Table table = database.table();
    for (const auto& [first, length, expected] :
         {std::tuple{0u, 100u, 100u}, {40u, 1u, 1u}, {100u, 100u, 50u}, {149u, 7u, 1u}}) {
      for (uint32_t node = 0; node < 2; ++node) {
        Observed observed;
        database.transact([&](Transaction& txn) {
          observed = {};
          return table.scan(txn, database.id_of(node, first), length, observed);
        });
        EXPECT_EQ(observed.scanned, expected) << first << " " << length;
        EXPECT_EQ(observed.torn, 0u);
      }
    }
  }
}

TEST(WrongStorages, AreAnErrorOfEachJob) {
  JobInput input;
  input.records = 1'000;
  input.is_array = true;
  test::TestCluster cluster(2, 1);
  const auto specs = storage_specs(input, 2);
  cluster.create(std::string(specs[0].name), specs[0].type, specs[0].payload_bytes + 100,
                 specs[0].record_count);
  cluster.create(std::string(specs[1].name), specs[1].type, specs[1].payload_bytes,
                 specs[1].record_count);
  const auto fault = [&](const JobInput& asked) {
    const auto table = Table::open(*cluster.view().control, asked, 2);
    return table ? std::string() : table.error().message;
  };
  EXPECT_NE(fault(input).find("storage \"ycsb_records\": its records have"), std::string::npos)
      << fault(input);
  StorageControl& records = *find_storage(*cluster.view().control, kRecordsStorage);
  records.payload_bytes = specs[0].payload_bytes;
  EXPECT_EQ(fault(input), "");
  JobInput more = input;
  more.records = 100'000;
  EXPECT_NE(fault(more).find("storage \"ycsb_records\": it has"), std::string::npos) << fault(more);
  JobInput few = input;
  few.records = 1;
  EXPECT_NE(fault(few).find("1 records on 2 nodes"), std::string::npos) << fault(few);
}

TEST(RunTimesOfAJob, HaveLimitsAndAWaitForTheStartCanBeStopped) {
  JobInput input;
  input.records = 100;
  YcsbDatabase database(1, 1, input);
  constexpr uint64_t kSecondNs = 1'000'000'000;
  const auto fault = [&] {
    const auto output = database.try_job(kRunJob)[0];
    return output ? std::string() : output.error().message;
  };
  bench::RunTimes& times = database.input.times;
  times.start_ns = bench::monotonic_ns() + 600 * kSecondNs;
  EXPECT_NE(fault().find("at most 60 s"), std::string::npos) << fault();
  times = {.run_ms = bench::RunTimes::kMaxMs + 1};
  EXPECT_NE(fault().find("at most 86400000"), std::string::npos) << fault();
  times = {.warmup_ms = ~uint64_t{0}, .run_ms = 1};
  EXPECT_NE(fault().find("at most 86400000"), std::string::npos) << fault();
  const uint64_t before_ns = bench::monotonic_ns();
  times = {.start_ns = before_ns + 50 * kSecondNs, .run_ms = 1};
  database.stop = true;
  const auto output = database.try_job(kRunJob)[0];
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_NE(output->find("the job was cancelled"), std::string::npos) << *output;
  EXPECT_LT(bench::monotonic_ns(), before_ns + 40 * kSecondNs);
}

TEST(MissingStorages, AreAnErrorThatNamesTheFirst) {
  JobInput input;
  input.records = 10;
  test::TestCluster cluster(1, 1);
  EXPECT_NE(Table::open(*cluster.view().control, input, 1).error().message.find("ycsb_records"),
            std::string::npos);
}

}  // namespace
}  // namespace atolldb::ycsb
