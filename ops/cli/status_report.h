// Shows a status answer of the coordinator: health, problems, what to do, and the numbers.
#pragma once

#include <string>
#include <vector>

#include "coordinator/health.h"
#include "ops/launcher/start_progress.h"
#include "shared/message/control_message.h"

namespace atolldb::cli {

using atolldb::Problem;

/// Returns the problems; empty: the cluster is healthy. While the cluster starts, `status` has the
/// member `start`, which is a StartReport.
std::vector<Problem> find_problems(const Json& status);

/// Returns "reading the logs, 42 % (1.2 GiB of 2.9 GiB), 250.0 MiB/s, about 7 s left".
std::string progress_text(const StartReport& report);

/// Returns the status as text for people.
std::string status_text(const Json& status);
/// Returns the status for programs: the coordinator's answer, and the problems found.
Json status_json(Json status);

}  // namespace atolldb::cli
