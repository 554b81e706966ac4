#include "shared/process/child_start.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "shared/base/try.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

Result<Handover> take_handover(int argc, char** argv) {
  ATOLL_TRY(check_processor());
  int fd = -1;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) != "--handover") continue;
    const std::string_view number = argv[i + 1];
    std::from_chars(number.data(), number.data() + number.size(), fd);
  }
  if (fd < 0) {
    return make_error(ExitCode::usage, std::string(argc > 0 ? argv[0] : "process") +
                                           ": is started by the launcher only: use `atoll up`");
  }
  Result<Handover> handover = read_handover(fd);
  close(fd);
  if (!handover) return handover;
  if (!die_with_parent(handover->launcher_pid)) {
    return make_error(ExitCode::failed, handover->role + ": its launcher has died: ending");
  }
  return handover;
}

Result<ChildContext> make_context(int argc, char** argv) {
  Result<Handover> handover = take_handover(argc, argv);
  if (!handover) return std::unexpected(handover.error());
  auto config = parse_config(handover->config_text, "handover", Machine::detect());
  if (!config) {
    return make_error(ExitCode::config, "the launcher's config: " + to_string(config.error()));
  }
  // Standard error is already the log file.
  Logger logger = make_stderr_logger(handover->role, config->log.level);
  return ChildContext{*std::move(handover), *std::move(config), std::move(logger)};
}

}  // namespace

SegmentIdentity ChildContext::segment_identity() const {
  SegmentIdentity identity;
  identity.cluster_uuid[0] = handover.cluster_uuid[0];
  identity.cluster_uuid[1] = handover.cluster_uuid[1];
  identity.config_digest = config_digest(config);
  return identity;
}

int child_main(int argc, char** argv, const std::function<ExitCode(const ChildContext&)>& run) {
  const Result<ChildContext> context = make_context(argc, argv);
  if (context) return static_cast<int>(run(*context));
  std::fprintf(stderr, "atoll: %s\n", context.error().message.c_str());
  return static_cast<int>(context.error().code);
}

}  // namespace atolldb
