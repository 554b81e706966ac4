// The HTTP endpoint of the metrics: values, slow clients and limits.
#include "shared/metrics/exposer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "shared/base/unique_fd.h"
#include "shared/metrics/cluster_metrics.h"
#include "shared/metrics/node_metrics.h"

namespace atolldb {
namespace {

struct AlignedFree {
  void operator()(void* memory) const { std::free(memory); }
};
template <typename T>
using Segment = std::unique_ptr<T, AlignedFree>;

/// Makes a zeroed segment outside of shared memory.
template <typename T>
Segment<T> make_segment(size_t bytes) {
  void* memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::memset(memory, 0, (bytes + 4095) / 4096 * 4096);
  return Segment<T>(static_cast<T*>(memory));
}

/// Connects to the endpoint.
UniqueFd connect_to(const std::string& endpoint) {
  const auto colon = endpoint.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(endpoint.substr(colon + 1))));
  inet_pton(AF_INET, endpoint.substr(0, colon).c_str(), &address.sin_addr);
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

constexpr std::string_view kRequest = "GET /metrics HTTP/1.0\r\n\r\n";

/// Returns false if the other side has closed the connection.
bool send_text(const UniqueFd& fd, std::string_view text) {
  return send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

/// Returns the body of GET /metrics, or an empty text if there is no answer.
std::string scrape(const std::string& endpoint) {
  const UniqueFd fd = connect_to(endpoint);
  EXPECT_TRUE(send_text(fd, kRequest));
  std::string answer;
  char buffer[4096];
  for (ssize_t got = 0; (got = recv(fd.get(), buffer, sizeof(buffer), 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(got));
  }
  return answer;
}

using Clock = std::chrono::steady_clock;

/// Returns the duration of a scrape, which must be answered.
std::chrono::milliseconds time_of_scrape(const std::string& endpoint) {
  const auto begin = Clock::now();
  EXPECT_NE(scrape(endpoint).find("atoll_commits_total"), std::string::npos);
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
}

class NodeOfTwoWorkers : public ::testing::Test {
 protected:
  NodeOfTwoWorkers() {
    layout_.worker_count = 2;
    shared_ = make_segment<NodeShared>(layout_.bytes());
    layout_.format(*shared_);
    metrics_ = make_segment<MetricsSegment>(MetricsSegment::bytes(layout_.slot_count()));
    metrics_->slot_count = layout_.slot_count();
  }

  std::shared_ptr<NodeMetrics> node_metrics(uint32_t node) const {
    return std::make_shared<NodeMetrics>(node, *shared_, *metrics_, *control_);
  }
  void set_storage(uint32_t id, std::string_view name, StorageState state) {
    StorageControl& storage = control_->storage(id);
    storage.id = id;
    ASSERT_LE(name.size(), kMaxStorageName);
    std::memcpy(storage.name, name.data(), name.size());
    storage.state.store(static_cast<uint32_t>(state), std::memory_order_release);
  }
  void set_cached(uint32_t storage_id, uint64_t pages, uint64_t pages_read) {
    StorageCacheMetrics& cache = metrics_->storage_caches[storage_id % kMaxStorages];
    cache.pages.store(pages, std::memory_order_relaxed);
    cache.pages_read.store(pages_read, std::memory_order_relaxed);
    cache.evictions.store(pages_read - pages, std::memory_order_relaxed);
    cache.storage_id.store(storage_id, std::memory_order_release);
  }

  NodeSharedLayout layout_;
  Segment<NodeShared> shared_;
  Segment<MetricsSegment> metrics_;
  Segment<ControlSegment> control_ = make_segment<ControlSegment>(sizeof(ControlSegment));
};

TEST_F(NodeOfTwoWorkers, ServesTheSumsOfAllThreadsByNodeAndReason) {
  metrics_->worker(0).commits.add(3);
  metrics_->worker(1).commits.add(4);
  metrics_->worker(1).aborts[static_cast<uint32_t>(Status::write_conflict)].add(5);
  metrics_->worker(2).pages_retired.add(6);  // worker 2 is an auxiliary thread
  shared_->pages_free.store(7, std::memory_order_relaxed);
  auto exposer = MetricsExposer::start("127.0.0.1", 0, node_metrics(9));
  ASSERT_TRUE(exposer) << exposer.error().message;
  const std::string text = scrape((*exposer)->endpoint());
  for (const char* line :
       {"atoll_commits_total{node=\"9\",type=\"write\"} 7\n",
        "atoll_aborts_total{node=\"9\",reason=\"write_conflict\"} 5\n",
        "atoll_aborts_total{node=\"9\",reason=\"phantom\"} 0\n",
        "atoll_pages_retired_total{node=\"9\"} 6\n", "atoll_pool_free_bytes{node=\"9\"} 28672\n",
        "# TYPE atoll_commits_total counter\n",
        "# HELP atoll_commits_total Committed transactions.\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  }
}

TEST_F(NodeOfTwoWorkers, ServesEachLoggerAndTheGleanerWithALog) {
  shared_->logger_count = 2;
  metrics_->loggers[1].blocks.add(5);
  metrics_->loggers[1].sync_ns.add(1'000'000);
  metrics_->gleaner.pages_written.store(3, std::memory_order_relaxed);
  metrics_->device.pending_ns.store(2'000'000'000, std::memory_order_relaxed);
  auto exposer = MetricsExposer::start("127.0.0.1", 0, node_metrics(9));
  ASSERT_TRUE(exposer) << exposer.error().message;
  const std::string text = scrape((*exposer)->endpoint());
  for (const char* line : {"atoll_logger_blocks_total{node=\"9\",logger=\"0\"} 0\n",
                           "atoll_logger_blocks_total{node=\"9\",logger=\"1\"} 5\n",
                           "atoll_logger_sync_seconds_count{node=\"9\",logger=\"1\"} 1\n",
                           "atoll_composer_written_bytes_total{node=\"9\"} 12288\n",
                           "atoll_device_pending_seconds{node=\"9\"} 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  }
}

TEST_F(NodeOfTwoWorkers, EveryScrapeReadsTheCountersAgain) {
  auto exposer = MetricsExposer::start("127.0.0.1", 0, node_metrics(0));
  ASSERT_TRUE(exposer) << exposer.error().message;
  const std::string before = scrape((*exposer)->endpoint());
  EXPECT_NE(before.find("atoll_next_layers_total{node=\"0\"} 0\n"), std::string::npos);
  metrics_->worker(0).next_layers.add();
  const std::string after = scrape((*exposer)->endpoint());
  EXPECT_NE(after.find("atoll_next_layers_total{node=\"0\"} 1\n"), std::string::npos);
}

TEST_F(NodeOfTwoWorkers, HalfSentRequestsDoNotBlockAScrape) {
  auto exposer = MetricsExposer::start("127.0.0.1", 0, node_metrics(0));
  ASSERT_TRUE(exposer) << exposer.error().message;
  const std::string& endpoint = (*exposer)->endpoint();
  // Numbers of clients that send half a request: one, four, one per thread except one, and two per
  // thread.
  for (const size_t count : {size_t{1}, size_t{4}, size_t{MetricsExposer::kThreads - 1},
                             size_t{2 * MetricsExposer::kThreads}}) {
    std::vector<UniqueFd> halves;
    for (size_t i = 0; i < count; ++i) {
      halves.push_back(connect_to(endpoint));
      ASSERT_TRUE(send_text(halves.back(), kRequest.substr(0, 1 + i % (kRequest.size() - 1))));
    }
    const auto turns = static_cast<int>(count / MetricsExposer::kThreads);
    const std::chrono::milliseconds limit =
        turns == 0 ? MetricsExposer::kRequestTimeout
                   : (1 + turns) * (MetricsExposer::kRequestTimeout + std::chrono::seconds(1));
    EXPECT_LT(time_of_scrape(endpoint), limit) << "beside " << count << " half-sent requests";
  }
}

TEST_F(NodeOfTwoWorkers, RequestsThatTrickleDoNotBlockAScrape) {
  auto exposer = MetricsExposer::start("127.0.0.1", 0, node_metrics(0));
  ASSERT_TRUE(exposer) << exposer.error().message;
  const std::string& endpoint = (*exposer)->endpoint();
  std::vector<UniqueFd> slow;
  for (size_t i = 0; i < MetricsExposer::kThreads; ++i) {
    slow.push_back(connect_to(endpoint));
    ASSERT_TRUE(send_text(slow.back(), "GET /metrics HTTP/1.1\r\n"));
  }
  std::atomic<bool> is_over{false};
  std::thread trickle([&] {
    // Sends headers one byte at a time, for as long as the server reads.
    for (size_t at = 0; !is_over.load(std::memory_order_relaxed); ++at) {
      for (const UniqueFd& fd : slow) send_text(fd, std::string_view("a: b\r\n").substr(at % 6, 1));
      // The pause between two bytes is part of the attack.
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  EXPECT_LT(time_of_scrape(endpoint),
            2 * MetricsExposer::kRequestTimeout + std::chrono::seconds(2));
  is_over.store(true, std::memory_order_relaxed);
  trickle.join();
}

TEST_F(NodeOfTwoWorkers, ATakenPortNamesKeyAndPort) {
  const auto collectable = node_metrics(0);
  auto first = MetricsExposer::start("127.0.0.1", 0, collectable);
  ASSERT_TRUE(first) << first.error().message;
  const std::string& endpoint = (*first)->endpoint();
  const int port = std::stoi(endpoint.substr(endpoint.rfind(':') + 1));
  const auto second = MetricsExposer::start("127.0.0.1", static_cast<uint16_t>(port), collectable);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ExitCode::resources);
  EXPECT_NE(second.error().message.find("metrics.base_port"), std::string::npos);
  EXPECT_NE(second.error().message.find(endpoint), std::string::npos);
}

TEST_F(NodeOfTwoWorkers, ShowsSnapshotsOnlyWithALog) {
  metrics_->worker(0).snapshot_reads.add(5);
  metrics_->worker(1).snapshot_reads.add(6);
  metrics_->worker(1).frame_stalls.add(8);
  metrics_->worker(0).scan_pages_ahead.add(7);
  metrics_->snapshot_cache.misses.store(4, std::memory_order_relaxed);
  metrics_->snapshot_cache.frames_in_use.store(3, std::memory_order_relaxed);
  metrics_->gleaner.pages_written.store(2, std::memory_order_relaxed);
  metrics_->gleaner.phase.store(static_cast<uint64_t>(SnapshotJobPhase::gleaning),
                                std::memory_order_relaxed);
  auto exposer = MetricsExposer::start("127.0.0.1", 0, node_metrics(0));
  ASSERT_TRUE(exposer) << exposer.error().message;
  EXPECT_EQ(scrape((*exposer)->endpoint()).find("atoll_snapshot"), std::string::npos);
  shared_->logger_count = 1;
  const std::string text = scrape((*exposer)->endpoint());
  for (const char* line : {"atoll_snapshot_cache_reads_total{node=\"0\"} 11\n",
                           "atoll_snapshot_cache_misses_total{node=\"0\"} 4\n",
                           "atoll_snapshot_cache_waits_total{node=\"0\"} 8\n",
                           "atoll_snapshot_cache_scan_ahead_pages_total{node=\"0\"} 7\n",
                           "atoll_snapshot_cache_used_bytes{node=\"0\"} 12288\n",
                           "atoll_composer_written_pages_total{node=\"0\"} 2\n",
                           "atoll_composer_written_bytes_total{node=\"0\"} 8192\n",
                           "atoll_gleaner_phase{node=\"0\",phase=\"idle\"} 0\n",
                           "atoll_gleaner_phase{node=\"0\",phase=\"gleaning\"} 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  }
}

TEST_F(NodeOfTwoWorkers, ShowsCheckpointsInsteadOfSnapshotsIfItTakesThem) {
  shared_->logger_count = 1;
  metrics_->checkpoint.phase.store(static_cast<uint64_t>(CheckpointPhase::copying),
                                   std::memory_order_relaxed);
  metrics_->checkpoint.records.store(40, std::memory_order_relaxed);
  metrics_->checkpoint.replayed_overwritten.store(3, std::memory_order_relaxed);
  auto exposer = MetricsExposer::start(
      "127.0.0.1", 0,
      std::make_shared<NodeMetrics>(0, *shared_, *metrics_, *control_, nullptr, nullptr, true));
  ASSERT_TRUE(exposer) << exposer.error().message;
  const std::string text = scrape((*exposer)->endpoint());
  for (const char* line : {"atoll_checkpoint_copied_records_total{node=\"0\"} 40\n",
                           "atoll_checkpoint_phase{node=\"0\",phase=\"copying\"} 1\n",
                           "atoll_checkpoint_phase{node=\"0\",phase=\"idle\"} 0\n",
                           "atoll_replay_overwritten_records_total{node=\"0\"} 3\n",
                           "atoll_scrub_damaged_pages{node=\"0\"} 0\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  }
  for (const char* other : {"atoll_gleaner", "atoll_snapshot_cache", "atoll_mapper"}) {
    EXPECT_EQ(text.find(other), std::string::npos) << other << " in\n" << text;
  }
}

TEST_F(NodeOfTwoWorkers, ShowsTheCacheByStorageForReadyStoragesThatUsedIt) {
  shared_->logger_count = 1;
  auto exposer = MetricsExposer::start("127.0.0.1", 0, node_metrics(2));
  ASSERT_TRUE(exposer) << exposer.error().message;
  EXPECT_EQ(scrape((*exposer)->endpoint()).find("storage=\""), std::string::npos);
  const std::string longest(kMaxStorageName, 'x');
  set_storage(3, "orders", StorageState::ready);
  set_storage(4, "unused", StorageState::ready);
  set_storage(5, "dropped", StorageState::dropping);
  set_storage(kMaxStorages + 6, "new", StorageState::ready);
  set_storage(kMaxStorages - 1, longest, StorageState::ready);
  set_cached(3, 2, 7);
  set_cached(5, 1, 1);
  set_cached(6, 1, 1);  // a dropped storage, whose slot of the catalog another one has
  set_cached(kMaxStorages - 1, 0, 4);
  const std::string text = scrape((*exposer)->endpoint());
  const std::string of_longest = "{node=\"2\",storage=\"" + longest + "\"} ";
  for (const std::string& line :
       {std::string("atoll_snapshot_cache_storage_bytes{node=\"2\",storage=\"orders\"} 8192\n"),
        std::string("atoll_snapshot_cache_storage_read_pages_total{node=\"2\","
                    "storage=\"orders\"} 7\n"),
        std::string("atoll_snapshot_cache_storage_evictions_total{node=\"2\","
                    "storage=\"orders\"} 5\n"),
        "atoll_snapshot_cache_storage_bytes" + of_longest + "0\n",
        "atoll_snapshot_cache_storage_evictions_total" + of_longest + "4\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  }
  for (const char* name : {"unused", "dropped", "new"}) {
    EXPECT_EQ(text.find("storage=\"" + std::string(name)), std::string::npos) << text;
  }
}

TEST(ClusterMetricsTest, ServesSnapshotsWhereThereAreSome) {
  const auto control = make_segment<ControlSegment>(sizeof(ControlSegment));
  SnapshotMetrics snapshots;
  snapshots.failed.add(2);
  snapshots.duration_us.store(2'500'000, std::memory_order_relaxed);
  snapshots.pages_stored.store(10, std::memory_order_relaxed);
  snapshots.pages_live.store(4, std::memory_order_relaxed);
  snapshots.space_percent.store(250, std::memory_order_relaxed);
  snapshots.target_space_percent.store(200, std::memory_order_relaxed);
  snapshots.pages_rewritten.add(3);
  auto exposer =
      MetricsExposer::start("127.0.0.1", 0, std::make_shared<ClusterMetrics>(*control, &snapshots));
  ASSERT_TRUE(exposer) << exposer.error().message;
  const std::string text = scrape((*exposer)->endpoint());
  for (const char* line :
       {"atoll_snapshots_failed_total 2\n", "atoll_snapshots_taken_total 0\n",
        "atoll_snapshot_duration_seconds 2.5\n", "atoll_snapshot_stored_bytes 40960\n",
        "atoll_snapshot_live_bytes 16384\n", "atoll_snapshot_space_amplification 2.5\n",
        "atoll_snapshot_space_amplification_target 2\n", "atoll_snapshot_rewrite_lacks_room 0\n",
        "atoll_snapshot_rewritten_bytes_total 12288\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  }
}

TEST(ClusterMetricsTest, ServesCheckpointsWhereTheyAreTaken) {
  const auto control = make_segment<ControlSegment>(sizeof(ControlSegment));
  CheckpointMetrics checkpoints;
  checkpoints.taken.add(3);
  checkpoints.duration_us.store(1'500'000, std::memory_order_relaxed);
  checkpoints.bytes.store(65536, std::memory_order_relaxed);
  checkpoints.replay_us.store(250'000, std::memory_order_relaxed);
  auto exposer =
      MetricsExposer::start("127.0.0.1", 0,
                            std::make_shared<ClusterMetrics>(*control, nullptr, 0, nullptr, nullptr,
                                                             nullptr, nullptr, &checkpoints));
  ASSERT_TRUE(exposer) << exposer.error().message;
  const std::string text = scrape((*exposer)->endpoint());
  for (const char* line :
       {"atoll_checkpoints_taken_total 3\n", "atoll_checkpoints_failed_total 0\n",
        "atoll_checkpoint_duration_seconds 1.5\n", "atoll_checkpoint_bytes 65536\n",
        "atoll_replay_duration_seconds 0.25\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  }
  EXPECT_EQ(text.find("atoll_snapshot_id"), std::string::npos) << text;
}

TEST(ClusterMetricsTest, ServesTheStagesOfEpochsWithALog) {
  const auto control = make_segment<ControlSegment>(sizeof(ControlSegment));
  AcknowledgementMetrics times(2);
  times.total_ns.add(5'000'000);
  times.marker_ns[1].add(50'000);
  auto exposer = MetricsExposer::start(
      "127.0.0.1", 0,
      std::make_shared<ClusterMetrics>(*control, nullptr, 0, nullptr, nullptr, &times));
  ASSERT_TRUE(exposer) << exposer.error().message;
  const std::string text = scrape((*exposer)->endpoint());
  for (const char* line :
       {"atoll_epoch_durable_seconds_count 1\n", "atoll_epoch_marker_seconds_count{node=\"0\"} 0\n",
        "atoll_epoch_marker_seconds_count{node=\"1\"} 1\n",
        "atoll_epoch_publish_seconds_count 0\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  }
}

TEST(ClusterMetricsTest, ServesStateAndEpochs) {
  const auto control = make_segment<ControlSegment>(sizeof(ControlSegment));
  control->state.store(static_cast<uint32_t>(ClusterState::running), std::memory_order_relaxed);
  control->recovered_percent.store(25, std::memory_order_relaxed);
  control->epochs.current.store(42, std::memory_order_relaxed);
  control->epoch_interval_us = 10'000;
  control->epochs.early_ends.store(5, std::memory_order_relaxed);
  control->storages[1].name[0] = 'a';
  control->storages[1].state.store(static_cast<uint32_t>(StorageState::ready),
                                   std::memory_order_relaxed);
  auto exposer =
      MetricsExposer::start("127.0.0.1", 0, std::make_shared<ClusterMetrics>(*control, nullptr, 3));
  ASSERT_TRUE(exposer) << exposer.error().message;
  const std::string text = scrape((*exposer)->endpoint());
  for (const char* line :
       {"atoll_cluster_running 1\n", "atoll_epoch_current 42\n", "atoll_epoch_early_ends_total 5\n",
        "atoll_epoch_interval_seconds 0.01\n", "atoll_storages 1\n", "atoll_restarts_total 3\n",
        "atoll_cluster_recovering 0\n", "atoll_recovery_read_ratio 0.25\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  }
}

TEST(MetricsPortTest, EachProcessHasItsOwnUnlessAnyFreeOneWillDo) {
  EXPECT_EQ(metrics_port(9100, 0), 9100);
  EXPECT_EQ(metrics_port(9100, 3), 9103);
  EXPECT_EQ(metrics_port(0, 3), 0);
}

}  // namespace
}  // namespace atolldb
