#include "engine/log/log_writer.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

#include "engine/format/log_block.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"

namespace atolldb {

LogWriter::LogWriter(FileSystem& file_system, LogWriterSettings settings)
    : file_system_(&file_system),
      settings_(std::move(settings)),
      blocks_per_file_(settings_.file_bytes / kLogBlockBytes),
      last_epoch_(settings_.start_epoch - 1),
      closed_epoch_(settings_.start_epoch - 1),
      header_(std::make_unique<OwnBlock>()),
      marker_(std::make_unique<OwnBlock>()) {
  CHECK(settings_.start_epoch > 0 && settings_.start_epoch <= kMaxEpoch);
  CHECK(settings_.file_bytes % kLogBlockBytes == 0 && blocks_per_file_ >= 3);
  LogFileHeader contents = {settings_.file_bytes, settings_.start_epoch, {}};
  std::ranges::copy(settings_.cluster_uuid, contents.cluster_uuid);
  std::memcpy(header_->block.payload, &contents, sizeof contents);
  header_->block.header.length = sizeof contents;
  header_->block.header.type = LogBlockType::file_header;
  marker_->block.header.type = LogBlockType::marker;
}

Result<LogWriter> LogWriter::create(FileSystem& file_system, LogWriterSettings settings) {
  LogWriter writer(file_system, std::move(settings));
  ATOLL_TRY(file_system.make_directory(
      node_directory(writer.settings_.directory, writer.settings_.node)));
  ATOLL_ASSIGN(auto file, writer.make_file(0));
  writer.current_ = std::move(file);
  writer.start_file();
  auto begun = writer.write_placed();
  if (begun) begun = writer.sync_all();
  if (begun) return writer;
  const std::string path = writer.current_->path();
  writer.current_.reset();
  if (auto removed = file_system.remove(path); !removed) {
    begun.error().message += "; and " + removed.error().message;
  }
  return std::unexpected(begun.error());
}

Result<void> LogWriter::append(std::span<const std::span<LogBlock>> runs, uint64_t durable_epoch) {
  if (failure_) return std::unexpected(*failure_);
  ATOLL_TRY(place_records(runs, durable_epoch));
  return write_placed();
}

Result<void> LogWriter::close_epoch(uint64_t epoch, uint64_t durable_epoch,
                                    std::span<const std::span<LogBlock>> runs) {
  if (failure_) return std::unexpected(*failure_);
  ATOLL_TRY(place_records(runs, durable_epoch));
  marker_->block.header.epoch = epoch;
  seal_block(marker_->block);
  ATOLL_TRY(place(LogBlockType::marker, {&marker_->block, 1}, durable_epoch));
  CHECK(last_epoch_ == epoch);
  // One write stores records and marker, in any order. If a crash leaves a gap before the marker,
  // the chain of blocks ends at the gap, so the marker does not count.
  ATOLL_TRY(write_placed());
  ATOLL_TRY(sync_all());
  CHECK(written_ == position_ && placed_.empty());
  closed_epoch_ = epoch;
  return {};
}

Result<void> LogWriter::prepare_next_file() {
  if (failure_) return std::unexpected(*failure_);
  if (next_) return {};
  auto file = make_file(ordinal_ + 1);
  if (!file) {
    if (file.error().code != ExitCode::disk_full) return fail(std::move(file.error()));
    ++counters_.failed_preallocations;
    return std::unexpected(file.error());
  }
  next_ = std::move(*file);
  return {};
}

Result<std::unique_ptr<File>> LogWriter::make_file(uint32_t ordinal) {
  const std::string directory = node_directory(settings_.directory, settings_.node);
  const LogFileName name = {settings_.incarnation, settings_.logger, ordinal};
  auto file = file_system_->create(path_in(directory, to_string(name)), settings_.file_bytes);
  if (!file) return file;
  if (auto synced = sync_new(**file, directory); !synced) {
    // Removes the empty file, so that a later attempt can create it again and a failed start-up
    // leaves no file.
    const std::string path = (*file)->path();
    file->reset();
    if (auto removed = file_system_->remove(path); !removed) {
      synced.error().message += "; and " + removed.error().message;
    }
    return std::unexpected(synced.error());
  }
  return file;
}

Result<void> LogWriter::sync_new(File& file, const std::string& directory) {
  ATOLL_TRY(file.sync());
  return file_system_->sync_directory(directory);
}

void LogWriter::start_file() {
  CHECK(current_ != nullptr && placed_.empty());
  CHECK(closed_epoch_ <= last_epoch_);
  CHECK(next_sequence_ == ordinal_ * blocks_per_file_);
  position_ = written_ = 0;
  header_->block.header.epoch = closed_epoch_;
  header_->block.header.last_epoch_before = last_epoch_;
  seal_block(header_->block);
  ++counters_.files;
  // The header names no durable epoch, because the last block of the previous file has named it.
  stamp(header_->block, 0);
  placed_.push_back(std::as_bytes(std::span(&header_->block, 1)));
  position_ = 1;
}

Result<void> LogWriter::place_records(std::span<const std::span<LogBlock>> runs,
                                      uint64_t durable_epoch) {
  for (const std::span<LogBlock> run : runs) {
    ATOLL_TRY(place(LogBlockType::records, run, durable_epoch));
  }
  return {};
}

Result<void> LogWriter::place(LogBlockType type, std::span<LogBlock> run, uint64_t durable_epoch) {
  CHECK(durable_epoch <= closed_epoch_);
  CHECK(reinterpret_cast<uintptr_t>(run.data()) % kIoBlockBytes == 0);
  while (!run.empty()) {
    if (position_ == blocks_per_file_) {
      ATOLL_TRY(write_placed());
      // The current file is full, so an error that was retryable until now is final.
      if (auto prepared = prepare_next_file(); !prepared) return fail(prepared.error());
      filled_.push_back(std::exchange(current_, std::move(next_)));
      ++ordinal_;
      start_file();
    }
    CHECK(next_sequence_ == ordinal_ * blocks_per_file_ + position_);
    const uint64_t count = std::min<uint64_t>(run.size(), blocks_per_file_ - position_);
    for (LogBlock& block : run.first(count)) {
      CHECK(block.header.type == type);
      CHECK(block.header.epoch > closed_epoch_ && block.header.epoch >= last_epoch_);
      last_epoch_ = block.header.epoch;
      stamp(block, durable_epoch);
    }
    placed_.push_back(std::as_bytes(run.first(count)));
    position_ += count;
    run = run.subspan(count);
  }
  return {};
}

void LogWriter::stamp(LogBlock& block, uint64_t durable_epoch) {
  LogBlockHeader& header = block.header;
  const uint32_t payload_crc = header.crc;
  CHECK(header.length <= kLogBlockPayload && header.length % 8 == 0);
  CHECK(header.epoch <= kMaxEpoch && durable_epoch <= header.epoch);
  header.magic = kLogBlockMagic;
  header.incarnation = settings_.incarnation;
  header.sequence = next_sequence_++;
  header.durable_epoch = durable_epoch;
  header.file_ordinal = ordinal_;
  header.node = settings_.node;
  header.logger = settings_.logger;
  header.version = kLogFormatVersion;
  if (header.type != LogBlockType::file_header) header.last_epoch_before = 0;
  DCHECK(payload_crc == payload_crc_of(block));
  header.crc = crc_of(block, payload_crc);
}

Result<void> LogWriter::write_placed() {
  if (placed_.empty()) return {};
  CHECK(written_ < position_ && position_ <= blocks_per_file_);
  auto written = current_->write(written_ * kLogBlockBytes, placed_);
  placed_.clear();
  if (!written) return fail(std::move(written.error()));
  const uint64_t count = position_ - written_;
  written_ = position_;
  counters_.blocks += count;
  counters_.bytes += count * kLogBlockBytes;
  return {};
}

Result<void> LogWriter::sync_all() {
  const auto begin = std::chrono::steady_clock::now();
  for (const std::unique_ptr<File>& file : filled_) {
    if (auto synced = file->sync(); !synced) return fail(std::move(synced.error()));
    ++counters_.syncs;
  }
  filled_.clear();
  if (auto synced = current_->sync(); !synced) return fail(std::move(synced.error()));
  ++counters_.syncs;
  const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - begin;
  counters_.sync_ns += static_cast<uint64_t>(time.count());
  return {};
}

Result<void> LogWriter::fail(Error error) {
  placed_.clear();
  failure_ = std::move(error);
  return std::unexpected(*failure_);
}

}  // namespace atolldb
