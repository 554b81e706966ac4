// Damaged pages in a running cluster (R56). Reads of their range fail, everything else continues,
// snapshots included. The scrub finds the damage. A salvage starts without the pages and reports
// what is missing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "engine/format/log_block.h"
#include "engine/format/tree_page.h"
#include "engine/recovery/salvage.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "ops/cluster/cluster.h"
#include "shared/file/posix_file_system.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kKeptKeys = 3000;

/// Keys differ in their second slice only, so all are in one layer.
std::string kept_key(uint64_t i) { return fmt::format("prefix--{:08}", i); }

class SnapshotDamageTest : public testing::Test {
 protected:
  SnapshotDamageTest() {
    std::printf("seed: none, nothing here is random\n");
    config_.durability.mode = DurabilityMode::durable;
    config_.gleaner.interval = std::chrono::hours(1);  // only the test takes snapshots
    config_.snapshot.scrub_interval = std::chrono::milliseconds(100);
  }

  void up() {
    auto cluster = Cluster::launch(config_, LaunchMode::thread);
    ASSERT_TRUE(cluster) << cluster.error().message;
    cluster_ = *std::move(cluster);
    auto session = cluster_->connect_session(0);
    ASSERT_TRUE(session) << session.error().message;
    session_ = *std::move(session);
  }
  void down() {
    session_.reset();
    const auto ended = cluster_->shutdown();
    ASSERT_TRUE(ended) << ended.error().message;
    cluster_.reset();
  }
  Status put(uint64_t key, uint64_t value) {
    KvRequest request;
    request.put("kept", kv_bytes(kept_key(key)), std::as_bytes(std::span(&value, 1)));
    return session_->call("kv.txn", request.bytes()).status;
  }
  /// With Status::ok, `value` is the value found, or 0 if there is none.
  Status get(uint64_t key, uint64_t& value) {
    KvRequest request;
    request.get("kept", kv_bytes(kept_key(key)));
    const SessionReply reply = session_->call("kv.txn", request.bytes());
    value = 0;
    if (reply.status != Status::ok) return reply.status;
    const auto results = read_kv_reply(reply.output, request.bytes());
    EXPECT_TRUE(results);
    if (!results) return Status::invalid_argument;
    const KvResultView& one = results->front();
    if (one.status == Status::ok) std::memcpy(&value, one.value.data(), sizeof value);
    return Status::ok;
  }
  void take() {
    const auto taken = cluster_->coordinator(ControlOperation::snapshot_take, Json::object());
    ASSERT_TRUE(taken) << taken.error().message;
  }
  /// Writes all keys, each with its number plus 1, and takes a snapshot.
  void fill() {
    ASSERT_NO_FATAL_FAILURE(up());
    const auto created = cluster_->create_storage("kept", StorageType::mastertree, 8);
    ASSERT_TRUE(created) << created.error().message;
    storage_ = *created;
    for (uint64_t key = 0; key < kKeptKeys;) {
      KvRequest request;
      for (uint64_t end = key + 100; key < end; ++key) {
        const uint64_t value = key + 1;
        request.put("kept", kv_bytes(kept_key(key)), std::as_bytes(std::span(&value, 1)));
      }
      ASSERT_EQ(session_->call("kv.txn", request.bytes()).status, Status::ok) << key;
    }
    ASSERT_NO_FATAL_FAILURE(take());
  }

