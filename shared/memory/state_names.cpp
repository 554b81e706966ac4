#include "shared/memory/state_names.h"

#include <cstddef>
#include <iterator>

namespace atolldb {
namespace {

// Each array has the order of its enumeration.
constexpr std::string_view kClusterStates[] = {"starting", "recovering", "running", "draining",
                                               "stopped"};
constexpr std::string_view kNodeStates[] = {"starting", "attached", "recovering",
                                            "running",  "draining", "stopped"};
constexpr std::string_view kStorageStates[] = {"free", "creating", "ready", "dropping"};
constexpr std::string_view kStorageTypes[] = {"none", "array", "mastertree", "sequential"};
static_assert(std::size(kClusterStates) == static_cast<size_t>(ClusterState::stopped) + 1);
static_assert(std::size(kNodeStates) == static_cast<size_t>(NodeState::stopped) + 1);
static_assert(std::size(kStorageStates) == static_cast<size_t>(StorageState::dropping) + 1);
static_assert(std::size(kStorageTypes) == static_cast<size_t>(StorageType::sequential) + 1);

template <typename Enum>
std::string_view name_of(std::span<const std::string_view> names, Enum value) {
  const auto index = static_cast<size_t>(value);
  return index < names.size() ? names[index] : "unknown";
}

}  // namespace

std::string_view to_string(ClusterState state) { return name_of(kClusterStates, state); }
std::string_view to_string(NodeState state) { return name_of(kNodeStates, state); }
std::string_view to_string(StorageState state) { return name_of(kStorageStates, state); }
std::string_view to_string(StorageType type) { return name_of(kStorageTypes, type); }

StorageType storage_type(std::string_view name) {
  for (size_t i = 1; i < std::size(kStorageTypes); ++i) {
    if (kStorageTypes[i] == name) return static_cast<StorageType>(i);
  }
  return StorageType::none;
}

std::span<const std::string_view> storage_type_names() {
  return std::span(kStorageTypes).subspan(1);  // without none
}

}  // namespace atolldb
