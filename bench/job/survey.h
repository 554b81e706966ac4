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

/// Returns the memory of the arrays and trees in `specs` and of the pools, as JSON. The rest of the
/// used pages counts as storage `rest_name`: retired pages within their grace, pages in the caches
/// of threads, and sequential storages. Only the first worker of node 0 measures; all others return
/// "{}".
Result<std::string> survey_storages(JobContext& context, std::string_view benchmark,
                                    std::span<const StorageSpec> specs, std::string_view rest_name);

}  // namespace atolldb::bench
