// The processors that snapshot jobs use.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/config/config.h"
#include "shared/config/machine.h"

namespace atolldb {

/// Returns whether the mappers and reducers of all nodes run on processors without workers. A node
/// whose `cpus` or `gleaner_cpus` are empty may use any processor.
bool has_dedicated_gleaner_cpus(const Config& config);

/// Returns the processors whose idle time a job may use, ascending: those of the nodes'
/// `gleaner_cpus`, or all if a node names none. Returns none if the control group has a quota below
/// the number of processors: the idle time of the machine is then not the job's to use.
std::vector<int32_t> watched_cpus(const Config& config, const Machine& machine);

}  // namespace atolldb
