// Exit codes of `atoll` in words: `atoll --help` prints them. A test compares them with the manual
// and the top-level README.
#pragma once

#include <string_view>
#include <utility>

#include "shared/base/error.h"

namespace atolldb::cli {

inline constexpr std::pair<ExitCode, std::string_view> kExitCodes[] = {
    {ExitCode::success, "success"},
    {ExitCode::failed, "failed"},
    {ExitCode::usage, "usage"},
    {ExitCode::not_running, "not running"},
    {ExitCode::already_running, "already running"},
    {ExitCode::coordinator_unreachable, "coordinator unreachable"},
    {ExitCode::resources, "resources"},
    {ExitCode::corruption, "corruption"},
    {ExitCode::durability, "durability"},
    {ExitCode::recovering, "recovering"},
    {ExitCode::disk_full, "disk full"},
    {ExitCode::identity, "identity"},
    {ExitCode::condition, "condition not met"},
    {ExitCode::config, "config"},
};

}  // namespace atolldb::cli
