#include "ops/demo/demo_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ops/cli/terminal.h"

namespace atolldb::demo {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kCommandColumns = 55;

struct Suggestion {
  const char* command;
  const char* what;
};
constexpr Suggestion kSuggestions[] = {
    {"top", "rates and latencies"},
    {"status", "health, nodes, logs"},
    {"kv get accounts account-042 --value-format i64", "a balance"},
    {"kv scan transfers --limit 3", "transfers, as JSON"},
    {"shell", "begin, get, put, help"},
    {"session ls", "who is connected"},
    {"snapshot take", "a snapshot meanwhile"},
};

/// Returns "  atoll top   what it shows". The explanation is left out if it does not fit.
std::string suggestion_line(const Place& place, const std::string& program,
                            const Suggestion& suggestion) {
  std::string line = fmt::format("  {} {}", program, suggestion.command);
  if (place.needs_name) line += " --cluster " + place.cluster;
  const std::string with_what = fmt::format("{:<{}}  {}", line, kCommandColumns, suggestion.what);
  return (with_what.size() <= kColumns ? with_what : line) + "\n";
}

}  // namespace

std::string introduction(const Place& place) {
  std::string text =
      fmt::format("cluster \"{}\" runs: {} nodes, {} durable transfers/s between 500 accounts\n\n",
                  place.cluster, place.nodes, cli::format_count(place.per_second));
  if (!place.status_page.empty()) text += fmt::format("  status page  {}\n", place.status_page);
  if (!place.metrics.empty())
    text += fmt::format("  metrics      http://{}/metrics\n", place.metrics);
  text += fmt::format("  files        {}{}\n", place.folder,
                      place.keeps_folder ? "" : " (removed at the end)");
  text += "\nTry in another terminal:\n";
  // A long path would hide the commands.
  const bool is_path = place.program.contains('/');
  if (is_path) text += fmt::format("  alias atoll={}\n", place.program);
  for (const Suggestion& suggestion : kSuggestions) {
    text += suggestion_line(place, "atoll", suggestion);
  }
  if (!place.metrics.empty()) {
    text += fmt::format("  curl -s http://{}/metrics\n", place.metrics);
  }
  return text + "\nCtrl-C ends the demo.\n";
}

nlohmann::json introduction_json(const Place& place) {
  nlohmann::json json = {{"schema_version", 1},
                         {"event", "running"},
                         {"cluster", place.cluster},
                         {"nodes", place.nodes},
                         {"transfers_per_second", place.per_second},
                         {"folder", place.folder},
                         {"keeps_folder", place.keeps_folder}};
  if (!place.status_page.empty()) json["status_page"] = place.status_page;
  if (!place.metrics.empty()) json["metrics"] = "http://" + place.metrics + "/metrics";
  return json;
}

std::string progress_line(const Progress& progress, const std::string& sum) {
  return fmt::format(
      "{} transfers, {}/s, sum of all balances: {}{}", cli::format_count(progress.transfers),
      cli::format_count(static_cast<uint64_t>(progress.per_second + 0.5)), sum,
      progress.failures == 0 ? ""
                             : fmt::format(", {} failed", cli::format_count(progress.failures)));
}

nlohmann::json result_json(const Progress& progress, double seconds, std::optional<int64_t> sum,
                           int64_t expected_sum) {
  nlohmann::json json = {{"schema_version", 1},
                         {"event", "ended"},
                         {"transfers", progress.transfers},
                         {"failures", progress.failures},
                         {"seconds", seconds},
                         {"expected_sum", expected_sum},
                         {"sum", nullptr}};
  if (sum) json["sum"] = *sum;
  return json;
}

}  // namespace atolldb::demo
