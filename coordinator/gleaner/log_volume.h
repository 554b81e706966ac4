// How much log a run of the gleaner has to read: for those who want to know how far it is.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/gleaner/glean_plan.h"
#include "shared/config/config.h"
#include "shared/file/file.h"

namespace atolldb {

/// Bytes that were written of these streams' files, which are allocated beforehand, but for those
/// that a snapshot covers and mappers skip. Reads a few blocks of each, and up to 16 MiB to find
/// the end of what is covered. What cannot be read counts as nothing: the run itself tells why.
uint64_t log_volume(FileSystem& file_system, const std::vector<GleanStream>& streams);

/// The sizes of all log files in the directories of the config, preallocated room included. What
/// cannot be read counts as nothing.
uint64_t log_file_bytes(FileSystem& file_system, const Config& config);

}  // namespace atolldb
