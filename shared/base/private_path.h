// Checks that other users cannot place files or sockets at a path of this user.
#pragma once

#include <sys/types.h>

#include <string>

#include "shared/base/error.h"

namespace atolldb {

/// Checks the folders above `path`. Returns code failed if one belongs to another user (except
/// root), or if others may rename its entries: it is writable for them and has no sticky bit. Skips
/// missing folders. `key`: the config key of the path, for the error.
Result<void> check_parents(const std::string& path, const std::string& key);

/// As check_parents. The file or folder itself, if it exists, must also belong to this user, and be
/// no symbolic link.
Result<void> check_owned(const std::string& path, const std::string& key);

/// As check_owned, for a socket that a client will connect to. Root may use another user's socket
/// if its folder belongs to the same user.
Result<void> check_socket_file(const std::string& path, const std::string& key);

/// Returns code failed if the process at the other end of a connected local socket belongs to
/// another user (except root). `what` names the socket.
Result<void> check_peer(int socket, const std::string& what);

/// As check_peer, for a process of user `peer`.
Result<void> check_peer_user(uid_t peer, const std::string& what);

}  // namespace atolldb
