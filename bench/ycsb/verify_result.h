// Findings of one worker in its part of the records.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/error.h"

namespace atolldb::ycsb {

struct VerifyResult {
  struct Lane {
    uint64_t count = 0;  // records found
    uint64_t end = 0;    // greatest sequence number among them, plus one
  };

  uint32_t node = 0;
  uint32_t worker = 0;
  uint64_t inserted = 0;           // records that this worker has inserted, by the control storage
  std::map<uint32_t, Lane> lanes;  // lanes of the node's partition
  uint64_t updates = 0;            // sum of the counts in all fields
  uint64_t violation_count = 0;
  std::vector<std::string> violations;  // the first violations, at most kKept

  static constexpr size_t kKept = 10;

  void violate(std::string message);
  void add_record(uint32_t lane, uint64_t sequence);
  std::string to_json() const;
  static Result<VerifyResult> parse(std::string_view text);
};

}  // namespace atolldb::ycsb
