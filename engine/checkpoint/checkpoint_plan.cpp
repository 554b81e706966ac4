#include "engine/checkpoint/checkpoint_plan.h"

#include <algorithm>
#include <functional>

#include "engine/format/message_bytes.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"

namespace atolldb {

template <typename Archive>
void fields(Archive& archive, Described<Archive, KeyRange>& range) {
  archive(range.low, range.high, range.first, range.end);
}
template <typename Archive>
void fields(Archive& archive, Described<Archive, DividedStorage>& storage) {
  archive(storage.id, storage.ranges);
}
template <typename Archive>
void fields(Archive& archive, Described<Archive, ReplayPlan>& plan) {
  archive(plan.checkpoint, plan.first_epoch, plan.cut_epoch, plan.last_storage, plan.streams);
  archive.enumerator(plan.order, ReplayOrder::newest_first, kLastReplayOrder);
}

namespace {

constexpr uint32_t kDividedMagic = 0x31444143;  // "CAD1"
constexpr uint32_t kReplayMagic = 0x32505243;   // "CRP2"
constexpr const char* kDivided = "ranges of a checkpoint";
constexpr const char* kReplay = "plan of a replay";

std::unexpected<Error> contradicts_itself(const char* what) {
  return make_error(ExitCode::failed,
                    std::string(what) + ": it contradicts itself: internal error");
}

bool is_consistent(const std::vector<DividedStorage>& storages) {
  const bool ascend = std::ranges::adjacent_find(storages, std::ranges::greater_equal(),
                                                 &DividedStorage::id) == storages.end();
  DCHECK(!ascend || storages.empty() || storages.front().id <= storages.back().id);
  return ascend && std::ranges::all_of(storages, [&](const DividedStorage& storage) {
           return storage.id != 0 && !storage.ranges.empty() &&
                  storage.ranges.size() == storages.front().ranges.size();
         });
}

bool is_consistent(const ReplayPlan& plan) {
  const bool epochs =
      plan.first_epoch != 0 && plan.cut_epoch <= kMaxEpoch && plan.first_epoch <= kMaxEpoch;
  return epochs && std::ranges::all_of(plan.streams, [&](const PlannedStream& planned) {
           return planned.last_epoch <= plan.cut_epoch;
         });
}

}  // namespace

std::vector<std::byte> encode_divided(const std::vector<DividedStorage>& storages) {
  return encode_message(kDividedMagic, storages);
}

std::vector<std::byte> encode_replay_plan(const ReplayPlan& plan) {
  return encode_message(kReplayMagic, plan);
}

Result<std::vector<DividedStorage>> decode_divided(std::span<const std::byte> bytes) {
  ATOLL_ASSIGN(auto storages,
               decode_message<std::vector<DividedStorage>>(kDividedMagic, kDivided, bytes));
  if (!is_consistent(storages)) return contradicts_itself(kDivided);
  return storages;
}

Result<ReplayPlan> decode_replay_plan(std::span<const std::byte> bytes) {
  ATOLL_ASSIGN(auto plan, decode_message<ReplayPlan>(kReplayMagic, kReplay, bytes));
  if (!is_consistent(plan)) return contradicts_itself(kReplay);
  return plan;
}

}  // namespace atolldb
