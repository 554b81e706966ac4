// The records of one storage, folded from a checkpoint and the log after it, in any order.
//
// This is what a replay leaves in volatile pages (engine/checkpoint), but in the memory of this
// process and for one storage: the newest version of each record wins (R92), deletions are kept
// until the end (R93), and so are updates of parts of records (R94).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/checkpoint/update_list.h"
#include "engine/format/log_record.h"
#include "engine/format/vid.h"
#include "ops/export/export_source.h"

namespace atolldb {

/// Thread: one at a time until `finish`, any after it.
class FoldedStorage {
 public:
  explicit FoldedStorage(const ExportedStorage& storage) : storage_(storage) {}

  /// Adds a record. Returns why it cannot belong to the storage, or null. REQUIRES: the record is
  /// no filler, and belongs to the storage.
  const char* add(const LogRecord& record);
  /// Returns about how much memory the records take, until `finish` has returned. REQUIRES:
  /// `finish` was not called.
  uint64_t memory_bytes() const { return memory_bytes_; }
  /// Completes the rows. Returns why they cannot be completed, or null. REQUIRES: all records are
  /// added. Called once.
  const char* finish();

  struct Row {
    uint64_t number = 0;  // see WalkRange; for a sequential storage the ordinal of the row
    std::string key;      // in gleaned form; hash storage: with the hash; sequential: empty
    std::string payload;
    Vid vid;
  };
  /// Returns the rows, ascending by number and key. REQUIRES: `finish` has returned.
  std::span<const Row> rows() const { return rows_; }
  /// Returns the key as a visitor of a walk gets it.
  std::string walked_key(const Row& row) const;

 private:
  struct Folded {
    uint64_t version = 0;
    bool exists = false;
    std::string payload;
    UpdateList updates;
  };
  struct Append {
    uint64_t version = 0;
    uint16_t number = 0;  // among the appends of its transaction
    std::string payload;
  };

  /// Returns the record with this key. Makes it if there is none.
  Folded& record_of(const std::string& key);
  /// Changes the updates of a record.
  template <typename Change>
  void change_updates(Folded& folded, Change change);
  const char* add_to_array(const LogRecord& record);
  const char* add_to_tree(const LogRecord& record);
  void add_whole(const std::string& key, const LogRecord& record);
  const char* finish_record(Folded& folded);
  void finish_appends();

  ExportedStorage storage_;
  uint64_t memory_bytes_ = 0;
  std::unordered_map<std::string, Folded> folded_;  // by key, in gleaned form
  std::vector<Append> appends_;
  std::vector<Row> rows_;
};

}  // namespace atolldb
