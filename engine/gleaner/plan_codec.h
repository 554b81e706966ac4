// The plan of a run of the gleaner, and what its composers made, as bytes: they travel between
// coordinator and node processes, in base64 within messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/gleaner/composed.h"
#include "engine/gleaner/glean_plan.h"
#include "shared/error.h"

namespace atolldb {

/// Texts are in base64 (RFC 4648, with padding): a member of JSON may hold them.
std::string encode_plan(const GleanPlan& plan);
std::string encode_composed(const std::vector<ComposedPartition>& partitions);

/// Of what somebody else sent: code failed if it is not what encode_* answers, byte by byte.
Result<GleanPlan> decode_plan(std::string_view text);
Result<std::vector<ComposedPartition>> decode_composed(std::string_view text);

}  // namespace atolldb
