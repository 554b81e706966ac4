// The last epoch of an export of a checkpoint is that of a recovery, and nothing that the export
// needs may be missing.
#include "ops/export/checkpoint_source.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_file.h"
#include "engine/log/ddl_log.h"
#include "engine/log/log_files.h"
#include "tests/engine/checkpoint/made_checkpoint.h"
#include "tests/engine/log/written_log.h"

namespace atolldb::test {
namespace {

constexpr const char* kNotKept = "checkpoint 1 and the log after it are not kept any more";

/// Returns a table of a Master-tree.
ExportSchema schema_of(const std::string& name) {
  const auto schema = parse_export_schema("[[table]]\nname = \"" + name + R"toml("
type = "mastertree"
payload_bytes = 8
key = [{ name = "k", type = "char(8)", offset = 0 }]
column = [{ name = "v", type = "u64", offset = 0 }]
)toml",
                                          "schema");
  EXPECT_TRUE(schema) << schema.error().message;
  return *schema;
}

/// Epochs 1 to 9 in the logs of two nodes. The last incarnation has no cut.
class CheckpointSourceTest : public testing::Test {
 protected:
  CheckpointSourceTest() {
    data_.scheme = DurabilityScheme::silor;
    EXPECT_EQ(data_.begin({kFirst, kSecond}), "");
    data_.write_all(1, 9);
  }

  MemoryFileSystem& files() { return data_.files; }
  Savepoint& savepoint() { return data_.start.savepoint; }
  /// Takes checkpoint 1, with replay epoch 5 and end epoch 7.
  void take_checkpoint() {
    ASSERT_EQ(make_checkpoint(files(), "/data", savepoint(), 5, 7), "");
    ASSERT_EQ(savepoint().snapshot, 1u);
  }
  /// Returns the request for a stopped cluster. It needs the records of no storage.
  CheckpointSourceRequest request() {
    CheckpointSourceRequest request;
    request.data_dir = "/data";
    request.savepoint = savepoint();
    request.checkpoint = savepoint().snapshot;
    return request;
  }
  void expect_epoch(const CheckpointSourceRequest& request, uint64_t epoch) {
    const auto source = read_checkpoint_source(files(), request);
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_EQ(source->epoch, epoch);
  }
  void expect_error(const CheckpointSourceRequest& request, ExitCode code,
                    const std::string& text) {
    const auto source = read_checkpoint_source(files(), request);
    ASSERT_FALSE(source);
    EXPECT_EQ(source.error().code, code);
    EXPECT_TRUE(source.error().message.contains(text)) << source.error().message;
  }
  /// Damages the first block of records of the second node.
  void damage_log() {
    const LogFilePlace place = {
        kSecond.directory, kSecond.node, {data_.start.incarnation, kSecond.logger, 0}};
    files().bytes(path_of(place))[kLogBlockBytes + 300] ^= std::byte{1};
  }

  DataDirectory data_;
};

TEST_F(CheckpointSourceTest, OfAKilledClusterHasAllEpochsThatAllLogsHave) {
  data_.write(0, 10);  // the second log lacks this epoch
  EXPECT_EQ(savepoint().durable_epoch, 0u) << "the savepoint knows nothing";
  expect_epoch(request(), 9);
  ASSERT_NO_FATAL_FAILURE(take_checkpoint());
  expect_epoch(request(), 9);
}

TEST_F(CheckpointSourceTest, OfARunningClusterHasTheEpochsUpToItsDurableOne) {
  ASSERT_NO_FATAL_FAILURE(take_checkpoint());
  CheckpointSourceRequest wanted = request();
  wanted.durable_epoch = 8;
  expect_epoch(wanted, 8);
  wanted.durable_epoch = 6;  // before the end epoch
  expect_epoch(wanted, 7);
}

TEST_F(CheckpointSourceTest, HasTheEpochsUpToTheCutsOfEarlierIncarnations) {
  ASSERT_NO_FATAL_FAILURE(take_checkpoint());
  ASSERT_EQ(data_.begin({kFirst, kSecond}), "");
  ASSERT_EQ(savepoint().incarnations.size(), 2u);
  EXPECT_EQ(savepoint().incarnations.front().cut_epoch, 9u);
  EXPECT_EQ(savepoint().durable_epoch, 0u);
  expect_epoch(request(), data_.start.start_epoch - 1);
  // A restored savepoint has cuts only.
  const auto examined = examine(files(), "/data");
  ASSERT_TRUE(examined) << examined.error().message;
  CheckpointSourceRequest restored = request();
  restored.savepoint = examined->savepoint;
  EXPECT_EQ(restored.savepoint.uncut(), nullptr);
  expect_epoch(restored, data_.start.start_epoch - 1);
  data_.write_all(data_.start.start_epoch, data_.start.start_epoch + 3);
  expect_epoch(request(), data_.start.start_epoch + 3);
}

TEST_F(CheckpointSourceTest, IsRefusedIfALogLacksAnEpochThatWasDurable) {
  damage_log();
  expect_error(request(), ExitCode::corruption, "but epoch 8 was durable");
}

TEST_F(CheckpointSourceTest, IsRefusedIfTheDdlLogLacksRecords) {
  CheckpointSourceRequest wanted = request();
  wanted.savepoint.ddl_records = kStorages;
  expect_epoch(wanted, 9);
  wanted.savepoint.ddl_records = kStorages + 1;
  const auto source = read_checkpoint_source(files(), wanted);
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ExitCode::corruption);
}

