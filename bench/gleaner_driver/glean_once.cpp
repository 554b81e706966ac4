#include "bench/gleaner_driver/glean_once.h"

#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "bench/common/clock.h"
#include "engine/compose/combine_roots.h"
#include "engine/compose/compose.h"
#include "engine/gleaner/mapper.h"
#include "engine/gleaner/reducer.h"
#include "shared/base/try.h"

namespace atolldb::gleaner_bench {
namespace {

struct FreeMemory {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};

uint64_t ns_of(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(time.tv_usec) * 1'000;
}

/// Returns what the current thread has used so far.
rusage thread_usage() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage;
}

/// Runs `part` and adds its time on this thread to `time`.
template <typename Part>
auto timed(PartTime& time, const Part& part) {
  const uint64_t wall = bench::monotonic_ns();
  const rusage before = thread_usage();
  auto result = part();
  const rusage after = thread_usage();
  time.wall_ns += bench::monotonic_ns() - wall;
  const uint64_t system_ns = ns_of(after.ru_stime) - ns_of(before.ru_stime);
  time.system_ns += system_ns;
  time.cpu_ns += ns_of(after.ru_utime) - ns_of(before.ru_utime) + system_ns;
  return result;
}

/// Composes the partitions in the order in which the reducer outputs them. The compose_all of a
/// node uses the same order.
class Composing {
 public:
  Composing(const SnapshotPlan& plan, Reducer& reducer, const SnapshotFiles& base,
            SnapshotWriter& writer)
      : plan_(plan), reducer_(reducer), base_(base), writer_(writer) {}

  Result<std::vector<ComposedPartition>> all(Gleaned& gleaned) {
    std::vector<ComposedPartition> partitions;
    for (size_t storage = 0; storage < plan_.storages.size(); ++storage) {
      ATOLL_ASSIGN(auto logs, reducer_.open(plan_.storages[storage].id, "", std::nullopt));
      ATOLL_ASSIGN(auto composed, compose({.plan = plan_,
                                           .storage = storage,
                                           .partition = 0,
                                           .logs = *logs,
                                           .base = base_,
                                           .writer = writer_,
                                           .writer_mutex = mutex_}));
      gleaned.records_composed += composed.log_records;
      gleaned.pages_written += composed.pages_written;
      gleaned.pages_read += composed.pages_read;
      partitions.push_back(std::move(composed));
    }
    return partitions;
  }

 private:
  const SnapshotPlan& plan_;
  Reducer& reducer_;
  const SnapshotFiles& base_;
  SnapshotWriter& writer_;
  std::mutex mutex_;
};

Result<SnapshotWriter> make_writer(FileSystem& file_system, const SnapshotPlan& plan,
                                   const std::string& directory, uint32_t node) {
  return SnapshotWriter::create(file_system,
                                {directory, node, plan.snapshot, plan.epoch, plan.cluster_uuid});
}

/// Does what the coordinator does at the end of a snapshot job: combines the roots and lists the
/// files.
Result<Base> finish(const SnapshotPlan& plan, const std::vector<ComposedPartition>& partitions,
                    const SnapshotFiles& base, const std::string& directory, SnapshotWriter& pages,
                    SnapshotWriter& roots) {
  ATOLL_TRY(pages.finish());
  Base result{plan.snapshot, plan.epoch, {}, plan.files};
  for (size_t storage = 0; storage < plan.storages.size(); ++storage) {
    ATOLL_ASSIGN(const auto root,
                 combine_roots(plan, storage, {&partitions[storage], 1}, base, roots));
    result.roots.push_back(root.root);
  }
  ATOLL_TRY(roots.finish());
  result.files.push_back({plan.snapshot, 0, directory, pages.page_count()});
  result.files.push_back({plan.snapshot, kCoordinator, directory, roots.page_count()});
  // Page 0 is the header. A writer that wrote no other page leaves no file.
  std::erase_if(result.files, [](const SnapshotFilePlace& file) { return file.page_count <= 1; });
  return result;
}

/// Runs mapper and reducer, each on a thread, until the reducer has all records.
Result<void> collect(Mapper& mapper, Reducer& reducer, Gleaned& gleaned) {
  Result<void> mapped;
  std::jthread mapping([&] { mapped = timed(gleaned.map, [&] { return mapper.run(); }); });
  const auto collected = timed(gleaned.collect, [&] { return reducer.collect(); });
  mapping.join();
  return mapped ? collected : mapped;
}

void count(const Mapper& mapper, const Reducer& reducer, Gleaned& gleaned) {
  // Relaxed: the threads have ended, and their join orders the accesses.
  const auto load = [](const std::atomic<uint64_t>& word) {
    return word.load(std::memory_order_relaxed);
  };
  gleaned.read_bytes = load(mapper.progress().bytes_read);
  gleaned.records_read = load(mapper.progress().records_read);
  gleaned.records_shipped = load(mapper.progress().records_shipped);
  gleaned.records_received = load(reducer.progress().records_received);
  gleaned.sorted_runs = load(reducer.progress().sorted_runs);
  gleaned.dumped_bytes = load(reducer.progress().bytes_dumped);
}

}  // namespace

Result<Gleaned> glean_once(FileSystem& file_system, const SnapshotPlan& plan,
                           const std::string& directory, uint64_t exchange_bytes) {
  Gleaned gleaned;
  const uint64_t begin = bench::monotonic_ns();
  SnapshotFiles base(file_system, plan.cluster_uuid);
  ATOLL_TRY(base.open(plan.files));
  ATOLL_ASSIGN(auto pages, make_writer(file_system, plan, directory, 0));
  ATOLL_ASSIGN(auto roots, make_writer(file_system, plan, directory, kCoordinator));

  const std::unique_ptr<std::byte, FreeMemory> memory(
      static_cast<std::byte*>(std::aligned_alloc(kPageBytes, exchange_bytes)));
  ReducerInbox::format(memory.get(), exchange_bytes);
  ReducerInbox inbox(memory.get(), [] { return false; });
  ATOLL_TRY(inbox.begin(plan.snapshot, 1));
  ReducerInbox* const inboxes[] = {&inbox};
  Reducer reducer(file_system, inbox,
                  {.directory = directory, .node = 0, .reducer = 0, .snapshot = plan.snapshot});
  ATOLL_ASSIGN(auto mapper, Mapper::create(file_system, plan, plan.mappers.front(), inboxes));
  ATOLL_TRY(collect(*mapper, reducer, gleaned));
  count(*mapper, reducer, gleaned);

  ATOLL_ASSIGN(const auto partitions, timed(gleaned.compose, [&] {
                 return Composing(plan, reducer, base, pages).all(gleaned);
               }));
  ATOLL_ASSIGN(auto result, timed(gleaned.finish, [&] {
                 return finish(plan, partitions, base, directory, pages, roots);
               }));
  gleaned.result = std::move(result);
  gleaned.wall_ns = bench::monotonic_ns() - begin;
  return gleaned;
}

}  // namespace atolldb::gleaner_bench
