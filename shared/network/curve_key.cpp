#include "shared/network/curve_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "shared/base/check.h"
#include "shared/base/hex.h"
#include "shared/base/try.h"
#include "shared/base/unique_fd.h"

namespace atolldb {
namespace {

/// A key file is shorter. A longer file is something else, and is not read.
constexpr off_t kMaxKeyFileBytes = 4096;

std::unexpected<Error> wrong_key_file(const std::string& path, const std::string& why) {
  return make_error(ExitCode::config, "key file " + path + ": " + why);
}

/// Opens the file, and checks its owner and mode by the same descriptor.
Result<UniqueFd> open_key_file(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) {
    return wrong_key_file(
        path, std::string(std::strerror(errno)) + ": make one with `atoll keys generate`");
  }
  struct stat info{};
  if (fstat(file.get(), &info) != 0) return wrong_key_file(path, std::strerror(errno));
  if (!S_ISREG(info.st_mode) || info.st_size > kMaxKeyFileBytes) {
    return wrong_key_file(path, "is no key file: make one with `atoll keys generate`");
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return wrong_key_file(path, "belongs to the user with the id " + std::to_string(info.st_uid) +
                                    ", who knows the key: make one with `atoll keys generate`");
  }
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    std::ostringstream mode;
    mode << std::oct << (info.st_mode & 0777);
    return wrong_key_file(path, "other users may use it: its mode is " + mode.str() +
                                    ", not 600: run `chmod 600 " + path + "`");
  }
  return file;
}

}  // namespace

std::optional<CurveKey> curve_key_of_hex(std::string_view text) {
  const auto bytes = from_hex(text);
  if (!bytes || bytes->size() != kCurveKeyBytes) return std::nullopt;
  CurveKey key{};
  std::ranges::copy(*bytes, key.begin());
  return key;
}

Result<CurveKeyPair> read_key_file(const std::string& path) {
  ATOLL_ASSIGN(const UniqueFd file, open_key_file(path));
  std::string content(kMaxKeyFileBytes, '\0');
  const ssize_t got = read(file.get(), content.data(), content.size());
  if (got < 0) return wrong_key_file(path, std::strerror(errno));
  CHECK(static_cast<size_t>(got) <= content.size());
  content.resize(static_cast<size_t>(got));
  std::optional<CurveKey> public_key;
  std::optional<CurveKey> secret_key;
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::string value;
    if (!(words >> name) || name.starts_with('#')) continue;
    words >> value;
    if (name == "public") public_key = curve_key_of_hex(value);
    if (name == "secret") secret_key = curve_key_of_hex(value);
  }
  if (public_key && secret_key) return CurveKeyPair{*public_key, *secret_key};
  return wrong_key_file(path,
                        "has no lines \"public KEY\" and \"secret KEY\" with 64 hexadecimal digits "
                        "each: make a file with `atoll keys generate`");
}

Result<void> write_key_file(const std::string& path, const CurveKeyPair& keys) {
  const auto failed = [&](const std::string& why) {
    return make_error(ExitCode::failed, "key file " + path + ": " + why);
  };
  // O_EXCL: an existing key is never overwritten, because clients may know its public part.
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) {
    return failed(errno == EEXIST ? "exists already: delete it, or choose another name"
                                  : std::strerror(errno));
  }
  const std::string text =
      "# Keys of an Atoll network server or client. Keep this file secret: its mode is 600.\n"
      "public " +
      to_hex(keys.public_key) + "\nsecret " + to_hex(keys.secret_key) + "\n";
  CHECK(text.size() <= kMaxKeyFileBytes);
  const ssize_t written = write(file.get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size()) && fsync(file.get()) == 0) return {};
  const std::string why = std::strerror(errno);
  unlink(path.c_str());
  return failed("cannot be written: " + why);
}

}  // namespace atolldb
