#include "coordinator/web/status_page.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <charconv>
#include <condition_variable>
#include <cstdint>
#include <utility>

#include "shared/base/check.h"
#include "shared/memory/state_names.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

constexpr const char* kJsonType = "application/json";
/// Place of the nonce in status_page.html.
constexpr std::string_view kNonceMark = "NONCE";

std::string to_text(const nlohmann::json& json) {
  // Texts of the operating system may be no UTF-8. `replace` makes them valid instead of throwing.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Returns the number in the query "since=<number>", or 0.
uint64_t since_in(std::string_view query) {
  constexpr std::string_view kSince = "since=";
  if (!query.starts_with(kSince)) return 0;
  query.remove_prefix(kSince.size());
  uint64_t since = 0;
  const auto [end, error] = std::from_chars(query.data(), query.data() + query.size(), since);
  return error == std::errc{} && end == query.data() + query.size() ? since : 0;
}

std::string random_nonce() {
  std::array<uint64_t, 2> number{};
  while (getrandom(number.data(), sizeof(number), 0) != sizeof(number)) {
  }
  return fmt::format("{:016x}{:016x}", number[0], number[1]);
}

/// Returns the page. Its nonce is another one in each answer. A browser runs only scripts with the
/// nonce of the answer, so text that gets into the page is never run.
HttpAnswer page_answer() {
  const std::string nonce = random_nonce();
  std::string html(status_page_html());
  for (size_t at = 0; (at = html.find(kNonceMark, at)) != std::string::npos; at += nonce.size()) {
    html.replace(at, kNonceMark.size(), nonce);
  }
  return {.type = "text/html; charset=utf-8",
          .body = std::make_shared<const std::string>(std::move(html)),
          .policy = fmt::format("default-src 'none'; script-src 'nonce-{}'; style-src 'nonce-{}'; "
                                "connect-src 'self'; img-src data:; base-uri 'none'; "
                                "form-action 'none'; frame-ancestors 'none'",
                                nonce, nonce)};
}

HttpAnswer plain_answer(int status, const std::string& text) {
  return {.status = status, .body = std::make_shared<const std::string>(text + "\n")};
}

}  // namespace

CachedText::Text CachedText::get() {
  const std::lock_guard guard(mutex_);
  if (text_ == nullptr || std::chrono::steady_clock::now() - made_at_ >= max_age_) {
    text_ = std::make_shared<const std::string>(make_());
    made_at_ = std::chrono::steady_clock::now();
  }
  return text_;
}

Result<std::unique_ptr<StatusPage>> StatusPage::start(const Config::StatusPage& config,
                                                      StatusPageSources sources) {
  CHECK(config.enabled);
  CHECK(sources.status && sources.counts && sources.state);
  auto page = std::unique_ptr<StatusPage>(new StatusPage(std::move(sources)));
  auto server =
      StatusServer::start(config.listen, config.port,
                          [page = page.get()](std::string_view path, std::string_view query) {
                            return page->get(path, query);
                          });
  if (!server) return std::unexpected(server.error());
  page->server_ = *std::move(server);
  page->sampler_ =
      std::jthread([page = page.get()](const std::stop_token& stop) { page->sample(stop); });
  return page;
}

StatusPage::StatusPage(StatusPageSources sources)
    : sources_(std::move(sources)),
      status_(kMaxAge, [this] { return to_text(sources_.status()); }),
      full_history_(kMaxAge, [this] { return to_text(history_.json(0)); }) {}

HttpAnswer StatusPage::get(std::string_view path, std::string_view query) {
  if (path == "/") return page_answer();
  if (path == "/status.json") return {.type = kJsonType, .body = status_.get()};
  if (path == "/history.json") {
    const uint64_t since = since_in(query);
    if (since == 0) return {.type = kJsonType, .body = full_history_.get()};
    return {.type = kJsonType,
            .body = std::make_shared<const std::string>(to_text(history_.json(since)))};
  }
  if (path == "/healthz") return plain_answer(200, "ok");
  if (path == "/readyz") return readiness();
  return plain_answer(404, "there is no such page: / is the status page");
}

HttpAnswer StatusPage::readiness() const {
  const ClusterState state = sources_.state();
  return plain_answer(state == ClusterState::running ? 200 : 503, std::string(to_string(state)));
}

void StatusPage::sample(const std::stop_token& stop) {
  name_thread("status-history");
  std::mutex mutex;  // guards nothing: the wait needs one
  std::unique_lock lock(mutex);
  std::condition_variable_any never;
  auto next = std::chrono::steady_clock::now();
  while (!stop.stop_requested()) {
    history_.add(sources_.counts());
    // A process that was suspended skips the periods that have passed.
    next = std::max(next, std::chrono::steady_clock::now() - StatusHistory::kPeriod) +
           StatusHistory::kPeriod;
    never.wait_until(lock, stop, next, [] { return false; });
  }
}

}  // namespace atolldb
