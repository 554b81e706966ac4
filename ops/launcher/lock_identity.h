// Identity of a lock file: distinguishes it from any copy (R49).
#pragma once

#include <sys/stat.h>

#include <nlohmann/json.hpp>

namespace atolldb {

/// Boot id and pid namespace, because a pid has a meaning only there; device and inode of the file,
/// because the lock belongs to them. `file`: from fstat of the open lock file.
nlohmann::json lock_identity(const struct stat& file);

/// Returns whether the content was written into this very file, in this boot and pid namespace.
/// Returns false for files of earlier programs, which have no identity.
bool is_of_this_file(const nlohmann::json& content, const struct stat& file);

}  // namespace atolldb
