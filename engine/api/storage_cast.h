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

// A library copies the bytes of an engine handle, and the node uses the copy.
template <typename Storage>
inline constexpr bool kFitsHandle =
    std::is_trivially_copyable_v<Storage> &&
    sizeof(Storage) <= sizeof(atoll_api::abi::StorageHandle::node) && alignof(Storage) <= 8;
static_assert(kFitsHandle<Array> && kFitsHandle<MasterTree> && kFitsHandle<Sequential>);

inline atoll_api::Status to_api(Status status) {
  DCHECK(status < Status::count_);
  return static_cast<atoll_api::Status>(status);
}

inline std::span<const std::byte> to_engine(atoll_api::Bytes bytes) {
  return {bytes.data(), bytes.size()};
}

/// REQUIRES: the handle was filled for a storage of this type.
template <typename Storage>
const Storage& storage_in(const atoll_api::abi::StorageHandle& handle) {
  DCHECK(handle.type != atoll_api::abi::StorageType::none);
  return *std::launder(reinterpret_cast<const Storage*>(handle.node));
}

}  // namespace atolldb
