// Error text for a mistake on the command line or in a line of the shell.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Error.hpp>
#include <string>
#include <vector>

namespace atolldb::cli {

/// Returns the mistake, what the misspelt word may mean, and how to get help. `app`: the parser
/// that has thrown `error`.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error);

/// Returns the names of the options of a command, with their dashes.
std::vector<std::string> option_names(const CLI::App& command);

}  // namespace atolldb::cli
