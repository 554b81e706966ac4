#include "soc/network/authorisation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

#include "shared/base/unique_fd.h"
#include "shared/kv/kv_request.h"
#include "soc/network/administration.h"

namespace atolldb {
namespace {

constexpr std::array<std::pair<std::string_view, uint32_t>, 4> kRightNames = {
    {{"read", kMayRead},
     {"write", kMayWrite},
     {"procedures", kMayCallProcedures},
     {"administration", kMayAdminister}}};

bool is_client_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= Authorisation::kMaxNameBytes &&
         std::ranges::all_of(name, is_allowed);
}

/// Returns nothing if one of the names is unknown.
std::optional<uint32_t> rights_of(std::string_view list) {
  uint32_t rights = 0;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    const std::string_view name = list.substr(0, end);
    const auto known = std::ranges::find(kRightNames, name, [](auto& each) { return each.first; });
    if (known == kRightNames.end()) return std::nullopt;
    rights |= known->second;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return rights;
}

/// Returns the rights that one operation of a request needs.
uint32_t rights_of_operation(const KvOperation& operation) {
  switch (operation.code) {
    case KvCode::get:
    case KvCode::scan:
    case KvCode::compare:
    case KvCode::compare_version:
    case KvCode::compare_scan:
      return kMayRead;
    case KvCode::add:
      // The new number tells the old one.
      return (operation.flags & kKvReturnsValue) != 0 ? kMayRead | kMayWrite : kMayWrite;
    default:
      return kMayWrite;
  }
}

}  // namespace

Authorisation Authorisation::without_keys() {
  Authorisation open;
  open.is_open_ = true;
  return open;
}

Result<Authorisation> Authorisation::read(const std::string& path) {
  const auto wrong = [&](const std::string& why) {
    return make_error(ExitCode::config, "network.authorised_keys: " + path + ": " + why);
  };
  // Without O_NONBLOCK, a pipe of this name would block the thread.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) {
    return wrong(std::string(std::strerror(errno)) +
                 ": make the file: each line is KEY NAME RIGHTS");
  }
  struct stat info{};
  if (fstat(file.get(), &info) != 0) return wrong(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return wrong("is no file: make one: each line is KEY NAME RIGHTS");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return wrong("other users may change it: run `chmod go-w " + path + "`");
  }
  if (info.st_size > kMaxFileBytes) {
    return wrong("has " + std::to_string(info.st_size) + " bytes, the limit is " +
                 std::to_string(kMaxFileBytes));
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return wrong(std::strerror(errno));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return parse(text, path);
}

Result<Authorisation> Authorisation::parse(std::string_view text, const std::string& path) {
  Authorisation parsed;
  std::istringstream lines{std::string(text)};
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const auto wrong = [&](const std::string& why) {
      return make_error(ExitCode::config, "network.authorised_keys: " + path + ":" +
                                              std::to_string(number) + ": " + why);
    };
    std::istringstream words(line);
    std::array<std::string, 4> word;
    if (!(words >> word[0]) || word[0].starts_with('#')) continue;
    words >> word[1] >> word[2];
    if (word[2].empty() || words >> word[3]) return wrong("a line is KEY NAME RIGHTS");
    const auto key = curve_key_of_hex(word[0]);
    if (!key) return wrong("the key \"" + word[0] + "\" has not 64 hexadecimal digits");
    if (!is_client_name(word[1])) {
      return wrong("the name \"" + word[1] + "\" has not 1 to " + std::to_string(kMaxNameBytes) +
                   " letters, digits, _, - and .");
    }
    const auto rights = rights_of(word[2]);
    if (!rights) {
      return wrong("the rights \"" + word[2] +
                   "\" are no list of read, write, procedures and administration");
    }
    if (!parsed.clients_.emplace(*key, AuthorisedClient{word[1], *rights}).second) {
      return wrong("the key of \"" + word[1] + "\" is on an earlier line, too: remove one");
    }
    if (parsed.clients_.size() > kMaxClients) {
      return wrong("more than " + std::to_string(kMaxClients) + " keys");
    }
  }
  return parsed;
}

std::optional<AuthorisedClient> Authorisation::find(const std::optional<CurveKey>& key) const {
  if (is_open_) return AuthorisedClient{"", kAllNetworkRights};
  if (!key) return std::nullopt;
  const auto place = clients_.find(*key);
  if (place == clients_.end()) return std::nullopt;
  return place->second;
}

std::string rights_text(uint32_t rights) {
  std::string text;
  for (const auto& [name, right] : kRightNames) {
    if ((rights & right) == 0) continue;
    if (!text.empty()) text += ',';
    text += name;
  }
  return text.empty() ? "none" : text;
}

uint32_t missing_rights(std::string_view procedure, std::span<const std::byte> input,
                        uint32_t rights) {
  if (procedure.starts_with(kAdministrationPrefix)) {
    return NetworkAdministration::missing_rights(procedure, rights);
  }
  if (!procedure.starts_with("kv.")) return kMayCallProcedures & ~rights;
  uint64_t incarnation = 0;
  const auto operations = read_kv_request(input, incarnation);
  if (!operations) return kMayRead & ~rights;
  uint32_t needed = 0;
  for (const KvOperationView& each : *operations) needed |= rights_of_operation(each.head);
  return needed & ~rights;
}

}  // namespace atolldb
