// Body for the rule of the durability scheme (R99), for a row of kRules in
// tests/engine/rules_mutant_test.cpp.
#pragma once

#include <string>

#include "tests/engine/checkpoint/made_checkpoint.h"
#include "tests/engine/log/written_log.h"

namespace atolldb::test {

/// A checkpoint takes the place of the first log files. A start-up with the scheme `gleaned` would
/// not read it. Returns an empty text, or what went wrong.
inline std::string data_directories_keep_their_scheme() {
  DataDirectory data;
  data.scheme = DurabilityScheme::silor;
  std::string problem = data.begin({kFirst});
  if (!problem.empty()) return problem;
  data.write_all(1, 9);
  problem = make_checkpoint(data.files, "/data", data.start.savepoint, 8, 9);
  if (!problem.empty()) return problem;
  data.scheme = DurabilityScheme::gleaned;
  if (data.begin({kFirst}).empty()) return "the start-up with another scheme is not refused";
  data.scheme = DurabilityScheme::silor;
  return data.begin({kFirst});
}

}  // namespace atolldb::test