  /// Flips a bit in the first border page of a file of any node whose records include the key.
  void damage_page_of(uint64_t key) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(config_.cluster.data_dir)) {
      if (entry.path().extension() != ".atsnap") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      std::vector<char> page(kPageBytes);
      for (uint64_t at = kPageBytes;
           file.seekg(static_cast<std::streamoff>(at)) && file.read(page.data(), kPageBytes);
           at += kPageBytes) {
        const auto* header = reinterpret_cast<const PageHeader*>(page.data());
        const std::string_view bytes(page.data(), page.size());
        if (header->type != PageType::mastertree_border || header->layer != 1) continue;
        if (bytes.find(big_slice(key)) == std::string_view::npos) continue;
        damaged_file_ = entry.path();
        damaged_at_ = at + 2000;
        return flip();
      }
    }
    FAIL() << "no page has key " << key;
  }
  /// Damages the page, or repairs it if it is damaged.
  void flip() const {
    std::fstream file(damaged_file_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(damaged_at_));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(damaged_at_));
    file.put(static_cast<char>(byte ^ 1));
  }
  /// Returns the slice as it is stored in a page.
  static std::string big_slice(uint64_t key) {
    uint64_t slice = 0;
    const std::string rest = kept_key(key).substr(8);
    for (size_t i = 0; i < rest.size(); ++i) {
      slice |= static_cast<uint64_t>(static_cast<unsigned char>(rest[i])) << (56 - 8 * i);
    }
    return {reinterpret_cast<const char*>(&slice), sizeof slice};
  }

  struct Counts {
    uint64_t right = 0;
    uint64_t missing = 0;
    uint64_t unreadable = 0;
    uint64_t wrong = 0;
  };
  Counts read_all(const std::map<uint64_t, uint64_t>& changed = {}) {
    Counts counts;
    for (uint64_t key = 0; key < kKeptKeys; ++key) {
      uint64_t value = 0;
      const Status status = get(key, value);
      const auto found = changed.find(key);
      const uint64_t right = found == changed.end() ? key + 1 : found->second;
      if (status == Status::snapshot_unreadable) {
        ++counts.unreadable;
      } else if (status != Status::ok) {
        ADD_FAILURE() << to_string(status);
      } else if (value == 0) {
        ++counts.missing;
      } else {
        ++(value == right ? counts.right : counts.wrong);
      }
    }
    return counts;
  }
  Json damage() {
    const auto answer = cluster_->coordinator(ControlOperation::snapshot_damage, Json::object());
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *answer : Json::object();
  }

  TestFolder folder_;
  Config config_ = folder_.config("damaged", 1);
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<SessionClient> session_;
  std::string damaged_file_;
  uint64_t damaged_at_ = 0;
  uint32_t storage_ = 0;
};

TEST_F(SnapshotDamageTest, MakesOneRangeUnreadableAndStopsNothingElse) {
  ASSERT_NO_FATAL_FAILURE(fill());
  ASSERT_NO_FATAL_FAILURE(down());
  ASSERT_NO_FATAL_FAILURE(damage_page_of(1234));
  ASSERT_NO_FATAL_FAILURE(up());
  const Counts before = read_all();
  EXPECT_EQ(before.wrong, 0u);
  EXPECT_EQ(before.missing, 0u);
  EXPECT_GT(before.unreadable, 0u);
  EXPECT_LT(before.unreadable, 200u);
  EXPECT_EQ(put(1234, 7), Status::snapshot_unreadable);
  std::map<uint64_t, uint64_t> changed;
  for (uint64_t round = 0; round < 3; ++round) {
    for (const uint64_t key : {10ull, 500ull, 2900ull}) {
      changed[key] = 10'000 + round;
      ASSERT_EQ(put(key, changed[key]), Status::ok);
    }
    ASSERT_NO_FATAL_FAILURE(take());
  }
  const Counts after = read_all(changed);
  EXPECT_EQ(after.unreadable, before.unreadable);
  EXPECT_EQ(after.right, kKeptKeys - before.unreadable);
  ASSERT_NO_FATAL_FAILURE(down());
}

TEST_F(SnapshotDamageTest, OfAPageInMemoryIsNotSeenBeforeTheNextStartAndLosesNoCommit) {
  ASSERT_NO_FATAL_FAILURE(fill());
  ASSERT_NO_FATAL_FAILURE(damage_page_of(1234));
  std::map<uint64_t, uint64_t> changed;
  for (uint64_t round = 0; round < 3; ++round) {
    changed[1234] = 20'000 + round;
    ASSERT_EQ(put(1234, changed[1234]), Status::ok);
    ASSERT_NO_FATAL_FAILURE(take());
    EXPECT_EQ(damage()["unreadable"].size(), 1u) << damage().dump();
    EXPECT_EQ(read_all(changed).right, kKeptKeys) << "all of it is in memory";
  }
  ASSERT_NO_FATAL_FAILURE(down());
  ASSERT_NO_FATAL_FAILURE(up());
  const Counts cold = read_all(changed);
  EXPECT_GT(cold.unreadable, 0u);
  EXPECT_LT(cold.unreadable, 200u);
  EXPECT_EQ(cold.right, kKeptKeys - cold.unreadable);
  ASSERT_NO_FATAL_FAILURE(down());
  // Repairs the file. A salvage then restores all records, and applies the held records (R56).
  flip();
  PosixFileSystem files;
  ASSERT_TRUE(begin_salvage(files, config_.cluster.data_dir));
  ASSERT_NO_FATAL_FAILURE(up());
  EXPECT_EQ(read_all(changed).right, kKeptKeys);
  ASSERT_NO_FATAL_FAILURE(down());
}

