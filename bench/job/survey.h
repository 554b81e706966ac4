// Measures the memory of a benchmark's storages and of the pools. REQUIRES: no transaction changes
// the database.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "bench/job/storage_spec.h"
#include "shared/base/error.h"
#include "soc/procedure/procedure.h"

namespace atolldb::bench {

/// The rest of the pools belongs to no array and no tree: retired pages within their grace period,
/// pages in the caches of threads, and sequential storages. `rest_name`: its name among the
/// storages. Only node 0's first worker runs it; all others return "{}".
Result<std::string> survey_storages(JobContext& context, std::string_view benchmark,
                                    std::span<const StorageSpec> specs, std::string_view rest_name);

}  // namespace atolldb::bench
