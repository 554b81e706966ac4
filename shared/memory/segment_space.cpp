#include "shared/memory/segment_space.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/process_id.h"
#include "shared/base/try.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"
#include "shared/memory/page_header.h"
#include "shared/memory/page_pool.h"
#include "shared/memory/segment_file.h"
#include "shared/memory/worker_metrics.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {
namespace {

#ifdef ATOLL_TSAN
/// ThreadSanitizer's shadow memory takes most of the address space. So these builds let the kernel
/// choose the addresses.
constexpr bool kChoosesAddresses = false;
#else
constexpr bool kChoosesAddresses = true;
#endif
/// First address of role 0, far from the addresses that loaders and heaps use.
constexpr uint64_t kFirstHint = 0x2000'0000'0000;
/// Distance between the first addresses of two roles. Because of the added 2 MiB, the low 36 bits
/// of these addresses differ, too.
constexpr uint64_t kHintPerRole = (uint64_t{1} << 36) + kSegmentStepBytes;

std::unexpected<Error> differs(const std::string& name, const char* field, uint64_t found,
                               uint64_t expected, const char* what_to_do) {
  return make_error(ExitCode::corruption, "segment " + name + ": " + field + " is " +
                                              std::to_string(found) + ", expected " +
                                              std::to_string(expected) + ": " + what_to_do);
}

}  // namespace

uint64_t layout_hash() {
  constexpr std::array<uint64_t, 13> kSizes = {
      sizeof(SegmentHeader), sizeof(ControlSegment), sizeof(StorageControl), sizeof(NodeShared),
      sizeof(WorkerSlot),    sizeof(WaitBlock),      sizeof(ReturnRing),     sizeof(PoolControl),
      sizeof(WorkerMetrics), sizeof(MetricsSegment), sizeof(PageHeader),     kPageBytes,
      kMaxStorages};
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const uint64_t size : kSizes) hash = (hash ^ size) * 0x100000001b3;
  return hash;
}

Result<void> check_segment_header(const SegmentHeader& header, SegmentKind kind, uint32_t node,
                                  const SegmentIdentity& identity, uint64_t size_bytes) {
  const std::string name = segment_name(kind, node);
  constexpr const char* kReinstall =
      "all programs of a cluster must come from one build: stop it, reinstall, start it again";
  constexpr const char* kForeign = "it belongs to another cluster: start with `atoll up`";
  // Acquire pairs with the release in `publish`: everything written before the magic number is
  // visible.
  const uint64_t magic =
      std::atomic_ref(const_cast<uint64_t&>(header.magic)).load(std::memory_order_acquire);
  if (magic != kSegmentMagic) {
    return differs(name, "magic", magic, kSegmentMagic, "its owner has not published it");
  }
  if (header.layout_version != kLayoutVersion) {
    return differs(name, "layout_version", header.layout_version, kLayoutVersion, kReinstall);
  }
  if (header.layout_hash != layout_hash()) {
    return differs(name, "layout_hash", header.layout_hash, layout_hash(), kReinstall);
  }
  if (header.kind != kind) {
    return differs(name, "kind", static_cast<uint64_t>(header.kind), static_cast<uint64_t>(kind),
                   kForeign);
  }
  if (header.node != node) return differs(name, "node", header.node, node, kForeign);
  for (size_t i = 0; i < 2; ++i) {
    if (header.cluster_uuid[i] == identity.cluster_uuid[i]) continue;
    return differs(name, "cluster_uuid", header.cluster_uuid[i], identity.cluster_uuid[i],
                   kForeign);
  }
  if (header.config_digest != identity.config_digest) {
    return differs(name, "config_digest", header.config_digest, identity.config_digest,
                   "its owner runs with another config: stop the cluster and start it again");
  }
  if (header.size_bytes != size_bytes) {
    return differs(name, "size_bytes", header.size_bytes, size_bytes, kReinstall);
  }
  return {};
}

SegmentSpace::SegmentSpace(std::map<std::string, int> files, SegmentIdentity identity,
                           uint32_t role)
    : files_(std::move(files)),
      identity_(identity),
      next_hint_(role == kAnyAddress || !kChoosesAddresses ? 0 : kFirstHint + role * kHintPerRole) {
}

