// The limit of records whose updates are logged as whole versions (R107), by default
// kWholeVersionBytes. It is no key of the config, because users need not choose it. `bench/silor
// whole` measures other limits.
#pragma once

#include <cstdint>

#include "shared/base/error.h"

namespace atolldb {

/// Name of the environment variable with another limit.
inline constexpr const char* kWholeVersionVariable = "ATOLL_WHOLE_VERSION_BYTES";

/// Returns the limit in bytes. `text`: the value of the variable, or null. Error: code usage if the
/// text is no number of bytes that a record may have.
Result<uint32_t> whole_version_limit(const char* text);

}  // namespace atolldb
