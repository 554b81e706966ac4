// Builds the error of a failed load. The text says what to do.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "shared/base/error.h"
#include "shared/base/status.h"

namespace atolldb::bench {

/// `what`: the part that was being loaded; `less`: how to load less ("load fewer warehouses").
inline Error load_error(std::string_view benchmark, Status status, uint32_t node,
                        std::string_view what, std::string_view less) {
  if (status == Status::volatile_pool_exhausted) {
    return {ExitCode::resources,
            fmt::format("{}: load of {}: the volatile pool of node {} is full: "
                        "raise memory.volatile_pool, or {}",
                        benchmark, what, node, less)};
  }
  return {ExitCode::failed, fmt::format("{}: load of {} on node {}: {}: see the logs of the node",
                                        benchmark, what, node, to_string(status))};
}

}  // namespace atolldb::bench
