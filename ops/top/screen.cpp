#include "ops/top/screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

// Without the macros of ncurses, which have common names. The functions have the same names.
#define NCURSES_NOMACROS 1
#include <ncurses.h>

#include <cerrno>
#include <clocale>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "ops/cli/terminal.h"
#include "ops/top/view.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/base/unique_fd.h"
#include "shared/process/start_up.h"

namespace atolldb::top {
namespace {

std::string clock_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[16];
  return std::strftime(text, sizeof(text), "%H:%M:%S", &local) == 0 ? "" : text;
}

/// Takes a sample per interval in a thread, so that keys work while the cluster does not answer.
class Feed {
 public:
  Feed(Sampler& sampler, std::chrono::milliseconds interval)
      : sampler_(sampler),
        interval_(interval),
        news_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  int fd() const { return news_.get(); }
  /// Returns the newest sample, if it has not been taken yet.
  std::optional<Result<Sample>> take() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(news_.get(), &count, sizeof(count));
    const std::lock_guard guard(mutex_);
    return std::exchange(newest_, std::nullopt);
  }

 private:
  void run(const std::stop_token& stop) {
    // Signals, as that of Ctrl-Z, belong to the thread of the terminal.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    auto due = std::chrono::steady_clock::now();
    while (!stop.stop_requested()) {
      Result<Sample> sample = sampler_.take();
      const bool has_ended = !sample.has_value();
      std::unique_lock lock(mutex_);
      newest_ = std::move(sample);
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t put = write(news_.get(), &one, sizeof(one));
      if (has_ended) return;
      due = std::max(due + interval_, std::chrono::steady_clock::now());
      wake_.wait_until(lock, stop, due, [] { return false; });
    }
  }

  Sampler& sampler_;
  const std::chrono::milliseconds interval_;
  const UniqueFd news_;  // readable while there is a new sample
  std::mutex mutex_;
  std::optional<Result<Sample>> newest_;  // guarded by mutex_
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses all other members
};

/// The terminal in the mode of ncurses. The destructor restores it.
class Terminal {
 public:
  /// Returns nothing if ncurses does not know the type of the terminal.
  static std::optional<Terminal> open() {
    std::setlocale(LC_ALL, "");
    SCREEN* screen = newterm(nullptr, stdout, stdin);
    if (screen == nullptr) return std::nullopt;
    set_term(screen);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, true);
    nodelay(stdscr, true);
    set_escdelay(kEscapeDelayMs);
    curs_set(0);
    std::optional<Terminal> terminal(Terminal{screen});
    if (cli::use_colour() && has_colors()) {
      start_color();
      use_default_colors();
      init_pair(kProblemPair, COLOR_RED, -1);
      init_pair(kHeadingPair, COLOR_CYAN, -1);
      terminal->has_colours_ = true;
    }
    return terminal;
  }
  Terminal(Terminal&& other) noexcept
      : screen_(std::exchange(other.screen_, nullptr)), has_colours_(other.has_colours_) {}
  Terminal& operator=(Terminal&&) = delete;
  ~Terminal() {
    if (screen_ == nullptr) return;
    endwin();
    delscreen(screen_);
  }

  /// Takes over the size that the terminal has now.
  void resize() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
      resizeterm(size.ws_row, size.ws_col);
    }
    clear();
  }
  Size size() const {
    return {static_cast<size_t>(std::max(1, getmaxx(stdscr))),
            static_cast<size_t>(std::max(1, getmaxy(stdscr)))};
  }
  void draw(const std::vector<Line>& lines) {
    erase();
    for (size_t i = 0; i < lines.size(); ++i) {
      const attr_t attributes = attributes_of(lines[i].kind);
      attron(static_cast<int>(attributes));
      mvaddnstr(static_cast<int>(i), 0, lines[i].text.c_str(),
                static_cast<int>(lines[i].text.size()));
      attroff(static_cast<int>(attributes));
    }
    refresh();
  }

 private:
  static constexpr int kEscapeDelayMs = 25;
  static constexpr short kProblemPair = 1;
  static constexpr short kHeadingPair = 2;

  explicit Terminal(SCREEN* screen) : screen_(screen) {}

  attr_t attributes_of(LineKind kind) const {
    const auto colour = [&](short pair) {
      return has_colours_ ? static_cast<attr_t>(COLOR_PAIR(pair)) : attr_t{0};
    };
    switch (kind) {
      case LineKind::plain:
        return A_NORMAL;
      case LineKind::title:
        return A_BOLD;
      case LineKind::heading:
        return A_BOLD | colour(kHeadingPair);
      case LineKind::problem:
        return A_BOLD | colour(kProblemPair);
      case LineKind::footer:
        return A_REVERSE;
    }
    return A_NORMAL;
  }

  SCREEN* screen_;
  bool has_colours_ = false;
};

