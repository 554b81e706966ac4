// The node's functions for many records in one call. Their cache misses overlap, and so do their
// reads of missing snapshot pages. <atoll/abi.h> and <atoll/storages.h> state what they do.
#pragma once

#include <atoll/abi.h>

#include <cstddef>
#include <cstdint>

#include "engine/api/storage_cast.h"

namespace atolldb {

ApiStatus array_get_many(uint64_t attempt, const ApiHandle* array, const uint64_t* indexes,
                         size_t count, void* out, size_t out_bytes);
ApiStatus array_find_many(uint64_t attempt, const ApiHandle* array, const uint64_t* indexes,
                          size_t count, uint32_t offset, uint32_t bytes, bool for_update,
                          ApiPlace* places);
ApiStatus tree_get_many(uint64_t attempt, const ApiHandle* tree, const ApiBytes* keys, size_t count,
                        void* out, uint32_t stride, ApiStatus* results);
ApiStatus tree_get_many_for_update(uint64_t attempt, const ApiHandle* tree, const ApiBytes* keys,
                                   size_t count, void* out, uint32_t stride,
                                   uint32_t* payload_bytes, ApiStatus* results, ApiPlace* places);
ApiStatus tree_insert_many(uint64_t attempt, const ApiHandle* tree, const ApiBytes* keys,
                           const ApiBytes* payloads, size_t count);

ApiStatus array_prefetch(uint64_t attempt, const ApiHandle* array, const uint64_t* indexes,
                         size_t count);
ApiStatus tree_prefetch(uint64_t attempt, const ApiHandle* tree, const ApiBytes* keys, size_t count,
                        uint32_t records);
void prefetch_array(uint64_t run, const ApiHandle* array, const uint64_t* indexes, size_t count);
void prefetch_tree(uint64_t run, const ApiHandle* tree, const ApiBytes* keys, size_t count,
                   uint32_t records);
ApiStatus prefetch_wanted(uint64_t run, const atoll_api::abi::Wanted* wanted, size_t count,
                          size_t wanted_bytes);

}  // namespace atolldb