TEST_F(CheckpointSourceTest, IsRefusedIfTheSavepointDoesNotKeepTheCheckpoint) {
  ASSERT_NO_FATAL_FAILURE(take_checkpoint());
  const std::string pin = std::string(kBackupPinPrefix) + "of the test";
  ASSERT_TRUE(pin_snapshot(files(), "/data", savepoint(), 1, pin));
  ASSERT_EQ(make_checkpoint(files(), "/data", savepoint(), 9, 9), "");
  CheckpointSourceRequest wanted = request();
  wanted.checkpoint = 1;
  wanted.durable_epoch = 9;
  expect_epoch(wanted, 9);
  ASSERT_TRUE(unpin_snapshot(files(), "/data", savepoint(), pin));
  wanted.savepoint = savepoint();
  expect_error(wanted, ExitCode::failed, kNotKept);
}

TEST_F(CheckpointSourceTest, ContinuesWithTheEpochOfTheFirstRun) {
  ASSERT_NO_FATAL_FAILURE(take_checkpoint());
  CheckpointSourceRequest first = request();
  first.durable_epoch = 8;
  const auto begun = read_checkpoint_source(files(), first);
  ASSERT_TRUE(begun) << begun.error().message;
  ASSERT_EQ(begun->epoch, 8u);
  const auto continue_with = [&](uint64_t epoch, uint32_t input) {
    CheckpointSourceRequest wanted = request();
    wanted.begun = {epoch, input};
    return wanted;
  };
  // Later commits, and the cut of the next start-up, change nothing.
  data_.write_all(10, 12);
  expect_epoch(continue_with(8, begun->input_crc32c), 8);
  ASSERT_EQ(data_.begin({kFirst, kSecond}), "");
  expect_epoch(continue_with(8, begun->input_crc32c), 8);
  expect_error(continue_with(8, begun->input_crc32c + 1), ExitCode::identity, "logs differ");
  expect_error(continue_with(7, begun->input_crc32c), ExitCode::identity, "logs differ");
  expect_error(continue_with(6, begun->input_crc32c), ExitCode::identity, "is of epoch 6");
  expect_error(continue_with(1'000'000, begun->input_crc32c), ExitCode::identity,
               "is of epoch 1000000");
  // A salvage cuts the log of an incarnation.
  CheckpointSourceRequest salvaged = continue_with(8, begun->input_crc32c);
  salvaged.savepoint.incarnations.front().cut_epoch = 7;
  expect_error(salvaged, ExitCode::identity, "logs differ");
}

TEST_F(CheckpointSourceTest, ContinuesWithoutIncarnationsThatHaveNoRecordsToRead) {
  for (uint64_t epoch = 10; epoch <= 12; ++epoch) {
    for (LogWriter& writer : data_.writers) {
      ASSERT_TRUE(writer.close_epoch(epoch, data_.durable_epoch()));
    }
  }
  ASSERT_EQ(make_checkpoint(files(), "/data", savepoint(), 10, 10), "");
  const auto begun = read_checkpoint_source(files(), request());
  ASSERT_TRUE(begun) << begun.error().message;
  EXPECT_GE(begun->epoch, 10u);
  // The next start-up removes the incarnation from the savepoint.
  ASSERT_EQ(data_.begin({kFirst, kSecond}), "");
  ASSERT_EQ(savepoint().incarnations.front().number, data_.start.incarnation);
  CheckpointSourceRequest wanted = request();
  wanted.begun = {begun->epoch, begun->input_crc32c};
  expect_epoch(wanted, begun->epoch);
}

TEST_F(CheckpointSourceTest, IsRefusedIfTheRecordsNeedTooMuchMemory) {
  ASSERT_NO_FATAL_FAILURE(take_checkpoint());
  const ExportSchema schema = schema_of("s1");
  CheckpointSourceRequest wanted = request();
  wanted.tables = {&schema.tables.front()};
  wanted.memory_limit = kMadeRecords * 1'000;  // half of the payloads
  expect_error(wanted, ExitCode::resources, "--memory");
  wanted.tables.clear();
  expect_epoch(wanted, 9);
}

