// Completion of a command line, for the shells (ops/completion): `atoll __complete WORDS...` prints
// what may replace the last of the words.
#pragma once

#include <CLI/App.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/cli/cluster_finder.h"

namespace atolldb::cli {

/// The hidden command. Its words are never parsed as options of `atoll`.
inline constexpr std::string_view kCompletionCommand = "__complete";
/// A line that asks the shell for names of files, or of folders.
inline constexpr std::string_view kCompleteFiles = ":files";
inline constexpr std::string_view kCompleteFolders = ":folders";

/// Prints one candidate a line: the word, a tab, and its description. `words`: the words of the
/// command line after `atoll`; the last one, which may be empty, is completed.
void print_completions(const CLI::App& app, std::span<const std::string> words);

/// What a value of the command line names.
enum class NameKind { cluster, storage, procedure, pin, snapshot, node, process, session };

/// Returns the names of this kind in the chosen cluster, or none if it does not answer at once.
std::vector<std::string> names_of(NameKind kind, const ClusterChoice& choice);

}  // namespace atolldb::cli
