#include "ops/cli/procedure_call.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/cli/cluster_call.h"
#include "ops/cli/terminal.h"
#include "shared/base/base64.h"
#include "shared/base/isolation.h"
#include "shared/base/path_errors.h"
#include "shared/base/try.h"
#include "shared/base/unique_fd.h"
#include "shared/client/client_transport.h"
#include "shared/client/connection_string.h"
#include "shared/client/session_client.h"

namespace atolldb::cli {
namespace {

/// Added to the procedure's time limit, for the transfer of its input and output.
constexpr std::chrono::milliseconds kTransferMargin{30'000};
/// Bytes of the input that one call reads.
constexpr size_t kInputStepBytes = 1u << 20;

/// The source of the input. It is opened before the call, so that a wrong path is refused first.
class InputFile {
 public:
  explicit InputFile(const ProcedureOptions& options) : options_(options) {}

  Result<void> open() {
    if (options_.input_file.empty()) return {};
    file_ = UniqueFd(options_.input_file == "-"
                         ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                         : ::open(options_.input_file.c_str(), O_RDONLY | O_CLOEXEC));
    if (file_.is_open()) return {};
    return unreadable(errno);
  }

  /// Reads the whole input. Reads at most one byte more than the limit. That suffices to detect an
  /// input that is too long, and a device file may never end.
  Result<std::vector<std::byte>> read(uint32_t limit_bytes) const {
    std::vector<std::byte> bytes;
    if (!file_.is_open()) {
      const auto text = std::as_bytes(std::span(options_.input));
      bytes.assign(text.begin(), text.end());
    }
    while (file_.is_open() && bytes.size() <= limit_bytes) {
      const size_t before = bytes.size();
      bytes.resize(before + std::min(kInputStepBytes, limit_bytes + size_t{1} - before));
      const ssize_t got = ::read(file_.get(), bytes.data() + before, bytes.size() - before);
      if (got < 0 && errno != EINTR) return unreadable(errno);
      bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
      if (got == 0) break;
    }
    if (bytes.size() <= limit_bytes) return bytes;
    return make_error(ExitCode::usage, name() + ": is longer than the limit of " +
                                           std::to_string(limit_bytes) +
                                           " bytes: raise procedures.max_input, or split the work "
                                           "into several calls");
  }

 private:
  std::string name() const {
    return options_.input_file.empty() ? "INPUT" : "--input-file " + options_.input_file;
  }
  std::unexpected<Error> unreadable(int error_number) const {
    return make_error(ExitCode::usage, name() + ": cannot be read: " + error_text(error_number) +
                                           ": give the path of a file");
  }

  const ProcedureOptions& options_;
  UniqueFd file_;
};

/// The file of --output. It is opened before the call, so that a procedure does not commit if its
/// output cannot be stored. An existing file keeps its content until the call has succeeded. If the
/// call fails, a file that it created is removed, unless another file has its path now or the file
/// has some bytes.
class OutputFile {
 public:
  /// `path`: empty for standard output.
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    if (is_new_ && !is_written_ && is_empty_at_path()) unlink(path_.c_str());
  }

  Result<void> open() {
    if (path_.empty()) return {};
    constexpr int kFlags = O_WRONLY | O_CLOEXEC;
    file_ = UniqueFd(::open(path_.c_str(), kFlags | O_CREAT | O_EXCL, 0666));
    is_new_ = file_.is_open() && fstat(file_.get(), &created_) == 0;
    if (!file_.is_open() && errno == EEXIST) file_ = UniqueFd(::open(path_.c_str(), kFlags));
    if (file_.is_open()) return {};
    return failure("cannot be opened", errno, "give another path: the procedure was not called");
  }

  bool is_open() const { return file_.is_open(); }

  /// REQUIRES: the file is open.
  Result<void> write(std::span<const std::byte> bytes) {
    // A pipe or a device has no length, so this error means nothing.
    [[maybe_unused]] const int cut = ftruncate(file_.get(), 0);
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t written = ::write(file_.get(), bytes.data() + done, bytes.size() - done);
      if (written < 0 && errno != EINTR) return lost(errno, done, bytes.size());
      done += static_cast<size_t>(std::max<ssize_t>(written, 0));
    }
    // Some file systems report the lack of space only when the file is closed.
    if (close(file_.release()) != 0) {
      return failure("cannot be closed", errno,
                     "give another path next time: the procedure has committed, the file may lack "
                     "a part of its output");
    }
    is_written_ = true;
    return {};
  }

