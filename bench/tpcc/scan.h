// Ranges of integer keys for cursors.
#pragma once

#include "bench/job/step_scan.h"
#include "engine/mastertree/cursor.h"

namespace atolldb::tpcc {

using bench::KeyRange;

}  // namespace atolldb::tpcc
