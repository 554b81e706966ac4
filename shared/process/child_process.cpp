#include "shared/process/child_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string_view>
#include <thread>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/process/line_channel.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

Result<Handover> take_handover(int argc, char** argv) {
  ATOLL_TRY(check_processor());
  return_large_blocks();
  int fd = -1;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) != "--handover") continue;
    const std::string_view number = argv[i + 1];
    std::from_chars(number.data(), number.data() + number.size(), fd);
  }
  if (fd < 0) {
    return make_error(
        ExitCode::usage,
        std::string(argc > 0 ? argv[0] : "process") +
            ": only the launcher starts this program: start clusters with `atoll up`");
  }
  Result<Handover> handover = read_handover(fd);
  close(fd);
  if (!handover) return handover;
  if (!die_with_parent(handover->launcher_pid)) {
    return make_error(ExitCode::failed,
                      handover->role + ": the launcher has died: start the cluster again");
  }
  return handover;
}

Result<ChildContext> make_context(int argc, char** argv) {
  ATOLL_ASSIGN(Handover handover, take_handover(argc, argv));
  auto config = parse_config(handover.config_text, "handover", Machine::detect());
  if (!config) {
    return make_error(ExitCode::config, "the launcher's config: " + to_string(config.error()));
  }
  // Logs to standard error, which is the log file of a child process.
  Logger logger = make_stderr_logger(handover.role, config->log.level);
  return ChildContext{std::move(handover), *std::move(config), std::move(logger)};
}

/// State of the control loop. Steps run one at a time on a thread of their own, so that a long step
/// does not stop the heartbeat.
class ChildLoop {
 public:
  ChildLoop(const Handover& handover, Logger logger, ChildSteps steps)
      : channel_(handover.channel_fd),
        reader_(channel_),
        logger_(std::move(logger)),
        steps_(std::move(steps)),
        done_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        timer_fd_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
        open_errno_(errno) {}

  ~ChildLoop() {
    if (step_.joinable()) step_.join();
  }

  ExitCode run(std::chrono::milliseconds heartbeat) {
    // The loop needs both descriptors, to wake up for heartbeats and at the end of a step.
    if (!done_fd_.is_open() || !timer_fd_.is_open()) {
      return fail({ExitCode::resources, "control loop: eventfd or timerfd_create: " +
                                            std::string(std::strerror(open_errno_)) +
                                            ": raise `ulimit -n`"});
    }
    CHECK(heartbeat.count() > 0);  // 0 would stop the timer
    CHECK(steps_.prepare && steps_.attach && steps_.start);
    CHECK(steps_.open && steps_.drain && steps_.stop);
    const auto ns = std::chrono::nanoseconds(heartbeat).count();
    itimerspec period{};
    period.it_interval = {ns / 1'000'000'000, ns % 1'000'000'000};
    period.it_value = period.it_interval;
    // The call fails only for an invalid descriptor or period.
    CHECK(timerfd_settime(timer_fd_.get(), 0, &period, nullptr) == 0);
    pending_.push_back("PREPARE");
    while (!finished_) {
      begin_next_step();
      std::array<pollfd, 3> fds = {pollfd{channel_, POLLIN, 0}, pollfd{done_fd_.get(), POLLIN, 0},
                                   pollfd{timer_fd_.get(), POLLIN, 0}};
      if (poll(fds.data(), fds.size(), -1) < 0) continue;  // interrupted by a signal
      if (fds[2].revents != 0) beat();
      if (fds[1].revents != 0) end_step();
      if (fds[0].revents != 0) receive();
    }
    return code_;
  }

 private:
  ExitCode fail(const Error& error) {
    logger_->critical("{}", error.message);
    LauncherLink(channel_).report_failure(error);
    return error.code;
  }

  void beat() {
    uint64_t ticks = 0;
    [[maybe_unused]] const ssize_t got = read(timer_fd_.get(), &ticks, sizeof(ticks));
    if (!steps_.beat || steps_.beat()) send_line(channel_, "heartbeat");
  }

  void receive() {
    for (std::string& line : reader_.read()) pending_.push_back(std::move(line));
    if (!reader_.is_closed()) return;
    // The launcher has closed the channel, but still runs. If it had died, the kernel would have
    // killed this process.
    logger_->error("the launcher has closed the channel: ending");
    code_ = ExitCode::failed;
    finished_ = true;
  }

