// The load of a store.
#pragma once

#include "bench/larger_than_memory/store.h"
#include "bench/ycsb/keyspace.h"

namespace atolldb::peers {

/// Appends the loaded records of all partitions, in the order of their keys.
void load(Store& store, const ycsb::Keyspace& keyspace);

}  // namespace atolldb::peers
