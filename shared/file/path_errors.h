// Why a path of the config cannot be used: full file systems and missing permissions are called by
// their names, with what a person needs to change them.
#pragma once

#include <string>
#include <string_view>

#include "shared/error.h"

namespace atolldb {

/// `what`: what failed ("cannot be made"). `way_out`: what helps against any other cause ("change
/// cluster.log_dir in the config"). Code disk_full for ENOSPC and EDQUOT: the text names the file
/// system and its free space. EACCES and EPERM: the text names the path that refuses, its owner and
/// the current user.
Error path_error(const std::string& path, std::string_view what, int error_number,
                 std::string_view way_out);

/// "alice (uid 1000)"; "uid 1000" without such a user.
std::string user_text(unsigned user);

/// "/run/user/7 belongs to alice (uid 7, mode 0700), this is bob (uid 8)": the first part of `path`
/// that the current user cannot pass or use. Empty: all parts seem usable.
std::string refusal_text(const std::string& path);

/// "the file system of /x (mounted on /) has 0 MiB of 512 MiB free".
std::string room_text(const std::string& path);

bool is_disk_full(int error_number);
bool is_refusal(int error_number);

}  // namespace atolldb
