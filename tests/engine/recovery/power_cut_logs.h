// Synthetic incarnations with several loggers, each ended by a power cut or a kill at a random
// change of a file. An independent ledger records what was acknowledged, and the logs must agree
// with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/format/log_block.h"
#include "engine/format/vid.h"
#include "engine/log/log_writer.h"
#include "engine/recovery/log_start.h"
#include "tests/engine/log/hooked_file_system.h"
#include "tests/engine/log/log_blocks.h"
#include "tests/support/power_cut_file_system.h"

namespace atolldb::test {

/// Writes of one transaction. Its number determines its records, which are all in one epoch and one
/// logger.
struct LoggedTransaction {
  uint64_t incarnation = 0;
  uint64_t epoch = 0;
  uint64_t number = 0;
  uint32_t records = 0;
  bool is_acknowledged = false;
};

inline std::vector<std::byte> payload_of(uint64_t transaction, uint32_t record) {
  std::mt19937_64 random(transaction * 1000 + record);
  return random_bytes(random, 200 + random() % 900);
}

class PowerCutLogs {
 public:
  explicit PowerCutLogs(uint64_t seed)
      : random_(seed), disk_(std::make_unique<PowerCutFileSystem>()) {}

  /// Faults of the files and of the loggers. Default: no faults.
  FileFaults faults;

  /// Runs several incarnations in sequence, each ended by a cut or a kill. Returns the first error,
  /// or an empty text.
  std::string run(uint32_t incarnations) {
    for (uint32_t i = 0; i < incarnations; ++i) {
      // With few changes, the crash comes during the start-up of the incarnation.
      HookedFileSystem files(*disk_, faults, random_() % (i % 2 == 0 ? 150 : 30));
      const std::string problem = live(files);
      if (!problem.empty()) return problem;
      // Two of three crashes are power cuts. The others are kills: a killed process leaves all its
      // writes, synced or not, to the next process.
      if (random_() % 3 != 0) disk_ = disk_->cut(random_());
    }
    HookedFileSystem files(*disk_, {}, UINT64_MAX);
    auto start = examine(files, "/data", kDirectories);
    if (!start) return start.error().message;
    return check(files, *start);
  }

  uint64_t acknowledged() const {
    return static_cast<uint64_t>(
        std::ranges::count(transactions_, true, &LoggedTransaction::is_acknowledged));
  }

 private:
  inline static const std::vector<std::string> kDirectories = {"/fast/one", "/fast/two"};

  struct Logger {
    std::unique_ptr<LogWriter> writer;
    uint64_t appended = 0;  // its blocks up to this epoch are appended
    std::map<uint64_t, std::vector<std::unique_ptr<BlockBuffer>>> blocks;  // by epoch
  };

  /// Runs one incarnation until its files stop working. Returns an error that occurs earlier, or an
  /// empty text.
  std::string live(HookedFileSystem& files) {
    auto start = examine(files, "/data", kDirectories);
    if (!start) return files.is_off() ? "" : "start: " + start.error().message;
    std::string problem = check(files, *start);
    if (!problem.empty()) return files.is_off() ? "" : problem;
    if (!store_cut(files, "/data", *start)) return expect_off(files);
    std::vector<Logger> loggers(1 + random_() % 3);
    std::vector<LoggerPlace> places;
    for (uint16_t i = 0; i < loggers.size(); ++i) {
      places.push_back({static_cast<uint16_t>(i % 2), static_cast<uint16_t>(i / 2),
                        random_() % 2 == 0 ? "/data" : kDirectories[random_() % 2]});
      auto writer = LogWriter::create(
          files, {places[i].directory, places[i].node, places[i].logger, start->incarnation,
                  start->start_epoch, start->savepoint.cluster_uuid,
                  (3 + random_() % 9) * kLogBlockBytes});
      if (!writer) return expect_off(files);
      loggers[i].writer = std::make_unique<LogWriter>(*std::move(writer));
      loggers[i].appended = start->start_epoch - 1;
    }
    if (!begin_incarnation(files, "/data", *start, places)) return expect_off(files);
    auto ddl = DdlLog::open(files, "/data", start->savepoint.cluster_uuid);
    if (!ddl) return expect_off(files);
    acknowledged_ddl_ = ddl_.size();  // the start has read these records, so they are durable
    // Creates storage 1, to which all transactions write.
    if (ddl_.empty() && !create_storage(*ddl, start->start_epoch)) return expect_off(files);
    return work(files, *start, loggers, *ddl);
  }

