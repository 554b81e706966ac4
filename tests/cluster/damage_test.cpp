// Random damage to the files of a dead cluster. The next start-up refuses it and names the place,
// or reads of the damaged part fail, or nothing has changed. The cluster never continues with less
// data than it had.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "shared/kv/kv_request.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"

namespace atolldb::test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBlock = 4096;
constexpr const char* kLastStorage = "made-last";
constexpr const char* kPinName = "kept";

/// The data that a client can see.
struct Content {
  LedgerState ledger;
  std::map<std::string, uint64_t> storages;
  std::string last_value;  // value of the only record of kLastStorage
  bool operator==(const Content&) const = default;
};

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.file_size() != 0) {
      files.push_back(fs::relative(entry.path(), folder));
    }
  }
  std::ranges::sort(files);
  return files;
}

std::string read_bytes(const fs::path& path) { return read_text(path.string()); }

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Returns a file's name without numbers: "log", "snapshot", "savepoint" and so on.
std::string kind_of(const fs::path& file) {
  std::string kind;
  for (const char c : file.filename().string()) {
    if (!std::isdigit(static_cast<unsigned char>(c))) kind += c;
  }
  return kind;
}

class DamageTest : public testing::TestWithParam<DurabilityScheme> {
 protected:
  DamageTest() {
    config_.gleaner.interval = std::chrono::hours(1);
    config_.durability.scheme = GetParam();
    config_.durability.checkpoint_interval = std::chrono::milliseconds(0);
    config_.nodes[1].directories = {folder_.path() + "/second"};
    fs::create_directories(ledgers_);
  }

  std::vector<std::string> directories() const {
    return {config_.cluster.data_dir, config_.nodes[1].directories[0]};
  }
  std::string saved(const std::string& name, size_t index) const {
    return folder_.path() + "/saved-" + name + "-" + std::to_string(index);
  }
  void save(const std::string& name) const {
    for (size_t i = 0; i < directories().size(); ++i) {
      fs::remove_all(saved(name, i));
      fs::copy(directories()[i], saved(name, i), fs::copy_options::recursive);
    }
  }
  /// Restores the saved content. The directories themselves stay the same, with the same inodes.
  void restore(const std::string& name) const {
    for (size_t i = 0; i < directories().size(); ++i) {
      for (const auto& entry : fs::directory_iterator(directories()[i])) {
        fs::remove_all(entry.path());
      }
      fs::copy(saved(name, i), directories()[i], fs::copy_options::recursive);
    }
  }

  void write_ledger(uint64_t bytes) {
    LedgerClients clients(config_, ledgers_, random_());
    uint64_t before[2] = {};
    for (const uint32_t node : {0u, 1u}) {
      std::error_code missing;
      before[node] = fs::file_size(clients.file(node), missing);
      if (missing) before[node] = 0;
    }
    EXPECT_TRUE(eventually([&] {
      return clients.has_written(0, before[0] + bytes) && clients.has_written(1, before[1] + bytes);
    }));
    clients.stop();
  }

  Result<Json> coordinator(ControlOperation operation, const Json& body = Json::object()) const {
    return cli::RunningCluster(config_).coordinator(operation, body, Cluster::kDefaultTimeout);
  }

  Result<Content> read_content() const {
    Content content;
    auto listed = coordinator(ControlOperation::storage_list);
    if (!listed) return std::unexpected(listed.error());
    for (const Json& storage : listed->at("storages")) {
      content.storages[storage.at("name")] = storage.at("id");
    }
    auto session = SessionClient::connect(config_.cluster.run_dir, 0);
    if (!session) return std::unexpected(session.error());
    // A missing storage counts as lost data, and not as an error that reports damage.
    if (!content.storages.contains(std::string(kLedgerStorage))) return content;
    auto state = read_ledger_state(**session);
    if (!state) return std::unexpected(state.error());
    content.ledger = *std::move(state);
    if (!content.storages.contains(kLastStorage)) return content;
    KvRequest request;
    request.get(kLastStorage, kv_bytes("key"));
    const SessionReply reply = (*session)->call("kv.get", request.bytes());
    if (reply.status != Status::ok) {
      return make_error(ExitCode::failed, "the last storage cannot be read: " + reply.message);
    }
    content.last_value.assign(reinterpret_cast<const char*>(reply.output.data()),
                              reply.output.size());
    return content;
  }

  static ControlOperation take() {
    return GetParam() == DurabilityScheme::silor ? ControlOperation::checkpoint_take
                                                 : ControlOperation::snapshot_take;
  }

