#include "engine/gleaner/reducer.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
namespace {

constexpr uint64_t kWriteBytes = kHugePageBytes;
// Limit for the buffers of all sorted runs, two per run.
constexpr uint64_t kAllReadBytes = uint64_t{32} << 20;

/// The records of a merge that belong to one range.
class RangeSource : public LogSource {
 public:
  RangeSource(RecordMerge& merge, uint32_t storage_id, std::optional<std::string_view> high)
      : merge_(&merge), storage_id_(storage_id), high_(high) {}

  const LogRecord* current() const override {
    const LogRecord* record = merge_->current();
    if (record == nullptr || record->storage_id != storage_id_) return nullptr;
    return high_ && !is_before(key_of(*record), *high_) ? nullptr : record;
  }
  Result<void> advance() override {
    DCHECK(current() != nullptr);
    return merge_->advance();
  }

 private:
  RecordMerge* merge_;
  uint32_t storage_id_;
  std::optional<std::string> high_;
};

}  // namespace

Reducer::Reducer(FileSystem& file_system, ReducerInbox& inbox, ReducerSettings settings)
    : file_system_(&file_system),
      inbox_(&inbox),
      settings_(std::move(settings)),
      folder_(node_directory(settings_.directory, settings_.node)) {
  CHECK(settings_.chunk_bytes >= SortedRunWriter::kMinChunkBytes &&
        settings_.chunk_bytes % kIoBlockBytes == 0);
}

Reducer::~Reducer() {
  for (const std::string& path : paths_) {
    // If this fails, remove_leftovers removes the files at the next start-up.
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
  CHECK(paths_.empty() && merge_.current() == nullptr);  // called once
  for (;;) {
    ATOLL_ASSIGN(auto batch, inbox_->next_batch(settings_.snapshot));
    if (!batch.is_last) {
      ATOLL_TRY(dump(batch));
      continue;
    }
    for (const SortedRun& run : runs_) {
      ATOLL_ASSIGN(auto reader, SortedRunReader::open(*file_system_, run, chunks_at_once()));
      merge_.add(std::move(reader));
    }
    ATOLL_TRY(add_messages(batch, merge_));
    return merge_.start();
  }
}

uint32_t Reducer::chunks_at_once() const {
  CHECK(!runs_.empty());
  const uint64_t bytes = std::min(settings_.read_bytes, kAllReadBytes / (2 * runs_.size()));
  return static_cast<uint32_t>(std::max<uint64_t>(1, bytes / settings_.chunk_bytes));
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

  if (runs_.empty()) {
    ATOLL_TRY(file_system_->make_directory(folder_));
  }
  const SortedRunName name = {settings_.snapshot, settings_.reducer,
                              static_cast<uint32_t>(runs_.size())};
  paths_.push_back(path_in(folder_, to_string(name)));
  IoBuffer buffer(std::max<uint64_t>(1, kWriteBytes / settings_.chunk_bytes) *
                  settings_.chunk_bytes);
  ATOLL_ASSIGN(auto writer,
               SortedRunWriter::create(*file_system_, paths_.back(), name, received.bytes,
                                       settings_.chunk_bytes, buffer.bytes()));
  while (const LogRecord* record = merge.current()) {
    ATOLL_TRY(writer.add(*record));
    ATOLL_TRY(merge.advance());
  }
  ATOLL_ASSIGN(auto run, writer.finish());
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
  runs_.push_back(std::move(run));
  return {};
}

Result<std::unique_ptr<LogSource>> Reducer::open(uint32_t storage_id, std::string_view low,
                                                 std::optional<std::string_view> high) {
  CHECK(!high || low < *high);
  while (const LogRecord* record = merge_.current()) {
    if (record->storage_id > storage_id ||
        (record->storage_id == storage_id && !is_before(key_of(*record), low))) {
      break;
    }
    ++skipped_;
    ATOLL_TRY(merge_.advance());
  }
  return std::make_unique<RangeSource>(merge_, storage_id, high);
}

}  // namespace atolldb