Result<SegmentSpace::Mapping*> SegmentSpace::map(SegmentKind kind, uint32_t node, bool writable) {
  const std::string name = segment_name(kind, node);
  const auto file = files_.find(name);
  if (file == files_.end()) {
    return make_error(ExitCode::failed, "segment " + name +
                                            ": this process has no descriptor of it: start the "
                                            "cluster with `atoll up`");
  }
  struct stat info{};
  struct statfs system{};
  if (fstat(file->second, &info) != 0 || fstatfs(file->second, &system) != 0 || info.st_size <= 0) {
    return make_error(ExitCode::failed,
                      "segment " + name +
                          ": its descriptor is not that of a memory file: start the "
                          "cluster with `atoll up`");
  }
  const auto bytes = static_cast<uint64_t>(info.st_size);
  const void* hint = nullptr;
  if (next_hint_ != 0) {
    hint = reinterpret_cast<const void*>(next_hint_);
    next_hint_ += round_to_segment(bytes) + kSegmentStepBytes;
  }
  Result<MappedSegment> memory = MappedSegment::map(file->second, bytes, writable, hint);
  if (!memory && hint != nullptr) memory = MappedSegment::map(file->second, bytes, writable);
  if (!memory) {
    return make_error(ExitCode::resources, "segment " + name + " of " +
                                               std::to_string(bytes >> 20) +
                                               " MiB: cannot be mapped: " + memory.error().message +
                                               ": check `ulimit -v` and free huge pages");
  }
  const bool huge_file = system.f_type == HUGETLBFS_MAGIC;
  const auto [place, is_new] =
      mappings_.try_emplace({kind, node}, Mapping{*std::move(memory), huge_file, 0});
  CHECK(is_new);
  return &place->second;
}

Result<std::byte*> SegmentSpace::prepare(SegmentKind kind, uint32_t node,
                                         const SegmentPlacement& placement) {
  ATOLL_ASSIGN(Mapping* const mapping, map(kind, node, true));
  const std::string name = segment_name(kind, node);
  std::byte* const base = mapping->memory.base();
  const uint64_t bytes = mapping->memory.bytes();
  ATOLL_TRY(bind_memory(name, base, bytes, placement.numa_node));
  if (placement.transparent_huge && !mapping->huge_file) {
    madvise(base, bytes, MADV_HUGEPAGE);  // a hint: failure is harmless
  }
  mapping->prefaulted_bytes = std::min(bytes, placement.prefault_bytes);
  ATOLL_TRY(prefault_memory(name, base, mapping->prefaulted_bytes, placement.prefault_threads));
  return base;
}

void SegmentSpace::publish(SegmentKind kind, uint32_t node) {
  const auto prepared = mappings_.find({kind, node});
  CHECK(prepared != mappings_.end());
  const Mapping& mapping = prepared->second;
  CHECK(mapping.memory.bytes() >= sizeof(SegmentHeader));
  std::byte* const base = mapping.memory.base();
  auto& header = *reinterpret_cast<SegmentHeader*>(base);
  CHECK(header.magic == 0);  // published once, and only by the owner
  const ProcessId self = this_process();
  header.layout_version = kLayoutVersion;
  header.kind = kind;
  header.layout_hash = layout_hash();
  header.cluster_uuid[0] = identity_.cluster_uuid[0];
  header.cluster_uuid[1] = identity_.cluster_uuid[1];
  header.config_digest = identity_.config_digest;
  header.owner_pid = self.pid;
  header.owner_start_time = self.start_time;
  header.size_bytes = mapping.memory.bytes();
  header.node = node;
  header.real_page_bytes = mapping.huge_file ? static_cast<uint32_t>(kSegmentStepBytes)
                                             : mapped_page_bytes(base, mapping.prefaulted_bytes);
  // Release pairs with the acquire in check_segment_header.
  std::atomic_ref(header.magic).store(kSegmentMagic, std::memory_order_release);
}

Result<std::byte*> SegmentSpace::attach(SegmentKind kind, uint32_t node, bool writable) {
  const auto known = mappings_.find({kind, node});
  const Mapping* mapping = nullptr;
  if (known != mappings_.end()) {
    mapping = &known->second;
  } else {
    ATOLL_ASSIGN(const Mapping* const mapped, map(kind, node, writable));
    mapping = mapped;
  }
  std::byte* const base = mapping->memory.base();
  const auto& header = *reinterpret_cast<const SegmentHeader*>(base);
  ATOLL_TRY(check_segment_header(header, kind, node, identity_, mapping->memory.bytes()));
  return base;
}

}  // namespace atolldb