  std::string work(HookedFileSystem& files, const LogStart& start, std::vector<Logger>& loggers,
                   DdlLog& ddl) {
    uint64_t epoch = start.start_epoch;  // the last epoch with transactions
    for (;; ++epoch) {
      for (Logger& logger : loggers) commit(logger, start.incarnation, epoch);
      if (random_() % 8 == 0) {
        if (!create_storage(ddl, epoch)) return expect_off(files);
      }
      // Loggers close their epochs late, some later than others.
      for (uint64_t steps = random_() % 8; steps > 0; --steps) {
        Logger& logger = loggers[random_() % loggers.size()];
        if (!step(logger, epoch, durable_epoch(loggers))) return expect_off(files);
        acknowledge(start.incarnation, durable_epoch(loggers));
      }
    }
  }

  bool create_storage(DdlLog& ddl, uint64_t epoch) {
    ddl_.push_back({DdlOperation::create_storage, static_cast<uint32_t>(ddl_.size() + 1), epoch,
                    fmt::format("s{}", random_() % 1000), StorageType::mastertree, 8, 0});
    if (!ddl.append(ddl_.back())) return false;
    acknowledged_ddl_ = ddl_.size();
    return true;
  }

  /// Makes the logger append blocks of its next epoch, or close that epoch. Returns false if its
  /// files fail.
  bool step(Logger& logger, uint64_t current, uint64_t durable) {
    LogWriter& writer = *logger.writer;
    if (random_() % 4 == 0 && writer.wants_next_file() && !writer.prepare_next_file()) return false;
    const uint64_t next = writer.last_closed_epoch() + 1;
    if (next > current) return true;
    if (logger.appended < next) {
      std::vector<std::span<LogBlock>> runs;
      for (const auto& buffer : logger.blocks[next]) runs.push_back(buffer->all());
      logger.appended = next;
      // The logger may write the last runs of blocks together with the marker.
      const size_t before = random_() % 2 == 0 ? runs.size() : random_() % (runs.size() + 1);
      const std::span<const std::span<LogBlock>> all(runs);
      if (before != 0 && !writer.append(all.first(before), durable)) return false;
      if (before == runs.size()) return true;
      const bool is_closed = writer.close_epoch(next, durable, all.subspan(before)).has_value();
      logger.blocks.erase(next);
      return is_closed;
    }
    logger.blocks.erase(next);
    return writer.close_epoch(next, durable).has_value();
  }

  void commit(Logger& logger, uint64_t incarnation, uint64_t epoch) {
    for (uint64_t count = random_() % 3; count > 0; --count) {
      LoggedTransaction transaction = {incarnation, epoch, ++last_number_,
                                       static_cast<uint32_t>(1 + random_() % 12)};
      std::vector<LogBlock> blocks(1);
      begin_block(blocks.back(), epoch, 0);
      for (uint32_t i = 0; i < transaction.records; ++i) {
        const uint64_t key[] = {transaction.number, i, transaction.records};
        const auto payload = payload_of(transaction.number, i);
        const auto add = [&] {
          return add_record(blocks.back(), LogType::insert, 1, Vid::make(epoch, i + 1).word(),
                            std::as_bytes(std::span(key)), payload);
        };
        if (add()) continue;
        begin_block(blocks.emplace_back(), epoch, 0);
        add();
      }
      auto& buffer =
          logger.blocks[epoch].emplace_back(std::make_unique<BlockBuffer>(blocks.size()));
      std::ranges::copy(blocks, buffer->all().begin());
      transactions_.push_back(transaction);
    }
  }

  static uint64_t durable_epoch(const std::vector<Logger>& loggers) {
    uint64_t least = UINT64_MAX;
    for (const Logger& logger : loggers)
      least = std::min(least, logger.writer->last_closed_epoch());
    return least;
  }

