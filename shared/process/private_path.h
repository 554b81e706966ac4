// Whether other users can put something of theirs at a path of this user: a folder, a socket.
#pragma once

#include <sys/types.h>

#include <string>

#include "shared/error.h"

namespace atolldb {

/// Code failed if a folder above `path` is another user's (root's are fine), or if others may
/// rename what is in it: it is writable for them without the sticky bit. Folders that are missing
/// are passed over. `key`: the config key of the path, for the error.
Result<void> check_parents(const std::string& path, const std::string& key);

/// As check_parents, and the file or folder itself, if it exists, is this user's, and no link.
Result<void> check_owned(const std::string& path, const std::string& key);

/// As check_owned, for a socket that a client is to connect to. Root may use that of another user,
/// if the folder that it is in is that user's, too.
Result<void> check_socket_file(const std::string& path, const std::string& key);

/// Code failed if the process at the other end of a connected local socket is another user's;
/// root's are fine. `what` names the socket.
Result<void> check_peer(int socket, const std::string& what);

/// The same for a process of user `peer`.
Result<void> check_peer_user(uid_t peer, const std::string& what);

}  // namespace atolldb
