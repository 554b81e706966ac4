#include "soc/procedure/library_reloader.h"

#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {

void LibraryReloader::handle(const ControlRequest& request, const ControlReply& reply) {
  if (request.operation != ControlOperation::library_prepare) return reply(finish(request));
  const Result<void> started = start_preparing(request, reply);
  if (!started) reply(std::unexpected(started.error()));
}

Result<void> LibraryReloader::start_preparing(const ControlRequest& request,
                                              const ControlReply& reply) {
  ATOLL_ASSIGN(std::string path, get_text(request, "library"));
  const std::lock_guard guard(mutex_);
  if (has_ended_) {
    return make_error(ExitCode::not_running, request.op + ": " + path + ": the node stops");
  }
  if (is_preparing_) {
    return make_error(ExitCode::failed, request.op + ": " + path +
                                            ": another library is being loaded: try again later");
  }
  if (thread_.joinable()) thread_.join();  // it has answered, and ends now
  is_preparing_ = true;
  prepared_.reset();
  thread_ = std::thread([this, path = std::move(path), reply] {
    const Result<Json> answer = prepare(path);
    {
      const std::lock_guard own_guard(mutex_);
      is_preparing_ = false;
    }
    reply(answer);
  });
  return {};
}

/// Thread: thread_.
Result<Json> LibraryReloader::prepare(const std::string& path) {
  ATOLL_ASSIGN(std::unique_ptr<LoadedLibrary> version, LoadedLibrary::load(path));
  ATOLL_ASSIGN(std::unique_ptr<ProcedureRegistry::Table> table, registry_.with_version(*version));
  std::string why;
  const Status status = version->prepare(control_, why);
  if (status != Status::ok && status != Status::storage_not_found) {
    return make_error(ExitCode::config, "procedures.libraries: " + why);
  }
  uint64_t count = 0;
  for (const auto& [name, entry] : table->entries) count += entry.origin == path ? 1 : 0;
  const uint32_t checksum = version->checksum();
  const std::lock_guard guard(mutex_);
  prepared_ = Prepared{++last_token_, std::move(version), std::move(table)};
  return Json{{"token", last_token_}, {"checksum", checksum}, {"procedures", count}};
}

Result<Json> LibraryReloader::finish(const ControlRequest& request) {
  ATOLL_ASSIGN(const uint64_t token, get_number(request, "token"));
  const std::lock_guard guard(mutex_);
  if (!prepared_ || prepared_->token != token) {
    return make_error(ExitCode::failed, request.op + ": token " + std::to_string(token) +
                                            ": no such version is prepared: another command has "
                                            "loaded one meanwhile: try again");
  }
  if (request.operation == ControlOperation::library_publish) {
    logger_->info("procedures of {} come from a new version: checksum {:08x}",
                  prepared_->version->path(), prepared_->version->checksum());
    if (on_names_) on_names_(prepared_->table->procedure_names);
    registry_.publish(std::move(prepared_->table), std::move(prepared_->version));
  }
  prepared_.reset();
  return Json::object();
}

void LibraryReloader::stop() {
  std::thread ending;
  {
    const std::lock_guard guard(mutex_);
    has_ended_ = true;
    ending = std::exchange(thread_, {});
  }
  if (ending.joinable()) ending.join();
}

}  // namespace atolldb
