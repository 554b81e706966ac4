#include "shared/file/file_failure.h"

#include <algorithm>

#include "shared/base/error_text.h"

namespace atolldb {
namespace {

constexpr int kLastErrorNumber = 133;  // EHWPOISON

struct FoundText {
  size_t at = std::string_view::npos;
  int error_number = 0;
};

/// Finds the first error text that is a part of its own: ": text", followed by ":", " (" or the
/// end.
FoundText find_error_text(std::string_view message) {
  FoundText first;
  for (int number = 1; number <= kLastErrorNumber; ++number) {
    const std::string text = ": " + error_text(number);
    for (size_t at = message.find(text); at < first.at; at = message.find(text, at + 1)) {
      const std::string_view after = message.substr(at + text.size());
      if (!after.empty() && after.front() != ':' && !after.starts_with(" (")) continue;
      first = {at, number};
      break;
    }
  }
  return first;
}

/// Removes a trailing number part from a path. Returns "/x/y" for "/x/y with 8 bytes", "/x/y from 0
/// to 8 bytes" and "/x/y (0 to 8)".
std::string_view without_numbers(std::string_view path) {
  for (const std::string_view opening : {" with ", " from ", " ("}) {
    const size_t at = path.rfind(opening);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = path.substr(at + opening.size());
    if (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') path = path.substr(0, at);
  }
  return path;
}

}  // namespace

std::string file_of_operation(std::string_view operation) {
  const size_t begin = operation.find('/');
  if (begin == std::string_view::npos) return "";
  std::string_view path = operation.substr(begin);
  if (const size_t removed = path.find(" (and it could not be "); removed != path.npos) {
    path = path.substr(0, removed);
  }
  if (operation.starts_with("renaming of ")) {
    const size_t to = path.find(" to /");
    if (to != std::string_view::npos) return std::string(path.substr(to + 4));
  }
  return std::string(without_numbers(path));
}

std::optional<FileFailure> file_failure_in(std::string_view message) {
  const FoundText error = find_error_text(message);
  if (error.at == std::string_view::npos) return std::nullopt;
  std::string_view before = message.substr(0, error.at);
  // The operation is the last part that contains a path: "cluster: node0: sync of /x/y".
  while (!before.empty()) {
    const size_t colon = before.rfind(": ");
    const std::string_view part = colon == before.npos ? before : before.substr(colon + 2);
    std::string file = file_of_operation(part);
    if (!file.empty()) return FileFailure{std::move(file), error.error_number};
    if (colon == before.npos) break;
    before = before.substr(0, colon);
  }
  return std::nullopt;
}

}  // namespace atolldb