TEST_F(SnapshotDamageTest, IsFoundByTheScrub) {
  ASSERT_NO_FATAL_FAILURE(fill());
  ASSERT_TRUE(eventually([&] { return damage()["nodes"][0]["cycles"].get<uint64_t>() > 0; }));
  EXPECT_EQ(damage()["nodes"][0]["damaged"], 0u);
  ASSERT_NO_FATAL_FAILURE(damage_page_of(1234));
  EXPECT_TRUE(eventually([&] { return damage()["nodes"][0]["damaged"] == 1u; }));
  const Json found = damage()["nodes"][0]["damage"];
  ASSERT_EQ(found.size(), 1u) << found.dump();
  EXPECT_EQ(found[0]["file"], damaged_file_);
  EXPECT_EQ(found[0]["storage"], storage_);
  const auto status = cluster_->coordinator(ControlOperation::status, Json::object());
  ASSERT_TRUE(status);
  EXPECT_TRUE(eventually([&] {
    const auto now = cluster_->coordinator(ControlOperation::status, Json::object());
    return now && (*now)["nodes"][0]["scrub"]["damaged"] == 1u;
  }));
  ASSERT_NO_FATAL_FAILURE(down());
}

TEST_F(SnapshotDamageTest, IsOmittedByASalvageWhichKeepsTheRestAndTheOldFiles) {
  ASSERT_NO_FATAL_FAILURE(fill());
  ASSERT_NO_FATAL_FAILURE(down());
  ASSERT_NO_FATAL_FAILURE(damage_page_of(1234));
  PosixFileSystem files;
  const auto begun = begin_salvage(files, config_.cluster.data_dir);
  ASSERT_TRUE(begun) << begun.error().message;
  ASSERT_NO_FATAL_FAILURE(up());
  const Counts counts = read_all();
  EXPECT_EQ(counts.unreadable, 0u);
  EXPECT_EQ(counts.wrong, 0u);
  EXPECT_GT(counts.missing, 0u);
  EXPECT_LT(counts.missing, 200u);
  EXPECT_EQ(put(1234, 7), Status::ok) << "the range can be used again";
  const auto report = nlohmann::json::parse(
      read_text(salvage_report_path(config_.cluster.data_dir, 0)), nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["ranges"].size(), 1u) << report.dump(2);
  EXPECT_EQ(report["ranges"][0]["name"], "kept");
  EXPECT_TRUE(damage()["unreadable"].empty()) << "it is given up, and was told of";
  const std::string aside = config_.cluster.data_dir + "/discarded-0";
  EXPECT_TRUE(std::filesystem::exists(aside + "/coordinator/savepoint"));
  const std::string file = std::filesystem::path(damaged_file_).filename();
  EXPECT_TRUE(std::filesystem::exists(aside + "/node0/" + file));
  EXPECT_FALSE(std::filesystem::exists(damaged_file_));
  const auto mark = find_salvage(files, config_.cluster.data_dir);
  ASSERT_TRUE(mark);
  EXPECT_FALSE(*mark);
  ASSERT_NO_FATAL_FAILURE(down());
  ASSERT_NO_FATAL_FAILURE(up());
  EXPECT_EQ(read_all({{1234, 7}}).unreadable, 0u);
  ASSERT_NO_FATAL_FAILURE(down());
}

/// The salvage must end although the metadata of a pinned snapshot are damaged. If it did not end,
/// every later start-up would be a salvage, and omit further damage without being asked.
TEST_F(SnapshotDamageTest, OfThePinnedMetadataDoesNotKeepASalvageFromItsEnd) {
  ASSERT_NO_FATAL_FAILURE(fill());
  const auto pinned = cluster_->coordinator(ControlOperation::snapshot_pin, Json::object());
  ASSERT_TRUE(pinned) << pinned.error().message;
  const auto pin = (*pinned)["id"].get<uint32_t>();
  ASSERT_EQ(put(77, 7), Status::ok);
  ASSERT_NO_FATAL_FAILURE(take());
  ASSERT_NO_FATAL_FAILURE(down());
  const std::string metadata = snapshot_metadata_path(config_.cluster.data_dir, pin);
  ASSERT_TRUE(std::filesystem::remove(metadata)) << metadata;
  PosixFileSystem files;
  ASSERT_TRUE(begin_salvage(files, config_.cluster.data_dir));
  ASSERT_NO_FATAL_FAILURE(up());
  EXPECT_EQ(read_all({{77, 7}}).right, kKeptKeys);
  EXPECT_TRUE(std::filesystem::exists(salvage_report_path(config_.cluster.data_dir, 0)));
  const auto mark = find_salvage(files, config_.cluster.data_dir);
  ASSERT_TRUE(mark);
  EXPECT_FALSE(*mark);
  ASSERT_NO_FATAL_FAILURE(down());
}

