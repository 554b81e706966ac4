// Converts between the values of the public API and those of the engine.
#pragma once

#include <atoll/abi.h>

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>

#include "engine/array/array.h"
#include "engine/mastertree/mastertree.h"
#include "engine/sequential/sequential.h"
#include "shared/base/check.h"
#include "shared/base/status.h"

namespace atolldb {

using ApiBytes = atoll_api::Bytes;
using ApiHandle = atoll_api::abi::StorageHandle;
using ApiPlace = atoll_api::abi::Place;
using ApiStatus = atoll_api::Status;
using ApiStorageType = atoll_api::abi::StorageType;

// A library copies the bytes of an engine handle, and the node uses the copy.
template <typename Storage>
inline constexpr bool kFitsHandle =
    std::is_trivially_copyable_v<Storage> && sizeof(Storage) <= sizeof(ApiHandle::node) &&
    alignof(Storage) <= 8;
static_assert(kFitsHandle<Array> && kFitsHandle<MasterTree> && kFitsHandle<Sequential>);

inline ApiStatus to_api(Status status) {
  DCHECK(status < Status::count_);
  return static_cast<ApiStatus>(status);
}

inline std::span<const std::byte> to_engine(ApiBytes bytes) { return {bytes.data(), bytes.size()}; }

/// REQUIRES: the handle was filled for a storage of this type.
template <typename Storage>
const Storage& storage_in(const ApiHandle& handle) {
  DCHECK(handle.type != ApiStorageType::none);
  return *std::launder(reinterpret_cast<const Storage*>(handle.node));
}

}  // namespace atolldb