Key key_of(int code) {
  switch (code) {
    case 'q':
    case 'Q':
    case 3:  // Ctrl-C, if the terminal sends no signal for it
      return Key::quit;
    case 'h':
    case '?':
      return Key::help;
    case 'p':
    case ' ':
      return Key::pause;
    case '\t':
      return Key::next_rows;
    case '1':
      return Key::procedures;
    case '2':
      return Key::storages;
    case '3':
      return Key::nodes;
    case '4':
      return Key::sessions;
    case '<':
    case ',':
    case KEY_LEFT:
      return Key::sort_left;
    case '>':
    case '.':
    case KEY_RIGHT:
      return Key::sort_right;
    case 'r':
      return Key::reverse;
    case KEY_UP:
    case 'k':
      return Key::up;
    case KEY_DOWN:
    case 'j':
      return Key::down;
    case KEY_PPAGE:
      return Key::page_up;
    case KEY_NPAGE:
      return Key::page_down;
    case KEY_HOME:
      return Key::home;
    default:
      return Key::none;
  }
}

/// The screen with its state between events.
class Screen {
 public:
  Screen(Feed& feed, Terminal& terminal, int signals)
      : feed_(feed), terminal_(terminal), signals_(signals) {}

  /// Returns when the user quits, or the terminal or the cluster has ended.
  Result<void> run() {
    draw();
    while (true) {
      pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}, {feed_.fd(), POLLIN, 0}};
      if (poll(fds, std::size(fds), -1) < 0) {
        if (errno == EINTR) {  // continued after Ctrl-Z
          terminal_.resize();
          draw();
        }
        continue;
      }
      if (fds[1].revents != 0 && is_end(read_signal())) return {};
      if (fds[2].revents != 0) {
        ATOLL_TRY(take_sample());
      }
      if (fds[0].revents != 0 && !take_keys()) return {};
      draw();
    }
  }

 private:
  int read_signal() const {
    signalfd_siginfo signal{};
    const bool is_read = read(signals_, &signal, sizeof(signal)) == sizeof(signal);
    return is_read ? static_cast<int>(signal.ssi_signo) : 0;
  }
  bool is_end(int signal) {
    if (signal == SIGWINCH) terminal_.resize();
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
  }
  Result<void> take_sample() {
    std::optional<Result<Sample>> sample = feed_.take();
    if (!sample) return {};
    ATOLL_TRY(*sample);
    before_ = std::exchange(after_, **std::move(sample));
    // A paused screen shows the same figures. Samples go on, so that the next rates are recent.
    if (view_.is_paused) return {};
    figures_ = figures_between(before_, after_);
    clock_ = clock_text();
    return {};
  }
  /// Returns false if the user quits or the terminal has ended.
  bool take_keys() {
    bool has_key = false;
    for (int code = getch(); code != ERR; code = getch()) {
      has_key = true;
      const Key key = key_of(code);
      if (key == Key::quit) return false;
      apply_key(view_, key, table_of(figures_, view_.rows).rows.size(),
                std::max<size_t>(1, terminal_.size().height / 2));
    }
    return has_key;  // readable without a key: the end of the input
  }
  void draw() {
    const bool has_sample = after_.time_ns != 0;
    if (!has_sample) figures_.note = "waiting for the cluster";
    terminal_.draw(render(figures_, view_, terminal_.size(), clock_));
  }

  Feed& feed_;
  Terminal& terminal_;
  const int signals_;
  View view_;
  Sample before_;
  Sample after_;
  Figures figures_;
  std::string clock_;
};

}  // namespace

Result<void> run_screen(Sampler& sampler, std::chrono::milliseconds interval) {
  ATOLL_ASSIGN(const UniqueFd signals, receive_signals({SIGINT, SIGTERM, SIGHUP, SIGWINCH}));
  Feed feed(sampler, interval);
  std::optional<Terminal> terminal = Terminal::open();
  if (!terminal) {
    const char* type = std::getenv("TERM");
    return make_error(ExitCode::usage, std::string("top: TERM=\"") + (type == nullptr ? "" : type) +
                                           "\": is no terminal that ncurses knows: set TERM, or "
                                           "use --batch or --json");
  }
  // The terminal is restored before the thread of the feed is joined, which may take a request's
  // time limit.
  Result<void> ended = Screen(feed, *terminal, signals.get()).run();
  terminal.reset();
  return ended;
}

}  // namespace atolldb::top