  /// Makes data with every kind of file content. There are logs with and without a snapshot before
  /// them, two snapshots and a pin, or two checkpoints. There are DDL records before and after the
  /// last write of the savepoint.
  void make_data() {
    {
      LauncherProcess launcher(config_);
      ASSERT_EQ(launcher.next_line(), "running");
      ASSERT_TRUE(create_ledger(config_));
      write_ledger(60'000);
      ASSERT_TRUE(coordinator(take()));
      if (GetParam() == DurabilityScheme::gleaned) {
        ASSERT_TRUE(coordinator(ControlOperation::snapshot_pin, {{"name", kPinName}}));
      }
      write_ledger(30'000);
      kill(launcher.pid(), SIGTERM);
      ASSERT_EQ(launcher.wait(), 0);
    }
    save("early");
    for (const bool is_killed : {true, false}) {
      restore("early");
      LauncherProcess launcher(config_);
      ASSERT_EQ(launcher.next_line(), "running");
      write_ledger(30'000);
      ASSERT_TRUE(coordinator(take()));
      write_ledger(60'000);
      cli::RunningCluster cluster(config_);
      ASSERT_TRUE(cluster.create_storage(kLastStorage, StorageType::mastertree, 8));
      auto session = SessionClient::connect(config_.cluster.run_dir, 0);
      ASSERT_TRUE(session) << session.error().message;
      KvRequest request;
      request.put(kLastStorage, kv_bytes("key"), kv_bytes("acknowledged"));
      ASSERT_EQ((*session)->call("kv.put", request.bytes()).status, Status::ok);
      const auto content = read_content();
      ASSERT_TRUE(content) << content.error().message;
      expected_[is_killed] = *content;
      // waits until the cluster is idle, because the guarantee is for idle clusters only
      std::this_thread::sleep_for(std::chrono::seconds(1));
      kill(launcher.pid(), is_killed ? SIGKILL : SIGTERM);
      launcher.wait();
      ASSERT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
      save(is_killed ? "killed" : "stopped");
    }
  }

  struct Target {
    std::string path;   // the file in its directory
    std::string early;  // an earlier version of the file; empty: it did not exist
  };
  /// Chooses a file. Each kind of file has the same probability.
  Target choose_file() {
    std::map<std::string, std::vector<Target>> kinds;
    for (size_t i = 0; i < directories().size(); ++i) {
      for (const fs::path& file : files_below(directories()[i])) {
        const fs::path early = saved("early", i) / file;
        kinds[kind_of(file)].push_back({(directories()[i] / file).string(),
                                        fs::exists(early) ? early.string() : std::string()});
      }
    }
    const auto kind = std::next(kinds.begin(), static_cast<ptrdiff_t>(random_() % kinds.size()));
    return kind->second[random_() % kind->second.size()];
  }

  /// Chooses a block of the file, mostly a block with content.
  uint64_t choose_block(const std::string& bytes) {
    const uint64_t blocks = (bytes.size() + kBlock - 1) / kBlock;
    std::vector<uint64_t> used;
    for (uint64_t block = 0; block < blocks; ++block) {
      const auto content = std::string_view(bytes).substr(block * kBlock, kBlock);
      if (content.find_first_not_of('\0') != std::string_view::npos) used.push_back(block);
    }
    if (used.empty() || random_() % 8 == 0) return random_() % blocks;
    // Half of the blocks are chosen at the end, where a torn tail and damage are hard to
    // distinguish.
    if (random_() % 2 == 0)
      return used[used.size() - 1 - random_() % std::min<size_t>(used.size(), 4)];
    return used[random_() % used.size()];
  }

  /// Returns a description of the damage, or an empty text if the bytes did not change.
  std::string damage() {
    const Target target = choose_file();
    const std::string before = read_bytes(target.path);
    std::string bytes = before;
    const uint64_t block = choose_block(bytes);
    const uint64_t begin = block * kBlock;
    const uint64_t length = std::min(kBlock, bytes.size() - begin);
    std::string what;
    switch (random_() % 6) {
      case 0: {
        const uint64_t at = begin + random_() % length;
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random_() % 8)));
        what = fmt::format("one bit flipped at {}", at);
        break;
      }
      case 1:
        std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(begin), length, '\0');
        what = fmt::format("block {} zeroed", block);
        break;
      case 2: {
        const uint64_t other = choose_block(bytes) * kBlock;
        const uint64_t both = std::min(length, bytes.size() - other);
        std::swap_ranges(bytes.begin() + static_cast<ptrdiff_t>(begin),
                         bytes.begin() + static_cast<ptrdiff_t>(begin + both),
                         bytes.begin() + static_cast<ptrdiff_t>(other));
        if (begin + both > other && other + both > begin) return "";  // the blocks overlap
        what = fmt::format("blocks {} and {} swapped", block, other / kBlock);
        break;
      }
      case 3: {
        // Simulates a write that never reached the device: the block has its previous content.
        const std::string early = target.early.empty() ? "" : read_bytes(target.early);
        const std::string old =
            early.size() > begin ? early.substr(begin, length) : bytes.substr(0, length);
        std::copy(old.begin(), old.end(), bytes.begin() + static_cast<ptrdiff_t>(begin));
        what = fmt::format("block {} stale", block);
        break;
      }
      case 4:
        bytes.resize(random_() % 2 == 0 ? begin : begin + random_() % length);
        what = fmt::format("truncated to {} of {} bytes", bytes.size(), before.size());
        break;
      default: {
        // Overwrites 512 bytes, because a device writes such a sector at once.
        const uint64_t sector = begin + random_() % ((length + 511) / 512) * 512;
        const uint64_t count = std::min<uint64_t>(512, bytes.size() - sector);
        for (uint64_t i = 0; i < count; ++i) bytes[sector + i] = static_cast<char>(random_());
        what = fmt::format("sector at {} overwritten", sector);
      }
    }
    if (bytes == before) return "";
    write_bytes(target.path, bytes);
    return target.path + ": " + what;
  }

