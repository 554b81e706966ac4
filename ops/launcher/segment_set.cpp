#include "ops/launcher/segment_set.h"

#include <utility>
#include <vector>

#include "shared/base/try.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/segment_file.h"
#include "soc/node/node_segments.h"

namespace atolldb {
namespace {

std::vector<std::pair<std::string, uint64_t>> plan(const Config& config) {
  std::vector<std::pair<std::string, uint64_t>> segments;
  segments.emplace_back(segment_name(SegmentKind::control, kCoordinator),
                        round_to_segment(sizeof(ControlSegment)));
  for (uint32_t node = 0; node < config.nodes.size(); ++node) {
    const NodeSegmentSizes sizes = node_segment_sizes(config, node);
    segments.emplace_back(segment_name(SegmentKind::shared, node), sizes.shared);
    segments.emplace_back(segment_name(SegmentKind::pool, node), sizes.pool);
    segments.emplace_back(segment_name(SegmentKind::local, node), sizes.local);
    segments.emplace_back(segment_name(SegmentKind::metrics, node), sizes.metrics);
    if (sizes.exchange != 0) {
      segments.emplace_back(segment_name(SegmentKind::exchange, node), sizes.exchange);
    }
  }
  return segments;
}

}  // namespace

Result<SegmentSet> SegmentSet::create(const Config& config) {
  const auto segments = plan(config);
  std::vector<uint64_t> sizes;
  for (const auto& [name, bytes] : segments) sizes.push_back(bytes);
  ATOLL_ASSIGN(const bool huge,
               plan_huge_pages(sizes, config.memory.huge_pages, MemoryAvailable::detect()));
  SegmentSet set;
  set.node_count_ = static_cast<uint32_t>(config.nodes.size());
  for (const auto& [name, bytes] : segments) {
    ATOLL_ASSIGN(UniqueFd file, create_segment_file(name, bytes, huge));
    set.files_.emplace(name, std::move(file));
  }
  return set;
}

std::map<std::string, int> SegmentSet::of_process(uint32_t node) const {
  std::map<std::string, int> files;
  const auto add = [&](SegmentKind kind, uint32_t owner) {
    const std::string name = segment_name(kind, owner);
    files.emplace(name, files_.at(name).get());
  };
  const bool is_coordinator = node == kCoordinator;
  add(SegmentKind::control, kCoordinator);
  for (uint32_t owner = 0; owner < node_count_; ++owner) {
    add(SegmentKind::shared, owner);
    add(is_coordinator ? SegmentKind::metrics : SegmentKind::pool, owner);
    // The mappers of each node write to the reducers of all nodes.
    const bool has_exchange = files_.contains(segment_name(SegmentKind::exchange, owner));
    if (!is_coordinator && has_exchange) add(SegmentKind::exchange, owner);
  }
  if (!is_coordinator) {
    add(SegmentKind::local, node);
    add(SegmentKind::metrics, node);
  }
  return files;
}

std::map<std::string, int> SegmentSet::all() const {
  std::map<std::string, int> files;
  for (const auto& [name, file] : files_) files.emplace(name, file.get());
  return files;
}

}  // namespace atolldb
