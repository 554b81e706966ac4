// Runs of ascending keys in a replay: they leave what single records leave, and the newest version
// of each key wins (R92).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/checkpoint/replayed_record.h"
#include "engine/mastertree/inspect.h"
#include "tests/engine/checkpoint/random_work.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr size_t kBatch = RecordWriter::kBatch;

/// A whole record of storage `storage_id`.
class WholeRecord {
 public:
  WholeRecord(uint32_t storage_id, const std::string& key, const std::string& payload, Vid vid)
      : words_(LogRecord::bytes(static_cast<uint32_t>(key.size()),
                                static_cast<uint32_t>(payload.size())) /
               sizeof(uint64_t)) {
    auto* record = reinterpret_cast<LogRecord*>(words_.data());
    record->type = LogType::insert;
    record->key_bytes = static_cast<uint16_t>(key.size());
    record->length = static_cast<uint32_t>(words_.size() * sizeof(uint64_t));
    record->storage_id = storage_id;
    record->payload_bytes = static_cast<uint16_t>(payload.size());
    record->vid = vid.word();
    if (!key.empty()) std::memcpy(record->key(), key.data(), key.size());
    if (!payload.empty()) std::memcpy(record->payload(), payload.data(), payload.size());
  }
  const LogRecord* get() const { return reinterpret_cast<const LogRecord*>(words_.data()); }

 private:
  std::vector<uint64_t> words_;
};

std::string key_of_number(uint64_t number) {
  const uint64_t swapped = __builtin_bswap64(number);
  return {reinterpret_cast<const char*>(&swapped), sizeof swapped};
}

class PutRun : public testing::Test {
 protected:
  static TestClusterOptions cluster_options() {
    TestClusterOptions options;
    options.clock = false;
    options.start_epoch = 1000;
    return options;
  }

  /// Stores the records in the way of a replay: the first of them in runs, others one by one.
  /// Returns the number of records that were stored in runs.
  size_t store(uint32_t worker, const std::vector<WholeRecord>& records) {
    RecordWriter writer(*cluster_.worker(worker).transaction);
    size_t in_runs = 0;
    for (size_t at = 0; at < records.size();) {
      std::array<const LogRecord*, kBatch> batch;
      const size_t count = std::min(kBatch, records.size() - at);
      for (size_t i = 0; i < count; ++i) batch[i] = records[at + i].get();
      std::array<std::optional<Replayed>, kBatch> results;
      size_t done = 0;
      EXPECT_EQ(writer.put_run(*storages_.tree, std::span(batch).first(count), results, done),
                Status::ok);
      in_runs += done;
      if (done == 0) results[done++].reset();
      for (size_t i = 0; i < done; ++i) {
        Replayed result = Replayed::older;
        if (results[i]) continue;
        EXPECT_EQ(put(writer, *batch[i], result), Status::ok);
      }
      at += done;
    }
    writer.end();
    cluster_.worker(worker).context->leave();
    return in_runs;
  }
  Status put(RecordWriter& writer, const LogRecord& record, Replayed& result) {
    return writer.put(*storages_.tree, record.key_span(), Vid(record.vid),
                      {record.payload(), record.payload_bytes}, result);
  }

  void expect_tree(const std::map<std::string, std::string>& expected) {
    std::string problem;
    const Content content = read_content(cluster_.worker(0), storages_, problem);
    EXPECT_EQ(problem, "");
    EXPECT_TRUE(content.tree == expected)
        << content.tree.size() << " records, expected " << expected.size();
    TreeStatistics statistics;
    EXPECT_EQ(check_tree(cluster_.view(), *storages_.tree, statistics), "");
    EXPECT_EQ(statistics.records, expected.size());
    EXPECT_EQ(statistics.tombstones, 0u);
  }

  static constexpr uint32_t kThreads = 3;
  TestCluster cluster_{1, kThreads, cluster_options()};
  StagedStorages storages_{cluster_};
};

