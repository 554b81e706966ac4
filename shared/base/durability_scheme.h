// Schemes of durability: how a cluster restores its data after a crash, besides the log. The order
// in which a recovery replays the log.
#pragma once

#include <cstdint>
#include <string_view>

namespace atolldb {

/// A data directory has one scheme. The savepoint names it, and the config must agree.
/// REQUIRES: values never change, because the savepoint has them.
enum class DurabilityScheme : uint8_t {
  gleaned = 0,  // snapshots, gleaned from the log. Source: [FOEDUS15]
  silor = 1,    // fuzzy checkpoints, and the log after them. Source: [SILOR14]
};
inline constexpr DurabilityScheme kLastDurabilityScheme = DurabilityScheme::silor;

constexpr std::string_view to_string(DurabilityScheme scheme) {
  return scheme == DurabilityScheme::silor ? "silor" : "gleaned";
}

/// Order in which a recovery replays the files of the log. The content is the same in both (R92).
enum class ReplayOrder : uint8_t {
  newest_first = 0,  // most versions in older files are skipped. Source: [SILOR14] section 5.2
  oldest_first = 1,  // for comparisons
};
inline constexpr ReplayOrder kLastReplayOrder = ReplayOrder::oldest_first;

}  // namespace atolldb
