#include "engine/gleaner/run_reduction.h"

#include <algorithm>
#include <utility>

#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
namespace {

/// A writer calls `check` once for this many records: several times a second.
constexpr uint64_t kRecordsPerCheck = 1 << 16;

/// Merges the runs [first, first + count) of the set to one, which takes their place.
Result<void> merge_adjacent(FileSystem& file_system, const RunMergeSettings& settings, RunSet& set,
                            size_t first, size_t count, RunReduction& reduction,
                            const std::function<Result<void>()>& check) {
  CHECK(count >= 2 && first + count <= set.runs.size());
  const std::span<const SortedRun> inputs = std::span(set.runs).subspan(first, count);
  uint64_t records = 0;
  uint64_t bytes = 0;
  for (const SortedRun& run : inputs) {
    records += run.records;
    bytes += run.bytes;
  }
  const SortedRunName name = set.next_name;
  ++set.next_name.number;
  set.paths.push_back(path_in(set.folder, to_string(name)));
  SortedRun merged;
  {
    RecordMerge merge;  // closes its files at the end of this block
    ATOLL_TRY(add_runs(file_system, settings, inputs, merge));
    ATOLL_TRY(merge.start());
    ATOLL_ASSIGN(merged, write_run(file_system, set.paths.back(), name, bytes, settings.chunk_bytes,
                                   merge, check));
    CHECK(merged.records + merge.elided() == records);
    reduction.elided += merge.elided();
  }
  CHECK(merged.bytes <= bytes);
  ++reduction.runs;
  reduction.bytes += merged.bytes;
  for (const SortedRun& run : inputs) {
    ATOLL_TRY(file_system.remove(run.path));
    std::erase(set.paths, run.path);
  }
  const auto begin = set.runs.begin() + static_cast<ptrdiff_t>(first);
  *begin = std::move(merged);
  set.runs.erase(begin + 1, begin + static_cast<ptrdiff_t>(count));
  return {};
}

}  // namespace

uint32_t runs_at_once(const RunMergeSettings& settings) {
  CHECK(settings.chunk_bytes > 0 && settings.max_runs >= 2);
  const uint64_t fit = kMergeReadBytes / (2 * settings.chunk_bytes);
  return static_cast<uint32_t>(std::clamp<uint64_t>(fit, 2, settings.max_runs));
}

Result<void> add_runs(FileSystem& file_system, const RunMergeSettings& settings,
                      std::span<const SortedRun> runs, RecordMerge& merge) {
  if (runs.empty()) return {};
  CHECK(runs.size() <= runs_at_once(settings));
  const uint64_t bytes = std::min(settings.read_bytes, kMergeReadBytes / (2 * runs.size()));
  const auto chunks = static_cast<uint32_t>(std::max<uint64_t>(1, bytes / settings.chunk_bytes));
  for (const SortedRun& run : runs) {
    ATOLL_ASSIGN(auto reader, SortedRunReader::open(file_system, run, chunks));
    merge.add(std::move(reader));
  }
  return {};
}

Result<SortedRun> write_run(FileSystem& file_system, const std::string& path, SortedRunName name,
                            uint64_t record_bytes, uint64_t chunk_bytes, RecordMerge& merge,
                            const std::function<Result<void>()>& check) {
  IoBuffer buffer(std::max<uint64_t>(1, kRunWriteBytes / chunk_bytes) * chunk_bytes);
  ATOLL_ASSIGN(auto writer, SortedRunWriter::create(file_system, path, name, record_bytes,
                                                    chunk_bytes, buffer.bytes()));
  uint64_t until_check = kRecordsPerCheck;
  while (!merge.batch().empty()) {
    const size_t count = merge.batch().size();
    for (const SortKey& key : merge.batch()) {
      ATOLL_TRY(writer.add(*key.record));
    }
    until_check -= std::min<uint64_t>(until_check, count);
    if (until_check == 0 && check) {
      until_check = kRecordsPerCheck;
      ATOLL_TRY(check());
    }
    ATOLL_TRY(merge.take(count));
  }
  return writer.finish();
}

Result<RunReduction> reduce_runs(FileSystem& file_system, const RunMergeSettings& settings,
                                 RunSet& set, const std::function<Result<void>()>& check) {
  const size_t most = runs_at_once(settings);
  RunReduction reduction;
  // Each pass merges groups of adjacent runs, from the first run on. So no run gets much longer
  // than the others, and records with equal sort keys keep the order of their runs. The last group
  // is only as large as necessary.
  for (size_t first = 0; set.runs.size() > most;) {
    const size_t left = set.runs.size() - first;
    const size_t count = std::min({most, set.runs.size() - most + 1, left});
    if (count < 2) {
      first = 0;  // the next pass
      continue;
    }
    ATOLL_TRY(check());
    ATOLL_TRY(merge_adjacent(file_system, settings, set, first, count, reduction, check));
    ++first;
  }
  return reduction;
}

}  // namespace atolldb