TEST_F(PutRun, StoresKeysThatAscend) {
  constexpr uint64_t kRecords = 3000;
  std::vector<WholeRecord> records;
  std::map<std::string, std::string> expected;
  for (uint64_t i = 0; i < kRecords; ++i) {
    const std::string key = key_of_number(i * 10);
    expected[key] = "payload" + std::to_string(i);
    records.emplace_back(storages_.tree->id, key, expected[key], Vid::make(5, i + 1));
  }
  EXPECT_GT(store(0, records), kRecords / 4);  // a full page is divided by a single record
  expect_tree(expected);
  // A second time, nothing is new.
  EXPECT_EQ(store(0, records), 0u);
  expect_tree(expected);
}

TEST_F(PutRun, EndsBeforeAKeyThatDoesNotFollow) {
  RecordWriter writer(*cluster_.worker(0).transaction);
  const auto run = [&](const std::vector<std::string>& keys) {
    std::vector<WholeRecord> records;
    for (const std::string& key : keys) {
      records.emplace_back(storages_.tree->id, key, "p", Vid::make(5, 1));
    }
    std::vector<const LogRecord*> all;
    for (const WholeRecord& record : records) all.push_back(record.get());
    std::array<std::optional<Replayed>, kBatch> results;
    size_t done = kBatch;
    EXPECT_EQ(writer.put_run(*storages_.tree, all, results, done), Status::ok);
    for (size_t i = 0; i < done; ++i) EXPECT_TRUE(results[i] == Replayed::inserted);
    return done;
  };
  Replayed result = Replayed::older;
  EXPECT_EQ(run({"b", "c"}), 0u) << "the tree has no page yet";
  ASSERT_EQ(put(writer, *WholeRecord(storages_.tree->id, "b", "p", Vid::make(5, 1)).get(), result),
            Status::ok);
  EXPECT_EQ(run({"b"}), 0u) << "the page has the key";
  EXPECT_EQ(run({"a", "c"}), 0u) << "the page has a larger key";
  EXPECT_EQ(run({"c", "d", "d"}), 2u) << "a key comes twice";
  EXPECT_EQ(run({"e", std::string("e\0", 2), "f"}), 1u) << "two keys have the same slice";
  EXPECT_EQ(run({"g", "longer than a slice", "z"}), 1u) << "a key may need a layer";
  writer.end();
  cluster_.worker(0).context->leave();
  expect_tree({{"b", "p"}, {"c", "p"}, {"d", "p"}, {"e", "p"}, {"g", "p"}});
}

TEST_F(PutRun, TheNewestVersionWinsAmongThreads) {
  std::mt19937_64 random(seed());
  constexpr uint64_t kKeys = 2000;
  constexpr uint64_t kBlockKeys = 40;
  for (uint64_t round = 0; round < rounds(3, 30); ++round) {
    // Each block of keys comes twice, with other versions. All blocks come in any order.
    std::vector<std::vector<WholeRecord>> blocks;
    std::map<std::string, std::pair<uint64_t, std::string>> newest;
    for (uint64_t block = 0; block < 2 * kKeys / kBlockKeys; ++block) {
      auto& records = blocks.emplace_back();
      for (uint64_t i = 0; i < kBlockKeys; ++i) {
        const std::string key = key_of_number(block / 2 * kBlockKeys + i);
        const Vid vid = Vid::make(5 + 10 * round + random() % 9, 1 + block * kBlockKeys + i);
        std::string payload(random() % 50, static_cast<char>('a' + random() % 26));
        records.emplace_back(storages_.tree->id, key, payload, vid);
        auto& entry = newest[key];
        if (entry.first < vid.version()) entry = {vid.version(), payload};
      }
    }
    std::ranges::shuffle(blocks, random);
    {
      std::vector<std::jthread> threads;
      for (uint32_t thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
          for (size_t i = thread; i < blocks.size(); i += kThreads) store(thread, blocks[i]);
        });
      }
    }
    std::map<std::string, std::string> expected;
    for (const auto& [key, entry] : newest) expected[key] = entry.second;
    expect_tree(expected);
  }
}

}  // namespace
}  // namespace atolldb::test