  void acknowledge(uint64_t incarnation, uint64_t durable) {
    for (LoggedTransaction& transaction : transactions_) {
      transaction.is_acknowledged |=
          transaction.incarnation == incarnation && transaction.epoch <= durable;
    }
  }

  static std::string expect_off(const HookedFileSystem& files) {
    return files.is_off() ? "" : "an error although every file works";
  }

  /// Compares the logs with the ledger. All acknowledged transactions must be there, and each epoch
  /// must be complete or absent.
  std::string check(FileSystem& files, const LogStart& start) {
    std::map<uint64_t, std::set<uint32_t>> found;  // records by transaction
    std::map<uint64_t, uint64_t> cuts;             // by incarnation
    for (const Incarnation& incarnation : start.savepoint.incarnations) {
      cuts[incarnation.number] = *incarnation.cut_epoch;
      for (const LoggerPlace& place : incarnation.loggers) {
        const std::string problem = collect(files, stream_of(start.savepoint, incarnation, place),
                                            *incarnation.cut_epoch, start.start_epoch, found);
        if (!problem.empty()) return problem;
      }
    }
    for (const LoggedTransaction& transaction : transactions_) {
      const auto cut = cuts.find(transaction.incarnation);
      const bool counts = cut != cuts.end() && transaction.epoch <= cut->second;
      const size_t records = found[transaction.number].size();
      const std::string what = fmt::format(
          "transaction {} of incarnation {}, epoch {}: {} of {} records", transaction.number,
          transaction.incarnation, transaction.epoch, records, transaction.records);
      if (transaction.is_acknowledged && !counts) return what + ": acknowledged, but cut off";
      if (records != (counts ? transaction.records : 0))
        return what + (counts ? "" : ": above the cut");
    }
    if (start.ddl.size() < acknowledged_ddl_)
      return "an acknowledged change of storages is missing";
    if (start.ddl.size() > ddl_.size() ||
        !std::ranges::equal(start.ddl, std::span(ddl_).first(start.ddl.size()))) {
      return "changes of storages are not those that were made";
    }
    ddl_.resize(start.ddl.size());
    return "";
  }

  static std::string collect(FileSystem& files, const LogStream& stream, uint64_t cut,
                             uint64_t next_start, std::map<uint64_t, std::set<uint32_t>>& found) {
    std::string problem;
    auto scan = scan_log(files, stream, [&](const LogBlock& block, const std::string&, uint64_t) {
      if (block.header.epoch >= next_start) problem = "an epoch is not before the next start epoch";
      if (block.header.type != LogBlockType::records || block.header.epoch > cut) return;
      for_each_record(block, [&](const LogRecord& record) {
        uint64_t key[3];
        if (record.key_bytes != sizeof key) {
          problem = "a record has a key that was never written";
          return;
        }
        std::memcpy(key, record.key(), sizeof key);
        const auto index = static_cast<uint32_t>(key[1]);
        const std::span written(record.payload(), record.payload_bytes);
        if (!std::ranges::equal(written, payload_of(key[0], index))) {
          problem =
              fmt::format("record {} of transaction {} is not what was written", index, key[0]);
        }
        if (!found[key[0]].insert(index).second) problem = "a record is there twice";
      });
    });
    if (!scan) return scan.error().message;
    return problem;
  }

  std::mt19937_64 random_;
  std::unique_ptr<PowerCutFileSystem> disk_;
  std::vector<LoggedTransaction> transactions_;
  std::vector<DdlRecord> ddl_;
  size_t acknowledged_ddl_ = 0;
  uint64_t last_number_ = 0;
};

/// Runs `rounds` rounds with seeds from `seed` on. Returns the first error with its seed, or an
/// empty text.
inline std::string cut_logs(uint64_t seed, uint64_t rounds, FileFaults faults = {}) {
  uint64_t acknowledged = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    PowerCutLogs logs(seed + round);
    logs.faults = faults;
    const std::string problem = logs.run(5);
    if (!problem.empty()) return fmt::format("ATOLL_SEED={}: {}", seed + round, problem);
    acknowledged += logs.acknowledged();
  }
  if (acknowledged < rounds) return "next to nothing was acknowledged: this has shown nothing";
  return "";
}

}  // namespace atolldb::test
