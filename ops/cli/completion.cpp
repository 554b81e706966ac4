#include "ops/cli/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "ops/cli/usage_text.h"

namespace atolldb::cli {
namespace {

/// The command that the words before the completed one have chosen, and what they say about it.
struct Position {
  const CLI::App* command;
  std::string path;                     // "storage create"
  size_t positional_count = 0;          // words that are arguments of the command
  const CLI::Option* awaits = nullptr;  // option whose value is the completed word
  ClusterChoice choice{};
};

/// A value of an argument that is a name. An empty path means any command.
struct NamedValue {
  std::string_view path;
  std::string_view argument;
  NameKind kind;
};
constexpr NamedValue kNamedValues[] = {
    {"", "--cluster", NameKind::cluster},
    {"", "STORAGE", NameKind::storage},
    {"storage", "NAME", NameKind::storage},
    {"wal dump", "--storage", NameKind::storage},
    {"procedure", "NAME", NameKind::procedure},
    {"snapshot unpin", "PIN", NameKind::pin},
    {"snapshot", "ID", NameKind::snapshot},
    {"", "--snapshot", NameKind::snapshot},
    {"", "--node", NameKind::node},
    {"logs", "node", NameKind::process},
    {"session kill", "SESSION", NameKind::session},
};

/// Values that the option checks itself. Those of CLI::IsMember are in the option's type.
struct ListedValue {
  std::string_view argument;
  const char* values;
};
constexpr ListedValue kListedValues[] = {
    {"--key-format", "text,hex,u8,u16,u32,u64"},
    {"--value-format", "text,hex,json,i8,i16,i32,i64,u8,u16,u32,u64,f32,f64"},
    {"--durability", "durable,off,measure"},
    {"--workload", "A,B,C,D,E,F,silor"},
    {"--distribution", "uniform,zipfian,latest"},
    {"--storage", "mastertree,array,hash"},
    {"--insert-order", "hashed,ordered"},
    {"--backend", "posix,pmem,null"},
    {"--client", "node,local,network"},
};

/// Words in the type or the name of an argument that is a file or a folder.
constexpr std::string_view kFileWords[] = {"FILE", "--input-file", "CSV"};
constexpr std::string_view kFolderWords[] = {"DIR", "DIRECTORY", "BACKUP", "--directory"};

bool starts_path(std::string_view path, std::string_view prefix) {
  return prefix.empty() || path == prefix ||
         (path.starts_with(prefix) && path[prefix.size()] == ' ');
}

/// Returns the argument's name: "--storage", or "STORAGE" for a positional one.
std::string argument_name(const CLI::Option& option) {
  if (!option.get_lnames().empty()) return "--" + option.get_lnames().front();
  if (!option.get_snames().empty()) return "-" + option.get_snames().front();
  return option.get_name(true);
}

void split_list(const std::string& list, std::vector<std::string>& words) {
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    words.push_back(list.substr(at, end - at));
    at = end + 1;
  }
}

void print_candidate(const std::string& word, const std::string& prefix,
                     std::string description = "") {
  if (!word.starts_with(prefix) || word.find_first_of("\t\n") != std::string::npos) return;
  description = description.substr(0, description.find('\n'));
  std::printf("%s\t%s\n", word.c_str(), description.c_str());
}

void print_directive(std::string_view directive) {
  std::printf("%.*s\n", static_cast<int>(directive.size()), directive.data());
}

/// Returns the values of the option if they are few and fixed.
std::vector<std::string> fixed_values(const Position& at, const CLI::Option& option) {
  std::vector<std::string> values;
  const std::string type = option.get_type_name();
  const size_t open = type.find('{');
  if (open != std::string::npos) {
    split_list(type.substr(open + 1, type.find('}') - open - 1), values);
    return values;
  }
  const std::string name = argument_name(option);
  for (const ListedValue& listed : kListedValues) {
    // `wal dump --storage` takes the name of a storage, not a type.
    if (listed.argument == name && !at.path.starts_with("wal")) split_list(listed.values, values);
  }
  return values;
}

void print_values(const Position& at, const CLI::Option& option, const std::string& prefix) {
  for (const std::string& value : fixed_values(at, option)) print_candidate(value, prefix);
  const std::string name = argument_name(option);
  for (const NamedValue& named : kNamedValues) {
    if (named.argument != name || !starts_path(at.path, named.path)) continue;
    // A new storage has a name of its own.
    if (at.path == "storage create") return;
    for (const std::string& found : names_of(named.kind, at.choice)) {
      print_candidate(found, prefix);
    }
    return;
  }
  const auto is_named_or_typed = [&](std::string_view word) {
    return name == word || option.get_type_name().starts_with(word);
  };
  if (std::ranges::any_of(kFolderWords, is_named_or_typed)) {
    print_directive(kCompleteFolders);
  } else if (std::ranges::any_of(kFileWords, is_named_or_typed)) {
    print_directive(kCompleteFiles);
  }
}

/// Returns the argument that the next word is, or null if the command takes no more words.
const CLI::Option* next_positional(const Position& at) {
  size_t index = 0;
  const CLI::Option* last = nullptr;
  for (const CLI::Option* option : at.command->get_options()) {
    if (!option->get_positional()) continue;
    if (index++ == at.positional_count) return option;
    last = option;
  }
  return last != nullptr && last->get_items_expected_max() > 1 ? last : nullptr;
}

/// Returns the path with the home folder in place of "~", which the shell has not replaced yet.
std::string expanded(const std::string& path) {
  const char* home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

void note_choice(Position& at, const CLI::Option& option, const std::string& value) {
  const std::string name = argument_name(option);
  if (name == "--cluster") at.choice.name = value;
  if (name == "--config") at.choice.config_file = expanded(value);
}

/// Takes one of the words before the completed one.
void take_word(Position& at, const std::string& word) {
  // bash gives "--type=array" as three words.
  if (word == "=") return;
  if (at.awaits != nullptr) {
    note_choice(at, *std::exchange(at.awaits, nullptr), word);
    return;
  }
  if (word.starts_with("-")) {
    const size_t equals = word.find('=');
    const CLI::Option* option = at.command->get_option_no_throw(word.substr(0, equals));
    if (option == nullptr || option->get_items_expected_max() == 0) return;
    if (equals == std::string::npos) {
      at.awaits = option;
    } else {
      note_choice(at, *option, word.substr(equals + 1));
    }
    return;
  }
  const auto below = at.command->get_subcommands(
      [&](const CLI::App* command) { return command->get_name() == word; });
  if (at.positional_count == 0 && !below.empty()) {
    at.command = below.front();
    at.path += (at.path.empty() ? "" : " ") + word;
  } else {
    ++at.positional_count;
  }
}

void print_options(const Position& at, const std::string& prefix) {
  for (const std::string& name : option_names(*at.command)) {
    const CLI::Option* option = at.command->get_option_no_throw(name);
    print_candidate(name, prefix, option == nullptr ? "" : option->get_description());
  }
}

}  // namespace

void print_completions(const CLI::App& app, std::span<const std::string> words) {
  if (words.empty()) return;
  Position at{&app, ""};
  for (const std::string& word : words.first(words.size() - 1)) take_word(at, word);
  const std::string prefix = words.back() == "=" ? "" : words.back();
  if (at.awaits != nullptr) {
    print_values(at, *at.awaits, prefix);
  } else if (prefix.starts_with("-")) {
    print_options(at, prefix);
  } else {
    if (at.positional_count == 0) {
      for (const CLI::App* below :
           at.command->get_subcommands([](const CLI::App*) { return true; })) {
        print_candidate(below->get_name(), prefix, below->get_description());
      }
    }
    if (const CLI::Option* option = next_positional(at)) print_values(at, *option, prefix);
  }
}

}  // namespace atolldb::cli
