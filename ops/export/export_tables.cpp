#include "ops/export/export_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "ops/export/part_file.h"
#include "ops/export/row_format.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

constexpr size_t kExportBufferBytes = size_t{1} << 20;
/// Time between two writes of the manifest. After a kill, parts completed since the last one are
/// written again.
constexpr std::chrono::milliseconds kManifestPause{1'000};
constexpr size_t kMaxShownKeyBytes = 32;

std::string shown_key(std::string_view key) {
  std::string text;
  for (const char byte : key.substr(0, kMaxShownKeyBytes)) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text + (key.size() > kMaxShownKeyBytes ? "..." : "");
}

class TableWriter {
 public:
  TableWriter(FileSystem& file_system, const ExportRequest& request, const ExportSchema& schema,
              const ExportSource& source, ExportManifest& manifest)
      : file_system_(file_system),
        request_(request),
        schema_(schema),
        source_(source),
        manifest_(manifest) {
    for (size_t table = 0; table < manifest.tables.size(); ++table) {
      CHECK(!manifest.tables[table].parts.empty());
      for (size_t part = 0; part < manifest.tables[table].parts.size(); ++part) {
        places_.push_back({table, part});
      }
    }
    progress_.parts = places_.size();
  }

  Result<void> run() {
    {
      std::vector<std::jthread> threads;
      for (uint32_t i = 0; i < std::clamp(request_.threads, 1u, kMaxExportThreads); ++i) {
        threads.emplace_back([this] { write_parts(); });
      }
    }
    const std::lock_guard lock(mutex_);
    // Saves the manifest even after a failure, because complete parts count.
    const Result<void> saved = write_export_manifest(file_system_, request_.directory, manifest_);
    if (failure_) return std::unexpected(*failure_);
    return saved;
  }

 private:
  struct Place {
    size_t table;
    size_t part;
  };

  void write_parts() {
    // Relaxed: the counter and the flag order no other accesses.
    while (!has_failed_.load(std::memory_order_relaxed)) {
      const size_t next = next_.fetch_add(1, std::memory_order_relaxed);
      if (next >= places_.size()) return;
      const Result<void> done = write_or_keep(places_[next]);
      if (done) continue;
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = done.error();
      has_failed_.store(true, std::memory_order_relaxed);
    }
  }

  std::string path_of(const Place& place) const {
    const std::string& table = manifest_.tables[place.table].name;
    return table_folder(request_.directory, table) + "/" + part_name(place.part);
  }

  Result<void> write_or_keep(const Place& place) {
    // Copies the entry under the lock, because other threads read all entries when they save the
    // manifest.
    ExportPart part;
    {
      const std::lock_guard lock(mutex_);
      part = manifest_.tables[place.table].parts[place.part];
    }
    if (part.is_complete) {
      ATOLL_ASSIGN(const PartSum sum, sum_of_part(path_of(place)));
      if (sum == PartSum{part.bytes, part.crc32c}) return report_kept();
    }
    ATOLL_TRY(write_part(place, part));
    const std::lock_guard lock(mutex_);
    manifest_.tables[place.table].parts[place.part] = part;
    ++progress_.done;
    const auto now = std::chrono::steady_clock::now();
    if (now - saved_at_ < kManifestPause) return {};
    saved_at_ = now;
    return write_export_manifest(file_system_, request_.directory, manifest_);
  }

  Result<void> write_part(const Place& place, ExportPart& part) {
    const std::string& name = manifest_.tables[place.table].name;
    const TableSchema* table = schema_.find(name);
    CHECK(table != nullptr);
    ATOLL_ASSIGN(PartFile file, PartFile::create(path_of(place), request_.reserve_bytes));
    std::string buffer = header_row(*table);
    uint64_t rows = 0;
    uint64_t reported = 0;
    const auto flush = [&]() -> Result<void> {
      ATOLL_TRY(file.write(buffer));
      ATOLL_TRY(report(rows - reported, buffer.size()));
      reported = rows;
      buffer.clear();
      return {};
    };
    const auto visit = [&](const WalkedRecord& record) -> Result<void> {
      const auto appended = append_row(*table, record.key, record.payload, buffer);
      if (!appended) {
        return unfit_table(*table, fmt::format("key 0x{}: {}: correct the schema",
                                               shown_key(record.key), appended.error()));
      }
      ++rows;
      return buffer.size() < kExportBufferBytes ? Result<void>() : flush();
    };
    ATOLL_TRY(source_.walk(*table, part.range, visit));
    ATOLL_TRY(flush());
    ATOLL_ASSIGN(const PartSum sum, file.finish());
    ATOLL_TRY(file_system_.sync_directory(table_folder(request_.directory, name)));
    part.is_complete = true;
    part.rows = rows;
    part.bytes = sum.bytes;
    part.crc32c = sum.crc32c;
    return {};
  }

  Result<void> report_kept() {
    {
      const std::lock_guard lock(mutex_);
      ++progress_.done;
      ++progress_.kept;
    }
    return report(0, 0);
  }

  Result<void> report(uint64_t rows, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    progress_.rows += rows;
    progress_.bytes += bytes;
    if (has_failed_.load(std::memory_order_relaxed)) {
      return make_error(ExitCode::failed, "export: another part has failed");
    }
    return request_.on_progress ? request_.on_progress(progress_) : Result<void>();
  }

  FileSystem& file_system_;
  const ExportRequest& request_;
  const ExportSchema& schema_;
  const ExportSource& source_;
  std::vector<Place> places_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> has_failed_{false};
  std::mutex mutex_;
  ExportManifest& manifest_;      // its parts are guarded by mutex_
  ExportProgress progress_;       // guarded by mutex_
  std::optional<Error> failure_;  // guarded by mutex_; the first failure
  /// Time of the last write of the manifest. Guarded by mutex_.
  std::chrono::steady_clock::time_point saved_at_ = std::chrono::steady_clock::now();
};

}  // namespace

Result<void> plan_export(const ExportSource& source, const ExportRequest& request,
                         const ExportSchema& schema, ExportManifest& manifest) {
  CHECK(request.parts >= 1 && request.parts <= kMaxTableParts);
  size_t parts = 0;
  for (ExportTable& table : manifest.tables) {
    const TableSchema* found = schema.find(table.name);
    CHECK(found != nullptr);
    ATOLL_ASSIGN(const auto ranges, source.split(*found, request.parts));
    table.parts.clear();
    for (const WalkRange& range : ranges) table.parts.push_back({range});
    CHECK(!table.parts.empty() && table.parts.size() <= request.parts);
    parts += table.parts.size();
  }
  if (parts <= kMaxExportParts) return {};
  return make_error(ExitCode::usage, fmt::format("export: the tables have {} parts, the limit is "
                                                 "{}: choose smaller --parts",
                                                 parts, kMaxExportParts));
}

Result<void> export_tables(FileSystem& file_system, const ExportSource& source,
                           const ExportRequest& request, const ExportSchema& schema,
                           ExportManifest& manifest) {
  for (const ExportTable& table : manifest.tables) {
    ATOLL_TRY(file_system.make_directory(table_folder(request.directory, table.name)));
  }
  ATOLL_TRY(TableWriter(file_system, request, schema, source, manifest).run());
  manifest.is_complete = true;
  return write_export_manifest(file_system, request.directory, manifest);
}

}  // namespace atolldb
