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
constexpr std::string_view kStorageTypes[] = {"none", "array", "mastertree", "sequential", "hash"};
static_assert(std::size(kClusterStates) == static_cast<size_t>(ClusterState::stopped) + 1);
static_assert(std::size(kNodeStates) == static_cast<size_t>(NodeState::stopped) + 1);
static_assert(std::size(kStorageStates) == static_cast<size_t>(StorageState::dropping) + 1);
static_assert(std::size(kStorageTypes) == static_cast<size_t>(kLastStorageType) + 1);

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
  return std::span(kStorageTypes).subspan(1);  // without the type `none`
}

std::string recovery_text(const ControlSegment& control, bool has_snapshots) {
  // Relaxed: for display only.
  const uint32_t percent = control.recovered_percent.load(std::memory_order_relaxed);
  const uint32_t snapshot = control.readable_snapshot.load(std::memory_order_relaxed);
  const bool is_read = percent >= 100;
  const auto text = [](const std::string& progress, const std::string& reads) {
    return "the cluster recovers (" + progress + "): try again when it runs; " + reads;
  };
  const std::string part = std::to_string(percent) + " % of ";
  if (!has_snapshots) {
    return text(is_read ? "the checkpoint and the log are read; the nodes store the last records"
                        : part + "the checkpoint and the log is read",
                "until then no transaction runs");
  }
  return text(
      is_read ? "the log is read, pages of the new snapshot are written" : part + "the log is read",
      snapshot == 0 ? "there is no snapshot that could be read meanwhile"
                    : "until then only snapshot_read_only transactions run, on snapshot " +
                          std::to_string(snapshot));
}

}  // namespace atolldb
