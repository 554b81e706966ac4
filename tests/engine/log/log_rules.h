// Bodies for rows of kRules in tests/engine/rules_mutant_test.cpp. A body returns an error text, or
// an empty text if all is right.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/engine/log/written_log.h"

namespace atolldb::test {

/// One bit of a payload flips, and the records stay well-formed. The reader must notice the flip.
inline std::string a_flipped_bit_is_noticed() {
  MemoryFileSystem files;
  LogWriter writer = make_writer(files, kFirst, 1, 10);
  BlockBuffer buffer(1);
  begin_block(buffer.all()[0], 10, 0);
  add_record(buffer.all()[0], LogType::append, 1, uint64_t{10} << 28, {},
             std::array<std::byte, 64>{});
  CHECK(writer.append(std::array{buffer.all()}, 0).has_value());
  CHECK(writer.close_epoch(10, 0).has_value());
  auto& bytes = files.bytes("/data/node0/log_1_0_000000.atlog");
  bytes[kLogBlockBytes + sizeof(LogBlockHeader) + sizeof(LogRecord) + 5] ^= std::byte{4};
  auto scan = scan_log(files, {"/data", 0, 0, 1, 10, kUuid});
  CHECK(scan.has_value());
  if (scan->durable_epoch != 9) return "a marker counts after a damaged block";
  if (!scan->end.is_defect || scan->end.offset != kLogBlockBytes) return "another end is named";
  return "";
}

/// A block is missing, and the blocks after it have moved up.
inline std::string a_missing_block_is_noticed() {
  MemoryFileSystem files;
  std::mt19937_64 random(1);
  LogWriter writer = make_writer(files, kFirst, 1, 10);
  write_epoch(writer, 10, 3, 0, random);
  auto& bytes = files.bytes("/data/node0/log_1_0_000000.atlog");
  std::move(bytes.begin() + 3 * kLogBlockBytes, bytes.end(), bytes.begin() + 2 * kLogBlockBytes);
  auto scan = scan_log(files, {"/data", 0, 0, 1, 10, kUuid});
  CHECK(scan.has_value());
  if (scan->durable_epoch != 9) return "a marker counts after a gap";
  return "";
}

/// One logger has closed an epoch, and the other logger has not. The epoch does not count.
inline std::string the_slowest_logger_sets_the_cut() {
  DataDirectory data;
  std::string problem = data.begin({kFirst, kSecond});
  if (!problem.empty()) return problem;
  data.write_all(1, 3);
  data.write(0, 4);
  auto start = examine(data.files, "/data");
  if (!start) return start.error().message;
  if (start->savepoint.incarnations.back().cut_epoch != 3) return "the cut is not the minimum";
  return "";
}

/// A durable block reads as zeros, and a later block shows that it was durable.
inline std::string missing_durable_blocks_are_corruption() {
  DataDirectory data;
  std::string problem = data.begin({kFirst, kSecond}, 64);
  if (!problem.empty()) return problem;
  data.write_all(1, 5);
  auto& bytes = data.files.bytes("/fast/node1/log_1_0_000000.atlog");
  std::fill_n(bytes.begin() + 4 * kLogBlockBytes, kLogBlockBytes, std::byte{});
  auto start = examine(data.files, "/data");
  if (start) return "the damaged log was accepted";
  if (start.error().code != ExitCode::corruption) return start.error().message;
  const std::string& message = start.error().message;
  if (message.find("/fast/node1/log_1_0_000000.atlog: offset 16384") == std::string::npos) {
    return "file and offset are not named: " + message;
  }
  return "";
}

/// The DDL log has lost its last record, and the savepoint is older than this record.
inline std::string records_of_uncreated_storages_are_corruption() {
  DataDirectory data;
  std::string problem = data.begin({kFirst});
  if (!problem.empty()) return problem;
  data.write_all(1, 2);
  const std::string ddl = "/data/coordinator/ddl_000000.atlog";
  data.files.bytes(ddl)[(kStorages - 1) * kIoBlockBytes + 50] ^= std::byte{1};
  auto start = examine(data.files, "/data");
  if (start) return "a log with records of a storage that was never created was accepted";
  if (start.error().code != ExitCode::corruption) return start.error().message;
  const std::string& message = start.error().message;
  const std::string place = "/data/node0/log_1_0_000000.atlog: offset ";
  if (!message.contains(place) || !message.contains("a record of storage 9,")) {
    return "storage, file and offset are not named: " + message;
  }
  return "";
}

}  // namespace atolldb::test
