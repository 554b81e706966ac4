// Error texts and checks for the paths in the config. If a path cannot be used, the text names the
// full file system or the missing permission, with the facts to fix it. The checks reject paths
// where other users can place files or sockets.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "shared/base/error.h"

namespace atolldb {

/// `what`: the failure ("cannot be made"). `way_out`: the remedy at the end of the text ("change
/// cluster.log_dir in the config"). Returns code disk_full for ENOSPC and EDQUOT; the text names
/// the file system and its free space. For EACCES and EPERM the text names the path without access,
/// its owner and the current user.
Error path_error(const std::string& path, std::string_view what, int error_number,
                 std::string_view way_out);

/// Returns text like "alice (uid 1000)", or "uid 1000" for an unknown user.
std::string user_text(unsigned user);

/// Returns text like "/run/user/7 belongs to alice (uid 7) with mode 0700, and this is bob (uid
/// 8)". It names the first part of `path` that the current user cannot access. If there is no such
/// part, it names the last part that exists. Returns an empty text for a relative path.
std::string refusal_text(const std::string& path);

/// Returns text like "the file system of /x (mounted on /) has 0 MiB of 512 MiB free".
std::string room_text(const std::string& path);

/// Returns "Input/output error" for EIO. The text does not depend on the locale, because
/// file_failure_in has to find it in messages of other processes.
std::string error_text(int error_number);

/// Returns whether the error is ENOSPC or EDQUOT.
bool is_disk_full(int error_number);
/// Returns whether the error is EACCES or EPERM.
bool is_refusal(int error_number);

/// Checks the folders above `path`, and skips missing ones. Returns code failed if a folder belongs
/// to another user (except root), or if other users may rename its entries. They may if the folder
/// is writable for them and has no sticky bit. `key`: the config key of the path, for the error.
Result<void> check_parents(const std::string& path, const std::string& key);

/// Does the same as `check_parents`. The file or folder itself, if it exists, must also belong to
/// this user or root, and must not be a symbolic link.
Result<void> check_owned(const std::string& path, const std::string& key);

/// Does the same as `check_owned`, for a socket that a client will connect to. Root may use another
/// user's socket if its folder belongs to the same user.
Result<void> check_socket_file(const std::string& path, const std::string& key);

/// Returns code failed if the process at the other end of a connected local socket belongs to
/// another user (except root). `what` names the socket.
Result<void> check_peer(int socket, const std::string& what);

/// Does the same as `check_peer`, for a process of user `peer`.
Result<void> check_peer_user(uid_t peer, const std::string& what);

}  // namespace atolldb
