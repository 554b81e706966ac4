// What tells a lock file from any copy of it (rule R49).
#pragma once

#include <sys/stat.h>

#include <nlohmann/json.hpp>

namespace atolldb {

/// Boot id and pid namespace, because a pid means nothing in another one; device and inode of the
/// file, because the lock belongs to these. `file`: of the open lock file.
nlohmann::json lock_identity(const struct stat& file);

/// Whether the content of the lock file was written into this very file, in this boot and pid
/// namespace. False for files of earlier programs, which do not say.
bool is_of_this_file(const nlohmann::json& content, const struct stat& file);

}  // namespace atolldb
