#include "ops/cli/shell_interpreter.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <utility>

#include "ops/cli/new_storage.h"
#include "ops/cli/terminal.h"
#include "ops/cli/usage_text.h"
#include "ops/shell/print_result.h"
#include "ops/shell/words.h"
#include "shared/base/base64.h"
#include "shared/base/try.h"
#include "shared/memory/state_names.h"

namespace atolldb::cli {
namespace {

constexpr const char* kSettings[] = {"acknowledge", "isolation", "json",        "key-format",
                                     "snapshot",    "timing",    "value-format"};

Result<bool> on_or_off(const std::string& name, const std::string& value) {
  if (value == "on" || value == "off") return value == "on";
  return make_error(ExitCode::usage, "set " + name + ": \"" + value + "\": use on or off");
}

template <typename... Words>
Result<void> check_word(const std::string& name, const std::string& value, const Words&... words) {
  if (((value == words) || ...)) return {};
  std::string all;
  ((all += (all.empty() ? "" : ", ") + std::string(words)), ...);
  return make_error(ExitCode::usage, "set " + name + ": \"" + value + "\": use one of " + all);
}

/// Prints one line of JSON, as each statement does in the JSON mode.
void print_document(Json document) {
  document["schema_version"] = 1;
  std::printf("%s\n", document.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace

/// What a line asks for.
struct ShellInterpreter::Parsed {
  enum class Verb : uint8_t {
    none,
    records,
    begin,
    commit,
    abort,
    set,
    storages,
    create,
    drop,
    call,
    help,
    quit,
  };
  Verb verb = Verb::none;
  std::shared_ptr<shell::Statement> statement = std::make_shared<shell::Statement>();
  std::string kind = "serializable";           // begin
  std::string name;                            // set, drop, call, help
  std::string value;                           // set, call
  NewStorage storage{"", "mastertree", 0, 0};  // create
};

ShellInterpreter::ShellInterpreter(shell::Connection& connection, KvOptions options)
    : connection_(connection), options_(std::move(options)) {
  if (auto formats = formats_of(options_)) formats_ = *std::move(formats);
}

void ShellInterpreter::add_all(CLI::App& parser, Parsed& parsed) const {
  using Verb = Parsed::Verb;
  parser.require_subcommand(1);
  shell::add_statements(
      parser, parsed.statement, [&parsed] { parsed.verb = Verb::records; }, [](CLI::App&) {});
  const auto add = [&](const char* name, const char* help, Verb verb) {
    CLI::App* command = parser.add_subcommand(name, help);
    command->callback([&parsed, verb] { parsed.verb = verb; });
    return command;
  };
  add("begin", "Begin a transaction of several statements", Verb::begin)
      ->add_option("KIND", parsed.kind,
                   "serializable, or snapshot: read the newest snapshot and write nothing")
      ->check(CLI::IsMember({"serializable", "snapshot"}))
      ->capture_default_str();
  add("commit", "Commit the transaction, if nothing that it has read has changed", Verb::commit);
  add("abort", "Discard the transaction", Verb::abort);
  CLI::App* set = add("set", "Show or change a setting", Verb::set);
  set->add_option("NAME", parsed.name, "Name of the setting; none: show all");
  set->add_option("VALUE", parsed.value, "Its new value");
  add("storages", "List the storages", Verb::storages);
  CLI::App* create = add("create", "Create a storage", Verb::create);
  add_new_storage_options(*create, parsed.storage);
  add("drop", "Drop a storage with all its records", Verb::drop)
      ->add_option("NAME", parsed.name, "Name of the storage")
      ->required();
  CLI::App* call = add("call", "Run a procedure as one transaction", Verb::call);
  call->add_option("NAME", parsed.name, "Name of the procedure")->required();
  call->add_option("INPUT", parsed.value, "Its input, as text");
  add("help", "Show the statements, or one of them", Verb::help)
      ->add_option("STATEMENT", parsed.name, "Name of the statement");
  add("quit", "End the shell", Verb::quit);
}

Result<void> ShellInterpreter::run(const std::string& line) {
  const auto words = shell::split_words(line);
  if (!words) return make_error(ExitCode::usage, words.error());
  if (words->empty()) return {};
  CLI::App parser("", "");
  Parsed parsed;
  add_all(parser, parsed);
  try {
    std::vector<std::string> reversed(words->rbegin(), words->rend());
    parser.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = parser.get_subcommands();
    std::printf("%s", (chosen.empty() ? parser : *chosen.front()).help().c_str());
    return {};
  } catch (const CLI::ParseError& error) {
    return make_error(ExitCode::usage, usage_text(parser, error));
  }
  const auto begun_at = std::chrono::steady_clock::now();
  Result<void> done = run_parsed(parsed);
  if (done && timing_) {
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - begun_at;
    if (options_.json) {
      print_document({{"time_ms", took.count()}});
    } else {
      std::printf("time: %.3f ms\n", took.count());
    }
  }
  std::fflush(stdout);
  return done;
}

Result<void> ShellInterpreter::run_parsed(const Parsed& parsed) {
  switch (parsed.verb) {
    case Parsed::Verb::none:
      return {};
    case Parsed::Verb::records:
      return run_records(*parsed.statement);
    case Parsed::Verb::begin:
      return begin(parsed.kind);
    case Parsed::Verb::commit:
      return commit();
    case Parsed::Verb::abort:
      return abort();
    case Parsed::Verb::set:
      return set(parsed.name, parsed.value);
    case Parsed::Verb::storages:
      return list_storages();
    case Parsed::Verb::create:
      return create_storage(parsed.storage);
    case Parsed::Verb::drop:
      return drop_storage(parsed.name);
    case Parsed::Verb::call:
      return call(parsed.name, parsed.value);
    case Parsed::Verb::help:
      return help(parsed.name);
    case Parsed::Verb::quit:
      has_quit_ = true;
      return {};
  }
  return {};
}

/// Prints the result of a statement that returns no data.
void ShellInterpreter::print_done(Json document) const {
  if (options_.json) {
    print_document(std::move(document));
  } else {
    std::printf("ok\n");
  }
}

Result<void> ShellInterpreter::check_session() {
  if (transaction_ != nullptr && !transaction_->client().is_open()) {
    transaction_.reset();
    is_transaction_lost_ = true;
    return make_error(ExitCode::failed,
                      "the session of the transaction has ended: it is aborted, nothing was "
                      "committed: abort it and begin again");
  }
  if (!is_transaction_lost_) return {};
  return make_error(ExitCode::failed,
                    "the transaction is lost: the statement was not run: abort it and begin again");
}

Result<void> ShellInterpreter::run_records(const shell::Statement& statement) {
  ATOLL_TRY(check_session());
  ATOLL_ASSIGN(const shell::BoundStatement bound,
               bind_to_storage(connection_, statement, formats_));
  shell::ResultPrinter printer(formats_, options_.json);
  const auto on_row = [&](const KvRecord& record) { return printer.row(bound, record); };
  if (transaction_ != nullptr) {
    ATOLL_ASSIGN(const shell::StatementResult result,
                 shell::run_within(*transaction_, bound, on_row));
    return printer.end(bound, result, 0);
  }
  ATOLL_ASSIGN(const shell::RunOptions run, run_options_of(options_));
  auto done = shell::run_statement(connection_, bound, run, on_row);
  if (!done) {
    connection_.forget(statement.storage);  // another client may have changed the catalog
    return std::unexpected(std::move(done.error()));
  }
  return printer.end(bound, done->results.front(), done->commit_epoch);
}

Result<void> ShellInterpreter::check_no_transaction(const char* what) const {
  if (transaction_ == nullptr && !is_transaction_lost_) return {};
  return make_error(ExitCode::usage,
                    std::string(what) + ": a transaction is open: commit or abort it first");
}

Result<void> ShellInterpreter::begin(const std::string& kind) {
  ATOLL_TRY(check_no_transaction("begin"));
  snapshot_ = 0;
  is_transaction_lost_ = true;  // until it has begun
  if (kind == "snapshot") {
    snapshot_ = options_.snapshot;
    if (snapshot_ == 0) {
      ATOLL_ASSIGN(snapshot_, connection_.newest_snapshot());
    }
  }
  ATOLL_ASSIGN(ClientTransport * session, connection_.session());
  transaction_ = std::make_unique<KvTransaction>(*session, snapshot_);
  is_transaction_lost_ = false;
  if (options_.json) {
    print_document(
        {{"transaction", "open"}, {"snapshot", snapshot_ == 0 ? Json() : Json(snapshot_)}});
  } else if (snapshot_ == 0) {
    std::printf("ok\n");
  } else {
    std::printf("ok: snapshot %u\n", snapshot_);
  }
  return {};
}

Result<void> ShellInterpreter::commit() {
  if (transaction_ == nullptr && !is_transaction_lost_) {
    return make_error(ExitCode::usage, "commit: no transaction is open: begin one with `begin`");
  }
  if (transaction_ == nullptr || !transaction_->client().is_open()) {
    transaction_.reset();
    is_transaction_lost_ = false;
    return make_error(ExitCode::failed,
                      "commit: the transaction was lost: nothing was committed: begin again");
  }
  const auto transaction = std::exchange(transaction_, nullptr);
  ATOLL_ASSIGN(const shell::RunOptions run, run_options_of(options_));
  const auto done = transaction->commit(run.answer_at);
  if (!done) {
    const auto& [status, message] = done.error();
    if (status == Status::user_abort) {
      return make_error(ExitCode::condition,
                        "commit: conflict: " + message + ": nothing was committed: begin again");
    }
    return std::unexpected(shell::error_of("commit", status, message));
  }
  if (options_.json) {
    print_document({{"commit_epoch", done->epoch}, {"version", done->version}});
  } else {
    std::printf("ok\n");
  }
  return {};
}

Result<void> ShellInterpreter::abort() {
  if (transaction_ == nullptr && !is_transaction_lost_) {
    return make_error(ExitCode::usage, "abort: no transaction is open");
  }
  transaction_.reset();
  is_transaction_lost_ = false;
  print_done({{"transaction", "aborted"}});
  return {};
}

Result<void> ShellInterpreter::set(const std::string& name, const std::string& value) {
  KvOptions changed = options_;
  bool timing = timing_;
  if (name.empty() && changed.json) {
    print_document({{"settings",
                     {{"acknowledge", changed.acknowledge},
                      {"isolation", changed.isolation},
                      {"json", "on"},
                      {"key-format", changed.key_format},
                      {"snapshot", std::to_string(changed.snapshot)},
                      {"timing", timing ? "on" : "off"},
                      {"value-format", changed.value_format}}}});
    return {};
  }
  if (name.empty()) {
    std::printf(
        "acknowledge %s\nisolation %s\njson %s\nkey-format %s\nsnapshot %u\ntiming %s\n"
        "value-format %s\n",
        changed.acknowledge.c_str(), changed.isolation.c_str(), changed.json ? "on" : "off",
        changed.key_format.c_str(), changed.snapshot, timing ? "on" : "off",
        changed.value_format.c_str());
    return {};
  }
  if (value.empty()) {
    return make_error(ExitCode::usage, "set " + name + ": give its new value; `set` shows all");
  }
  if (name == "acknowledge") {
    ATOLL_TRY(check_word(name, value, "durable", "visible"));
    changed.acknowledge = value;
  } else if (name == "isolation") {
    ATOLL_TRY(check_word(name, value, "serializable", "snapshot", "snapshot_read_only"));
    changed.isolation = value;
    if (value != "snapshot_read_only") changed.snapshot = 0;
  } else if (name == "json") {
    ATOLL_ASSIGN(changed.json, on_or_off(name, value));
  } else if (name == "key-format") {
    changed.key_format = value;
  } else if (name == "value-format") {
    changed.value_format = value;
  } else if (name == "timing") {
    ATOLL_ASSIGN(timing, on_or_off(name, value));
  } else if (name == "snapshot") {
    if (!CLI::detail::lexical_cast(value, changed.snapshot)) {
      return make_error(ExitCode::usage, "set snapshot: \"" + value + "\": give its number");
    }
    if (changed.snapshot != 0) changed.isolation = "snapshot_read_only";
  } else {
    std::string all;
    for (const char* each : kSettings) all += (all.empty() ? "" : ", ") + std::string(each);
    return make_error(ExitCode::usage, "set: \"" + name + "\": no such setting: use one of " + all);
  }
  ATOLL_ASSIGN(formats_, formats_of(changed));
  options_ = std::move(changed);
  timing_ = timing;
  print_done({{"setting", name}, {"value", value}});
  return {};
}

Result<void> ShellInterpreter::list_storages() {
  ATOLL_ASSIGN(const auto storages, connection_.storages());
  if (options_.json) {
    Json list = Json::array();
    for (const shell::StorageEntry& storage : storages) {
      list.push_back({{"name", storage.name},
                      {"type", to_string(storage.type)},
                      {"payload_bytes", storage.payload_bytes},
                      {"record_count", storage.record_count}});
    }
    print_document({{"storages", list}});
    return {};
  }
  std::vector<std::vector<std::string>> rows = {{"NAME", "TYPE", "PAYLOAD BYTES", "RECORDS"}};
  for (const shell::StorageEntry& storage : storages) {
    rows.push_back({storage.name, std::string(to_string(storage.type)),
                    payload_cell(storage.payload_bytes), records_cell(storage.record_count)});
  }
  std::printf("%s", format_table(rows).c_str());
  return {};
}

Result<void> ShellInterpreter::create_storage(const NewStorage& storage) {
  ATOLL_TRY(check_no_transaction("create"));
  ATOLL_TRY(connection_.call(ControlOperation::storage_create, creation_of(storage)));
  connection_.forget(storage.name);
  print_done({{"storage", storage.name}, {"state", "created"}});
  return {};
}

Result<void> ShellInterpreter::drop_storage(const std::string& name) {
  ATOLL_TRY(check_no_transaction("drop"));
  ATOLL_TRY(connection_.call(ControlOperation::storage_drop, {{"name", name}}));
  connection_.forget(name);
  print_done({{"storage", name}, {"state", "dropped"}});
  return {};
}

Result<void> ShellInterpreter::call(const std::string& procedure, const std::string& input) {
  ATOLL_TRY(check_no_transaction("call"));
  ATOLL_ASSIGN(const shell::RunOptions run, run_options_of(options_));
  ATOLL_ASSIGN(ClientTransport * session, connection_.session());
  SessionOptions session_options{.answer_at = run.answer_at};
  // The library of the procedure decides its isolation, unless the user has chosen another one.
  if (run.isolation != Isolation::serializable) session_options.isolation = run.isolation;
  session_options.snapshot = run.snapshot;
  const SessionReply reply =
      session->call(procedure, std::as_bytes(std::span(input)), session_options);
  if (reply.status != Status::ok) {
    return std::unexpected(
        shell::error_of("call " + printable(procedure), reply.status, reply.message));
  }
  const std::string_view text(reinterpret_cast<const char*>(reply.output.data()),
                              reply.output.size());
  if (options_.json) {
    // The same members as with `atoll procedure call --json`.
    Json document = {{"procedure", procedure}};
    if (is_utf8(text)) {
      document["output"] = text;
    } else {
      document["output_base64"] = to_base64(reply.output);
    }
    print_document(std::move(document));
    return {};
  }
  const std::string shown = is_utf8(text) ? printable(text) : shell::escape_text(reply.output);
  std::printf("%s\n", shown.empty() ? "ok" : shown.c_str());
  return {};
}

Result<void> ShellInterpreter::help(const std::string& topic) const {
  CLI::App parser("", "");
  Parsed parsed;
  add_all(parser, parsed);
  const auto commands = parser.get_subcommands([](const CLI::App*) { return true; });
  if (topic.empty()) {
    for (const CLI::App* command : commands) {
      std::printf("%-10s %s\n", command->get_name().c_str(), command->get_description().c_str());
    }
    std::printf(
        "\nWords with blanks are in quotes: put accounts 'alice a' 100\n"
        "`help STATEMENT` shows its arguments.\n");
    return {};
  }
  for (CLI::App* command : commands) {
    if (command->get_name() != topic) continue;
    std::printf("%s", command->help().c_str());
    return {};
  }
  return make_error(ExitCode::usage,
                    "help: \"" + printable(topic) + "\": no such statement: `help` lists them");
}

std::vector<std::string> ShellInterpreter::complete(std::string_view line) {
  const std::vector<std::string> words = shell::words_before_cursor(line);
  CLI::App parser("", "");
  Parsed parsed;
  add_all(parser, parsed);
  std::vector<std::string> found;
  const auto commands = parser.get_subcommands([](const CLI::App*) { return true; });
  if (words.size() == 1 || (words.size() == 2 && words.front() == "help")) {
    for (const CLI::App* command : commands) found.push_back(command->get_name());
    return found;
  }
  const std::string& verb = words.front();
  if (words.back().starts_with("--")) {
    for (const CLI::App* command : commands) {
      if (command->get_name() == verb) return option_names(*command);
    }
    return found;
  }
  if (words.size() != 2) return found;
  if (verb == "set") return {std::begin(kSettings), std::end(kSettings)};
  if (verb == "begin") return {"serializable", "snapshot"};
  const bool takes_storage = verb == "drop" || verb == "get" || verb == "put" || verb == "insert" ||
                             verb == "del" || verb == "add" || verb == "append" ||
                             verb == "check" || verb == "scan";
  if (!takes_storage) return found;
  if (const auto storages = connection_.storages()) {
    for (const shell::StorageEntry& storage : *storages) found.push_back(storage.name);
  }
  return found;
}

}  // namespace atolldb::cli
