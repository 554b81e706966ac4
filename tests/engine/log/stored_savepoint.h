// The savepoint in the data directory of a test.
#pragma once

#include "engine/log/savepoint.h"
#include "shared/base/check.h"

namespace atolldb::test {

/// Returns the savepoint in /data. REQUIRES: the savepoint exists and can be read.
inline Savepoint stored_savepoint(FileSystem& files) {
  auto found = read_savepoint(files, "/data");
  CHECK(found.has_value() && found->has_value());
  return (*found)->savepoint;
}

}  // namespace atolldb::test