  enum class Outcome : uint8_t { refused, unreadable, harmless };

  /// Starts the damaged cluster. Adds a failure if the damage stayed undetected.
  Outcome start_damaged(bool is_killed) {
    LauncherProcess launcher(config_);
    const std::string line = launcher.next_line();
    if (line != "running") {
      const int status = launcher.wait();
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 0) << status;
      // The error must name a place.
      EXPECT_NE(line.find(folder_.path()), std::string::npos) << line;
      return Outcome::refused;
    }
    const auto content = read_content();
    if (content) {
      const Content& expected = expected_[is_killed];
      EXPECT_EQ(content->storages, expected.storages);
      EXPECT_EQ(content->last_value, expected.last_value);
      EXPECT_TRUE(content->ledger == expected.ledger) << "the ledger's records are others";
    }
    kill(launcher.pid(), SIGTERM);
    const int status = launcher.wait();
    if (content) {
      EXPECT_EQ(status, 0) << last_failure(config_);
    } else {
      std::printf("unreadable: %s\n", content.error().message.c_str());
    }
    return content ? Outcome::harmless : Outcome::unreadable;
  }

  TestFolder folder_;
  Config config_ = folder_.config("damage", 2, 1);
  std::string ledgers_ = folder_.path() + "/ledgers";
  std::mt19937_64 random_{seed()};
  Content expected_[2];
};

INSTANTIATE_TEST_SUITE_P(Schemes, DamageTest,
                         testing::Values(DurabilityScheme::gleaned, DurabilityScheme::silor),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(DamageTest, NoDamageIsSilent) {
  ASSERT_NO_FATAL_FAILURE(make_data());
  for (const bool is_killed : {true, false}) {
    restore(is_killed ? "killed" : "stopped");
    ASSERT_EQ(start_damaged(is_killed), Outcome::harmless) << "without any damage";
  }
  std::map<std::string, std::map<Outcome, uint64_t>> outcomes;
  const uint64_t count = rounds(12, 2'000);
  uint64_t silent = 0;
  for (uint64_t round = 0; round < count;) {
    const bool is_killed = random_() % 4 != 0;
    restore(is_killed ? "killed" : "stopped");
    const std::string what = damage();
    if (what.empty()) continue;
    ++round;
    SCOPED_TRACE(fmt::format("round {}, {}: {}", round, is_killed ? "killed" : "stopped", what));
    const auto* result = testing::UnitTest::GetInstance()->current_test_info()->result();
    const int failures = result->total_part_count();
    const Outcome outcome = start_damaged(is_killed);
    if (result->total_part_count() != failures) ++silent;
    ++outcomes[kind_of(what.substr(0, what.find(": ")))][outcome];
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  }
  for (auto& [kind, counts] : outcomes) {
    std::printf("%-24s refused %llu, unreadable %llu, harmless %llu\n", kind.c_str(),
                static_cast<unsigned long long>(counts[Outcome::refused]),
                static_cast<unsigned long long>(counts[Outcome::unreadable]),
                static_cast<unsigned long long>(counts[Outcome::harmless]));
  }
  std::printf("%llu damages, %llu silent\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(silent));
}

}  // namespace
}  // namespace atolldb::test
