// The memory of a benchmark's storages and of the pools. REQUIRES: nobody changes the database.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "bench/job/storage_spec.h"
#include "shared/error.h"
#include "soc/procedure/procedure.h"

namespace atolldb::bench {

/// What of the pools no array and no tree holds: pages that wait for their grace, those in the
/// caches of threads, and sequential storages. `rest_name` is its name among the storages.
/// Runs on node 0's first worker only; the others answer "{}".
Result<std::string> survey_storages(JobContext& context, std::string_view benchmark,
                                    std::span<const StorageSpec> specs, std::string_view rest_name);

}  // namespace atolldb::bench
