#include "ops/ledger/ledger.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Ends a line that was cut when its writer died. The reader ignores such a line.
constexpr std::string_view kCut = " CUT\n";

std::optional<Status> status_named(std::string_view name) {
  for (uint32_t i = 0; i < kStatusCount; ++i) {
    if (to_string(static_cast<Status>(i)) == name) return static_cast<Status>(i);
  }
  return std::nullopt;
}

std::unexpected<Error> file_error(const std::string& path) {
  return make_error(ExitCode::failed, "ledger " + path + ": " + std::strerror(errno));
}

bool read_value(std::istringstream& words, LedgerOutcome& outcome) {
  std::string word;
  while (words >> word) {
    LedgerKey key = 0;
    LedgerValue value;
    char equals = 0;
    char at = 0;
    std::istringstream parts(word);
    if (!(parts >> key >> equals >> value.token >> at >> value.version) || equals != '=' ||
        at != '@') {
      return false;
    }
    outcome.reads[key] = value;
  }
  return true;
}

}  // namespace

std::string submit_line(LedgerToken token, const std::vector<LedgerKey>& writes) {
  std::string line = "S " + std::to_string(token);
  for (const LedgerKey key : writes) line += " " + std::to_string(key);
  return line + "\n";
}

std::string answer_line(LedgerToken token, const LedgerOutcome& outcome) {
  std::string line = "A " + std::to_string(token) + " " + std::string(to_string(outcome.status)) +
                     (outcome.answered_at == AnswerAt::durable ? " durable " : " precommitted ") +
                     std::to_string(outcome.commit_epoch) + " " + std::to_string(outcome.version) +
                     " " + std::to_string(outcome.incarnation);
  for (const auto& [key, value] : outcome.reads) {
    line += " " + std::to_string(key) + "=" + std::to_string(value.token) + "@" +
            std::to_string(value.version);
  }
  return line + "\n";
}

Result<void> add_ledger_line(Ledger& ledger, std::string_view line) {
  const auto wrong = [&](const char* why) {
    return make_error(ExitCode::corruption,
                      "ledger: line \"" + std::string(line.substr(0, 200)) + "\": " + why);
  };
  std::istringstream words{std::string(line)};
  std::string kind;
  LedgerToken token = 0;
  if (!(words >> kind >> token) || token == 0) return wrong("it has no kind or token");
  if (kind == "S") {
    LedgerTransaction transaction;
    for (LedgerKey key = 0; words >> key;) transaction.writes.push_back(key);
    if (!words.eof()) return wrong("a key is not a number");
    if (!ledger.emplace(token, std::move(transaction)).second)
      return wrong("its token is used twice");
    return {};
  }
  if (kind != "A") return wrong("its kind is neither S nor A");
  const auto found = ledger.find(token);
  if (found == ledger.end()) return wrong("it answers a transaction that was not submitted");
  if (found->second.outcome) return wrong("it is a second answer");
  LedgerOutcome outcome;
  std::string status;
  std::string state;
  if (!(words >> status >> state >> outcome.commit_epoch >> outcome.version >>
        outcome.incarnation)) {
    return wrong("it has too few words");
  }
  const std::optional<Status> named = status_named(status);
  if (!named || (state != "durable" && state != "precommitted"))
    return wrong("its status is unknown");
  outcome.status = *named;
  outcome.answered_at = state == "durable" ? AnswerAt::durable : AnswerAt::precommitted;
  if (!read_value(words, outcome)) return wrong("a read is not key=token@version");
  found->second.outcome = std::move(outcome);
  return {};
}

LedgerFile::~LedgerFile() {
  if (fd_ >= 0) close(fd_);
}

Result<void> LedgerFile::open(const std::string& path) {
  path_ = path;
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  struct stat info{};
  if (fd_ < 0 || fstat(fd_, &info) != 0) return file_error(path);
  char last = '\n';
  if (info.st_size != 0 && pread(fd_, &last, 1, info.st_size - 1) != 1) return file_error(path);
  return last == '\n' ? Result<void>() : append(std::string(kCut));
}

Result<void> LedgerFile::append(const std::string& line) const {
  if (write(fd_, line.data(), line.size()) == static_cast<ssize_t>(line.size())) return {};
  return file_error(path_);
}

Result<Ledger> read_ledger(const std::string& path) {
  std::ifstream file(path);
  if (!file) return file_error(path);
  Ledger ledger;
  for (std::string line; std::getline(file, line);) {
    const bool was_cut = file.eof() || (line + "\n").ends_with(kCut);
    if (was_cut || line.empty()) continue;
    ATOLL_TRY(add_ledger_line(ledger, line));
  }
  return ledger;
}

}  // namespace atolldb
