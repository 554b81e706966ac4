#include "engine/gleaner/reducer.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Returns the number of records in `sorted` that belong to a partition before the one that begins
/// with `low`.
size_t count_before(std::span<const SortKey> sorted, std::string_view low) {
  const auto first = std::ranges::partition_point(
      sorted, [&](const SortKey& key) { return is_before(key_of(*key.record), low); });
  return static_cast<size_t>(first - sorted.begin());
}

/// The records of a merge that belong to one range.
class RangeSource : public LogSource {
 public:
  RangeSource(RecordMerge& merge, uint32_t storage_id, std::optional<std::string_view> high)
      : merge_(&merge), storage_id_(storage_id), high_(high) {
    choose_batch();
  }

  Result<void> advance() override {
    CHECK(!batch_.empty());
    const size_t count = batch_.size();
    batch_ = {};
    ATOLL_TRY(merge_->take(count));
    choose_batch();
    return {};
  }

 private:
  void choose_batch() {
    batch_ = merge_->batch();
    if (batch_.empty()) return;
    if (merge_->storage() != storage_id_) batch_ = {};
    if (high_) batch_ = batch_.first(count_before(batch_, *high_));
  }

  RecordMerge* merge_;
  uint32_t storage_id_;
  std::optional<std::string> high_;
};

}  // namespace

Reducer::Reducer(FileSystem& file_system, ReducerInbox& inbox, ReducerSettings settings)
    : file_system_(&file_system),
      inbox_(&inbox),
      settings_(std::move(settings)),
      set_{.folder = node_directory(settings_.directory, settings_.node),
           .next_name = {settings_.snapshot, settings_.reducer, 0}} {
  CHECK(settings_.chunk_bytes >= SortedRunWriter::kMinChunkBytes &&
        settings_.chunk_bytes % kIoBlockBytes == 0);
}

Reducer::~Reducer() {
  for (const std::string& path : set_.paths) {
    // If a removal fails, remove_leftovers removes the file at the next start-up.
    if (auto exists = file_system_->exists(path); exists && *exists) {
      static_cast<void>(file_system_->remove(path));
    }
  }
}

Result<void> Reducer::collect() {
  auto collected = collect_all();
  if (!collected) inbox_->give_up(settings_.snapshot);
  return collected;
}

Result<void> Reducer::collect_all() {
  CHECK(set_.paths.empty() && is_at_end());  // called once
  for (;;) {
    ATOLL_ASSIGN(auto batch, inbox_->next_batch(settings_.snapshot));
    if (!batch.is_last) {
      ATOLL_TRY(dump(batch));
      continue;
    }
    ATOLL_ASSIGN(const RunReduction reduction,
                 reduce_runs(*file_system_, merge_settings(), set_,
                             [this] { return inbox_->check(settings_.snapshot); }));
    elided_ += reduction.elided;
    progress_.sorted_runs.fetch_add(reduction.runs, std::memory_order_relaxed);
    progress_.bytes_dumped.fetch_add(reduction.bytes, std::memory_order_relaxed);
    ATOLL_TRY(add_runs(*file_system_, merge_settings(), set_.runs, merge_));
    ATOLL_TRY(add_messages(batch, merge_));
    return merge_.start();
  }
}

/// Adds the messages of a batch to a merge and returns their size.
Result<Reducer::Received> Reducer::add_messages(const InboxBatch& batch, RecordMerge& merge) {
  Received received;
  for (std::span<const std::byte> rest = batch.bytes; !rest.empty();) {
    ATOLL_ASSIGN(auto message, take_message(rest));
    if (message.records == 0) continue;  // void (R40)
    merge.add(message.bytes);
    received.bytes += message.bytes.size();
    received.records += message.records;
  }
  progress_.records_received.fetch_add(received.records, std::memory_order_relaxed);
  progress_.bytes_received.fetch_add(received.bytes, std::memory_order_relaxed);
  return received;
}

Result<void> Reducer::dump(const InboxBatch& batch) {
  RecordMerge merge;
  ATOLL_ASSIGN(const Received received, add_messages(batch, merge));
  if (received.bytes == 0) return {};
  ATOLL_TRY(merge.start());

  if (set_.runs.empty()) {
    ATOLL_TRY(file_system_->make_directory(set_.folder));
  }
  const SortedRunName name = set_.next_name;
  ++set_.next_name.number;
  set_.paths.push_back(path_in(set_.folder, to_string(name)));
  ATOLL_ASSIGN(auto run, write_run(*file_system_, set_.paths.back(), name, received.bytes,
                                   settings_.chunk_bytes, merge));
  CHECK(run.bytes <= received.bytes);
  if (run.records + merge.elided() != received.records) {
    return make_error(
        ExitCode::corruption,
        fmt::format("inbox of a reducer: the messages hold {} log records, not {} as announced: "
                    "the shared memory was overwritten: restart the cluster",
                    run.records + merge.elided(), received.records));
  }
  progress_.sorted_runs.fetch_add(1, std::memory_order_relaxed);
  progress_.bytes_dumped.fetch_add(run.bytes, std::memory_order_relaxed);
  elided_ += merge.elided();
  set_.runs.push_back(std::move(run));
  return {};
}

Result<std::unique_ptr<LogSource>> Reducer::open(uint32_t storage_id, std::string_view low,
                                                 std::optional<std::string_view> high) {
  CHECK(!high || low < *high);
  while (!is_at_end() && merge_.storage() <= storage_id) {
    const size_t count =
        merge_.storage() < storage_id ? merge_.batch().size() : count_before(merge_.batch(), low);
    if (count == 0) break;
    skipped_ += count;
    ATOLL_TRY(merge_.take(count));
  }
  return std::make_unique<RangeSource>(merge_, storage_id, high);
}

}  // namespace atolldb
