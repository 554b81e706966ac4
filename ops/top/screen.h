// The terminal of `atoll top`, by ncurses.
#pragma once

#include <chrono>

#include "ops/top/sampler.h"
#include "shared/base/error.h"

namespace atolldb::top {

/// Shows the cluster until the user quits, or the terminal or the cluster ends. The terminal then
/// has its former state, also after SIGINT, SIGTERM and SIGHUP. Errors: usage if the type of the
/// terminal is unknown; those of Sampler::take. REQUIRES: standard input and output are terminals.
Result<void> run_screen(Sampler& sampler, std::chrono::milliseconds interval);

}  // namespace atolldb::top