TEST_F(CheckpointSourceTest, HasTheStoragesOfTheNextStartUpOrThoseOfTheEpoch) {
  const uint64_t late = 12;  // an epoch that no log has
  auto ddl = DdlLog::open(files(), "/data", savepoint().cluster_uuid);
  ASSERT_TRUE(ddl);
  const auto create = [&](uint32_t id, const char* name, uint64_t epoch) {
    ASSERT_TRUE(ddl->append(
        {DdlOperation::create_storage, id, epoch, name, StorageType::mastertree, 0, 0}));
  };
  const auto drop = [&](uint32_t id, const char* name, uint64_t epoch) {
    ASSERT_TRUE(
        ddl->append({DdlOperation::drop_storage, id, epoch, name, StorageType::none, 0, 0}));
  };
  create(kStorages + 1, "dropped", 1);
  create(kStorages + 2, "dropped_late", 1);
  drop(kStorages + 1, "dropped", 3);
  create(kStorages + 3, "created_late", late);
  drop(kStorages + 2, "dropped_late", late);
  const auto expect = [&](const char* name, std::optional<uint64_t> durable, bool exists) {
    SCOPED_TRACE(std::string(name) + (durable ? ", running" : ", stopped"));
    const ExportSchema schema = schema_of(name);
    CheckpointSourceRequest wanted = request();
    wanted.durable_epoch = durable;
    wanted.tables = {&schema.tables.front()};
    if (!exists) {
      expect_error(wanted, ExitCode::failed, "there is no such storage");
      return;
    }
    const auto source = read_checkpoint_source(files(), wanted);
    ASSERT_TRUE(source) << source.error().message;
    uint64_t rows = 0;
    const auto walked = source->source->walk(*wanted.tables.front(), WalkRange{},
                                             [&](const WalkedRecord&) -> Result<void> {
                                               ++rows;
                                               return {};
                                             });
    ASSERT_TRUE(walked) << walked.error().message;
    EXPECT_EQ(rows, 0u);
  };
  expect("dropped", std::nullopt, false);
  expect("dropped", 9, false);
  expect("dropped_late", std::nullopt, false);
  expect("dropped_late", 9, true);
  expect("created_late", std::nullopt, true);
  expect("created_late", 9, true);
}

/// A storage is dropped and created again between the two runs of an export. The first run is of a
/// running cluster, or of a stopped one.
TEST_F(CheckpointSourceTest, ContinuesWithTheStoragesOfTheFirstRun) {
  const uint64_t late = 12;  // an epoch that no log has
  const ExportSchema schema = schema_of("replaced");
  auto ddl = DdlLog::open(files(), "/data", savepoint().cluster_uuid);
  ASSERT_TRUE(ddl);
  const auto create = [&](uint32_t id, uint64_t epoch) {
    ASSERT_TRUE(ddl->append(
        {DdlOperation::create_storage, id, epoch, "replaced", StorageType::mastertree, 0, 0}));
  };
  const auto expect_storage = [&](const CheckpointSourceRequest& wanted, uint32_t id) {
    const auto source = read_checkpoint_source(files(), wanted);
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_EQ(source->storages, std::vector<uint32_t>{id});
    const auto ranges = source->source->split(*wanted.tables.front(), 1);
    EXPECT_TRUE(ranges) << ranges.error().message;
  };
  create(kStorages + 1, 1);
  for (const bool was_stopped : {false, true}) {
    SCOPED_TRACE(was_stopped);
    const uint32_t id = kStorages + (was_stopped ? 2 : 1);
    CheckpointSourceRequest first = request();
    first.tables = {&schema.tables.front()};
    if (!was_stopped) first.durable_epoch = 9;
    const auto begun = read_checkpoint_source(files(), first);
    ASSERT_TRUE(begun) << begun.error().message;
    EXPECT_EQ(begun->storages, std::vector<uint32_t>{id});
    ASSERT_TRUE(
        ddl->append({DdlOperation::drop_storage, id, late, "replaced", StorageType::none, 0, 0}));
    if (!was_stopped) create(id + 1, late);
    CheckpointSourceRequest later = first;
    later.begun = {begun->epoch, begun->input_crc32c, begun->storages};
    for (const bool is_stopped : {false, true}) {
      later.durable_epoch = is_stopped ? std::nullopt : std::optional<uint64_t>(9);
      expect_storage(later, id);
    }
  }
}

/// A missing file is damage, unless the cluster has given up the pin and deleted the file.
TEST_F(CheckpointSourceTest, SaysThatThePinWasGivenUpWhileTheFilesWereRead) {
  for (const bool gives_up : {false, true}) {
    SCOPED_TRACE(gives_up);
    if (!gives_up) {
      ASSERT_NO_FATAL_FAILURE(take_checkpoint());
    }
    CheckpointSourceRequest wanted = request();
    const std::string path = checkpoint_file_path("/data", 0, {1, 0, 1});
    const auto bytes = files().bytes(path);
    bool is_removed = false;
    wanted.on_progress = [&](uint64_t) -> Result<void> {
      if (is_removed) return {};
      is_removed = true;
      EXPECT_TRUE(files().remove(path));
      if (gives_up) {
        EXPECT_EQ(make_checkpoint(files(), "/data", savepoint(), 9, 9), "");
      }
      return {};
    };
    const auto source = read_checkpoint_source(files(), wanted);
    ASSERT_FALSE(source);
    EXPECT_TRUE(is_removed);
    EXPECT_EQ(source.error().message.contains(kNotKept), gives_up) << source.error().message;
    if (gives_up) {
      EXPECT_EQ(source.error().code, ExitCode::failed);
    }
    const auto again = files().create(path, bytes.size());
    ASSERT_TRUE(again);
    files().bytes(path) = bytes;
  }
}

}  // namespace
}  // namespace atolldb::test
