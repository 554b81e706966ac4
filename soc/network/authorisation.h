// The file of authorised keys: which clients may open network sessions, and what each may do.
//
// Each line names one client; empty lines, and those that begin with #, have no meaning:
//
//   KEY NAME RIGHTS     KEY: 64 hexadecimal digits, the client's public key
//                       NAME: letters, digits, _, - and .; shown in lists of sessions and in logs
//                       RIGHTS: a list such as read,write,procedures,administration
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shared/base/error.h"
#include "shared/network/curve_key.h"
#include "shared/network/wire.h"

namespace atolldb {

struct AuthorisedClient {
  std::string name;
  uint32_t rights = 0;  // bits of NetworkRight
};

class Authorisation {
 public:
  static constexpr size_t kMaxClients = 10'000;
  static constexpr size_t kMaxNameBytes = 32;
  static constexpr off_t kMaxFileBytes = 4 << 20;

  /// Reads the file. An error names the line and what is wrong.
  static Result<Authorisation> read(const std::string& path);
  /// Parses the text of a file. `path` appears in messages.
  static Result<Authorisation> parse(std::string_view text, const std::string& path);
  /// Returns the authorisation of a node that accepts clients without keys: all rights.
  static Authorisation without_keys();

  /// Returns nothing if the key is not authorised. `key`: nothing for a client without one.
  std::optional<AuthorisedClient> find(const std::optional<CurveKey>& key) const;
  size_t size() const { return clients_.size(); }

 private:
  std::map<CurveKey, AuthorisedClient> clients_;
  bool is_open_ = false;  // clients have no keys
};

/// Returns the names of the rights: "read,write".
std::string rights_text(uint32_t rights);

/// Returns the rights that a request needs and `rights` lacks: bits of NetworkRight. A `kv.*`
/// request that cannot be parsed needs read. The procedure refuses it.
uint32_t missing_rights(std::string_view procedure, std::span<const std::byte> input,
                        uint32_t rights);

}  // namespace atolldb
