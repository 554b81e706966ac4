// Samples the pages that a job copies from its victims. The choice of partitions uses these
// samples, so that all reducers copy parts of a storage, even of a storage without log records.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/gleaner/assign_partitions.h"
#include "engine/gleaner/snapshot_plan.h"
#include "engine/snapshot/snapshot_files.h"

namespace atolldb {

/// Used as the number of a storage's live pages in victims if these pages are not counted.
inline constexpr uint64_t kUnknownVictimPages = 1ULL << 32;
/// Maximum number of samples per storage. They weigh as much as a large sample of the log.
inline constexpr uint64_t kMaxVictimSamples = 2048;

/// Returns samples for the copied pages: one for each page, up to kMaxVictimSamples per storage.
/// The children of the storage's root that may lead to victims share them equally. `pages`: the
/// number of live pages in victims, by storage. A root that cannot be read has no samples.
std::vector<SampledKey> sample_victims(const SnapshotFiles& base, const SnapshotPlan& plan,
                                       const std::map<uint32_t, uint64_t>& pages);

}  // namespace atolldb
