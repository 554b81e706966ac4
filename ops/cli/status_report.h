// What `atoll status` says about an answer of the coordinator: healthy? what is wrong? what to do?
#pragma once

#include <string>
#include <vector>

#include "shared/message/control_message.h"

namespace atolldb::cli {

struct Problem {
  std::string what;
  std::string what_to_do;
};

/// Empty: the cluster is healthy.
std::vector<Problem> find_problems(const Json& status);

/// For people.
std::string status_text(const Json& status);
/// For programs: the coordinator's answer with the verdict added.
Json status_json(Json status);

}  // namespace atolldb::cli