 private:
  std::unexpected<Error> failure(std::string_view what, int error_number,
                                 std::string_view way_out) const {
    Error error = path_error(path_, what, error_number, way_out);
    return make_error(error.code, "--output " + error.message);
  }
  std::unexpected<Error> lost(int error_number, size_t written, size_t all) const {
    const std::string rest = written == 0
                                 ? "its output is lost"
                                 : "the file has the first " + std::to_string(written) + " of " +
                                       std::to_string(all) + " bytes of its output";
    return failure("cannot be written", error_number,
                   "give another path next time: the procedure has committed, " + rest);
  }
  /// Returns whether the path still names the file that was created, without any bytes.
  bool is_empty_at_path() const {
    struct stat now{};
    return lstat(path_.c_str(), &now) == 0 && now.st_dev == created_.st_dev &&
           now.st_ino == created_.st_ino && now.st_size == 0;
  }

  const std::string path_;
  UniqueFd file_;
  struct stat created_{};
  bool is_new_ = false;  // `created_` is the file
  bool is_written_ = false;
};

bool has_output_file(const ProcedureOptions& options) {
  return !options.output_file.empty() && options.output_file != "-";
}

/// Prints text with a line end, and binary output unchanged.
void print_output(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  if (is_utf8({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) std::putchar('\n');
}

/// Prints the output as text, or in base64 if it is no text. If it is in a file, prints the path.
void print_output_json(const ProcedureOptions& options, std::span<const std::byte> bytes) {
  Json whole = {{"schema_version", 1}, {"procedure", options.name}, {"output_bytes", bytes.size()}};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (has_output_file(options)) {
    whole["output_file"] = options.output_file;
  } else if (is_utf8(text)) {
    whole["output"] = text;
  } else {
    whole["output_base64"] = to_base64(bytes);
  }
  std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

ExitCode code_of_call(Status status) {
  switch (status) {
    case Status::recovering:
      return ExitCode::recovering;
    case Status::outcome_unknown:
    case Status::cluster_failed:
      return ExitCode::coordinator_unreachable;
    case Status::payload_too_long:
      return ExitCode::usage;
    default:
      return ExitCode::failed;
  }
}

/// Returns the error of a call that did not succeed.
Error error_of_call(const std::string& procedure, const SessionReply& reply) {
  if (reply.status == Status::procedure_not_found && !reply.message.empty()) {
    return {ExitCode::failed, printable(reply.message)};
  }
  const bool is_unknown = reply.status == Status::outcome_unknown;
  return {code_of_call(reply.status),
          procedure_text(procedure) + ": " + std::string(to_string(reply.status)) +
              (reply.message.empty() ? "" : ": " + printable(reply.message)) +
              (is_unknown ? ": it may have committed: read the records to find out"
                          : ": nothing was committed")};
}

/// Sends the request. Error: coordinator_unreachable if no reply comes within `timeout`.
Result<SessionReply> send_call(ClientTransport& session, const ProcedureOptions& options,
                               std::span<const std::byte> input, AnswerAt answer_at,
                               std::chrono::nanoseconds timeout) {
  SessionOptions request{.answer_at = answer_at};
  // The library of the procedure decides its isolation, unless the user has chosen another one.
  if (!options.isolation.empty()) request.isolation = isolation_of(options.isolation);
  request.snapshot = options.snapshot;
  request.waits_at_once = true;
  const auto ticket = session.submit(options.name, input, request);
  if (!ticket) {
    SessionReply refused;
    refused.status = ticket.error();
    refused.message = "the request was not sent: the session has ended, or has no room";
    return refused;
  }
  std::optional<SessionReply> reply = session.wait_for(*ticket, timeout);
  if (reply) return *std::move(reply);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  return make_error(ExitCode::coordinator_unreachable,
                    procedure_text(options.name) + ": the node does not answer within " +
                        std::to_string(seconds.count()) +
                        " s: it may have committed: run `atoll status`");
}

/// Writes what was printed. Its error says that the procedure has committed.
Result<void> flush_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  const int error_number = errno;
  return make_error(is_disk_full(error_number) ? ExitCode::disk_full : ExitCode::failed,
                    "standard output: not all of it could be written" +
                        (error_number == 0 ? "" : ": " + error_text(error_number)) +
                        ": the procedure has committed: write its output to a file with --output "
                        "next time");
}

/// Writes or prints the output, or returns the error of the reply.
Result<void> finish_call(const ProcedureOptions& options, const SessionReply& reply,
                         OutputFile& output) {
  if (reply.status != Status::ok) return std::unexpected(error_of_call(options.name, reply));
  if (output.is_open()) {
    ATOLL_TRY(output.write(reply.output));
  }
  if (options.json) {
    print_output_json(options, reply.output);
  } else if (!has_output_file(options)) {
    print_output(reply.output);
  }
  return flush_output();
}

Result<void> call_locally(const NodePlace& place, const ProcedureOptions& options,
                          const InputFile& source, OutputFile& output) {
  ATOLL_ASSIGN(const Config config, find_running(place.choice));
  ATOLL_TRY(check_node(config, place.node, "--node " + std::to_string(place.node)));
  const ClusterBefore before(config);
  auto session = SessionClient::connect(config.cluster.run_dir, place.node);
  if (!session && session.error().code == ExitCode::not_running) {
    const Error& error = session.error();
    return std::unexpected(before.explain(
        {error.code, procedure_text(options.name) + ": it was not called: " + error.message}));
  }
  if (!session) return std::unexpected(std::move(session).error());
  ATOLL_ASSIGN(const std::vector<std::byte> input, source.read((*session)->max_input_bytes()));
  ATOLL_TRY(output.open());
  auto reply = send_call(**session, options, input, place.answer_at,
                         config.procedures.time_limit.get() + kTransferMargin);
  if (!reply) return std::unexpected(before.explain(std::move(reply).error()));
  const bool has_ended = reply->status == Status::outcome_unknown ||
                         reply->status == Status::cluster_failed ||
                         (reply->status == Status::unavailable && !(*session)->is_open());
  if (has_ended) return std::unexpected(before.explain(error_of_call(options.name, *reply)));
  return finish_call(options, *reply, output);
}

Result<void> call_over_network(const ConnectionTarget& target, const ProcedureOptions& options,
                               const InputFile& source, OutputFile& output) {
  const Isolation isolation = isolation_of(options.isolation).value_or(Isolation::serializable);
  ATOLL_ASSIGN(const auto session, connect_to(target, target.connect_timeout, isolation));
  ATOLL_ASSIGN(const std::vector<std::byte> input, source.read(session->max_input_bytes()));
  ATOLL_TRY(output.open());
  ATOLL_ASSIGN(const SessionReply reply,
               send_call(*session, options, input, target.answer_at, ClientTransport::kForEver));
  return finish_call(options, reply, output);
}

}  // namespace

std::string procedure_text(const std::string& name) {
  return "procedure \"" + printable(name) + "\"";
}

Result<void> call_procedure(const ClusterChoice& choice, const ProcedureOptions& options) {
  InputFile source(options);
  ATOLL_TRY(source.open());
  if (options.name.empty() || options.name.size() > kMaxSessionProcedureName) {
    return make_error(ExitCode::failed, "procedure name of " + std::to_string(options.name.size()) +
                                            " bytes: unknown: a name has 1 to " +
                                            std::to_string(kMaxSessionProcedureName) + " bytes");
  }
  ATOLL_ASSIGN(const NodePlace place,
               node_place_of(choice, options, {.node = true, .acknowledge = true}));
  OutputFile output(has_output_file(options) ? options.output_file : "");
  return place.network ? call_over_network(*place.network, options, source, output)
                       : call_locally(place, options, source, output);
}

}  // namespace atolldb::cli