  void begin_next_step() {
    if (step_.joinable() || pending_.empty()) return;
    const std::string line = std::move(pending_.front());
    pending_.pop_front();
    CHECK(!finished_);
    step_ = std::thread([this, line] {
      const auto began = std::chrono::steady_clock::now();
      outcome_ = run_step(line);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
      logger_->info("step {}: {:.3f} s", line.substr(0, line.find(' ')), took.count());
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t put = write(done_fd_.get(), &one, sizeof(one));
    });
  }

  struct Outcome {
    Result<std::string> answer;
    bool is_last = false;
  };

  Outcome run_step(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string command = line.substr(0, space);
    const std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
    const auto answer = [](const Result<void>& result, const char* text) -> Result<std::string> {
      if (!result) return std::unexpected(result.error());
      return text;
    };
    if (command == "PREPARE") return {answer(steps_.prepare(), "prepared")};
    if (command == "ATTACH") return {answer(steps_.attach(), "attached")};
    if (command == "START") {
      Result<std::string> text = steps_.start();
      if (text) text->insert(0, "running ");
      return {std::move(text)};
    }
    if (command == "OPEN") return {answer(steps_.open(argument), "opened")};
    if (command == "DRAIN") {
      steps_.drain();
      return {"drained"};
    }
    if (command == "STOP") {
      steps_.stop();
      return {"stopped", true};
    }
    return {make_error(ExitCode::failed, "launcher's command \"" + command +
                                             "\": unknown: use programs of one build")};
  }

  void end_step() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(done_fd_.get(), &count, sizeof(count));
    CHECK(step_.joinable());
    step_.join();
    if (outcome_.answer) {
      logger_->debug("{}", *outcome_.answer);
      send_line(channel_, *outcome_.answer);
      if (!outcome_.is_last) return;
    } else {
      CHECK(!outcome_.is_last);
      code_ = fail(outcome_.answer.error());
    }
    finished_ = true;
  }

  int channel_;
  LineReader reader_;
  Logger logger_;
  ChildSteps steps_;
  UniqueFd done_fd_;
  UniqueFd timer_fd_;
  const int open_errno_;  // errno of the last descriptor that could not be opened
  std::deque<std::string> pending_;
  std::thread step_;
  Outcome outcome_;  // written by the step's thread, read after joining it
  ExitCode code_ = ExitCode::success;
  bool finished_ = false;
};

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

bool LauncherLink::send(const std::string& line) const { return send_line(fd_, line); }

bool LauncherLink::report_failure(const Error& error) const {
  return send("failed: " + std::to_string(static_cast<int>(error.code)) + " " + error.message);
}

ExitCode run_child(const Handover& handover, std::chrono::milliseconds heartbeat, Logger logger,
                   ChildSteps steps) {
  return ChildLoop(handover, std::move(logger), std::move(steps)).run(heartbeat);
}

Result<void> ChildServices::start(const Config& config, const std::string& control_endpoint,
                                  ControlHandler handler, size_t max_request_bytes,
                                  uint32_t port_offset,
                                  std::shared_ptr<prometheus::Collectable> collectable) {
  CHECK(server_ == nullptr && exposer_ == nullptr);
  CHECK(handler != nullptr);
  CHECK(port_offset <= kMaxNodes);
  ATOLL_ASSIGN(auto server,
               ControlServer::start(control_endpoint, std::move(handler), max_request_bytes));
  server_ = std::move(server);
  return config.metrics.enabled ? start_metrics(config, port_offset, collectable) : Result<void>();
}

Result<void> ChildServices::start_metrics(
    const Config& config, uint32_t port_offset,
    const std::shared_ptr<prometheus::Collectable>& collectable) {
  const Config::Metrics& metrics = config.metrics;
  const uint16_t port = metrics_port(metrics.base_port, port_offset);
  auto exposer = MetricsExposer::start(metrics.listen, port, collectable);
  if (!exposer && port != 0 && metrics.on_taken_port == TakenPort::move) {
    exposer = MetricsExposer::start(metrics.listen, 0, collectable);
    if (exposer) {
      logger_->warn("metrics.base_port: cannot listen on {}: metrics are on {} instead",
                    MetricsExposer::endpoint_text(metrics.listen, port), (*exposer)->endpoint());
    }
  }
  if (!exposer) return std::unexpected(exposer.error());
  exposer_ = *std::move(exposer);
  return {};
}

void ChildServices::stop() {
  server_.reset();
  exposer_.reset();
}

Json ChildServices::endpoints() const {
  CHECK(server_ != nullptr);
  return {{"metrics", exposer_ ? exposer_->endpoint() : ""}};
}

}  // namespace atolldb