/// With `keep = 2`, the start-up uses the snapshot before the damaged one, and the log after it
/// (R55).
TEST_F(SnapshotDamageTest, OfTheNewestMetadataLosesNothingWhereAnOlderSnapshotIsKept) {
  config_.snapshot.keep = 2;
  ASSERT_NO_FATAL_FAILURE(fill());
  std::map<uint64_t, uint64_t> changed;
  for (const uint64_t key : {10ull, 500ull, 2900ull}) {
    changed[key] = 10'000 + key;
    ASSERT_EQ(put(key, changed[key]), Status::ok);
  }
  ASSERT_NO_FATAL_FAILURE(take());
  changed[77] = 7;
  ASSERT_EQ(put(77, 7), Status::ok);
  const auto status = cluster_->coordinator(ControlOperation::status, Json::object());
  ASSERT_TRUE(status);
  const auto newest = (*status)["snapshots"]["newest"].get<uint32_t>();
  ASSERT_NO_FATAL_FAILURE(down());
  const std::string metadata = snapshot_metadata_path(config_.cluster.data_dir, newest);
  ASSERT_TRUE(std::filesystem::remove(metadata)) << metadata;
  ASSERT_NO_FATAL_FAILURE(up());
  EXPECT_EQ(read_all(changed).right, kKeptKeys);
  const auto now = cluster_->coordinator(ControlOperation::status, Json::object());
  ASSERT_TRUE(now);
  const auto fallback = (*now)["snapshots"]["fallback"].get<std::string>();
  EXPECT_NE(fallback.find(metadata), std::string::npos) << fallback;
  ASSERT_NO_FATAL_FAILURE(down());
  ASSERT_NO_FATAL_FAILURE(up());
  EXPECT_EQ(read_all(changed).right, kKeptKeys);
  ASSERT_NO_FATAL_FAILURE(down());
}

/// Damage to the log below its durable part is refused with an error that names the salvage. A
/// salvage keeps everything committed before the damage.
TEST_F(SnapshotDamageTest, OfALogIsRefusedAndCutByASalvage) {
  ASSERT_NO_FATAL_FAILURE(fill());
  constexpr uint64_t kChanges = 60;
  for (uint64_t key = 0; key < kChanges; ++key) ASSERT_EQ(put(key, 50'000 + key), Status::ok);
  ASSERT_NO_FATAL_FAILURE(down());
  // Damages the middle of the log after the snapshot. Skips files that are only preallocated,
  // because they have no blocks.
  constexpr uint64_t kBlocksBefore = 20;
  std::string log;
  std::string bytes;
  uint64_t last = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(config_.cluster.data_dir + "/node0")) {
    if (entry.path().extension() != ".atlog" || entry.path().string() < log) continue;
    const std::string text = read_text(entry.path());
    uint64_t blocks = 0;
    for (uint64_t at = 0; at + kLogBlockBytes <= text.size(); at += kLogBlockBytes) {
      uint32_t magic = 0;
      std::memcpy(&magic, text.data() + at, sizeof magic);
      if (magic == kLogBlockMagic) blocks = at / kLogBlockBytes + 1;
    }
    if (blocks <= kBlocksBefore + 1) continue;
    log = entry.path();
    bytes = text;
    last = blocks - 1;
  }
  ASSERT_FALSE(log.empty());
  // Damages the header of the block, which every type of block has.
  const uint64_t at = (last - kBlocksBefore) * kLogBlockBytes + offsetof(LogBlockHeader, sequence);
  std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(bytes[at] ^ 1));
  file.close();
  const auto refused = Cluster::launch(config_, LaunchMode::thread);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::corruption) << refused.error().message;
  EXPECT_NE(refused.error().message.find("--salvage"), std::string::npos)
      << refused.error().message;
  PosixFileSystem files;
  ASSERT_TRUE(begin_salvage(files, config_.cluster.data_dir));
  ASSERT_NO_FATAL_FAILURE(up());
  // The salvage must keep a prefix of the commits, because they were sequential.
  bool is_lost = false;
  uint64_t kept = 0;
  for (uint64_t key = 0; key < kKeptKeys; ++key) {
    uint64_t value = 0;
    ASSERT_EQ(get(key, value), Status::ok);
    const bool is_new = value == 50'000 + key;
    if (!is_new) {
      ASSERT_EQ(value, key + 1);
    }
    ASSERT_FALSE(is_lost && is_new) << "key " << key << " is there, an earlier commit is not";
    is_lost = is_lost || !is_new;
    kept += is_new ? 1 : 0;
  }
  EXPECT_LT(kept, kChanges);
  const auto report = nlohmann::json::parse(
      read_text(salvage_report_path(config_.cluster.data_dir, 0)), nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["left_out"].size(), 1u) << report.dump(2);
  ASSERT_NO_FATAL_FAILURE(down());
}

}  // namespace
}  // namespace atolldb::test
