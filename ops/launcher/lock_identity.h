// Identity of a lock file: distinguishes it from any copy (R49).
#pragma once

#include <sys/stat.h>

#include <nlohmann/json.hpp>

namespace atolldb {

/// Returns boot id, pid namespace, device and inode. A pid has a meaning only in its boot and pid
/// namespace. The lock belongs to the device and inode. `file`: from fstat of the open lock file.
nlohmann::json lock_identity(const struct stat& file);

/// Returns whether the content was written into exactly this file, in this boot and pid namespace.
/// Returns false for files of older versions, which have no identity.
bool is_of_this_file(const nlohmann::json& content, const struct stat& file);

}  // namespace atolldb
