// Encodes the plan of a gleaner run, and the results of composers, for messages between the
// coordinator and node processes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/gleaner/composed.h"
#include "engine/gleaner/glean_plan.h"
#include "shared/base/error.h"

namespace atolldb {

/// Encode as text in base64 (RFC 4648, with padding), which fits into a member of JSON.
std::string encode_plan(const GleanPlan& plan);
std::string encode_composed(const std::vector<ComposedPartition>& partitions);

/// Decode text from another process.
/// Error: code failed if the text differs in any byte from what encode_* writes.
Result<GleanPlan> decode_plan(std::string_view text);
Result<std::vector<ComposedPartition>> decode_composed(std::string_view text);

}  // namespace atolldb
