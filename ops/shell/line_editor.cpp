#include "ops/shell/line_editor.h"

#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <ctime>
#include <cwchar>
#include <utility>

#include "ops/shell/words.h"
#include "shared/base/check.h"

namespace atolldb::shell {
namespace {

/// Interrupts a wait for the terminal. Without a handler, Ctrl-C would end the shell.
void ignore_interrupt(int) {}

/// The signals that are blocked while the shell waits for the terminal. SIGINT is blocked at all
/// other times, so that no Ctrl-C is lost between two waits.
sigset_t blocked_in_wait;

/// Reads a character for libedit. libedit's own function continues after the first interrupt, so
/// that Ctrl-C would have no effect. Returns 1, 0 at the end, or -1 after an error or interrupt.
int read_character(EditLine*, wchar_t* character) {
  std::mbstate_t state{};
  for (;;) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (ppoll(&input, 1, nullptr, &blocked_in_wait) < 0) return -1;
    char byte = 0;
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got <= 0) return static_cast<int>(got);
    const size_t bytes = std::mbrtowc(character, &byte, 1, &state);
    if (bytes == 0 || bytes == 1) return 1;
    // Invalid bytes are skipped. Otherwise the character has more bytes.
    if (bytes == static_cast<size_t>(-1)) state = {};
  }
}

/// Makes characters of UTF-8 known to libedit, also in an environment without a locale.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

struct LineEditor::State {
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event{};
  std::string history_file;
  std::string prompt;
  Complete complete;
  struct sigaction old_interrupt{};
  sigset_t old_blocked{};

  static State& of(EditLine* editor) {
    void* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    CHECK(state != nullptr);
    return *static_cast<State*>(state);
  }
  static char* prompt_of(EditLine* editor) { return of(editor).prompt.data(); }

  static unsigned char complete_word(EditLine* editor, int) {
    State& state = of(editor);
    const LineInfo* info = el_line(editor);
    const std::string_view before(info->buffer, static_cast<size_t>(info->cursor - info->buffer));
    const std::string word = words_before_cursor(before).back();
    std::vector<std::string> words = state.complete(before);
    std::erase_if(words, [&](const std::string& each) { return !each.starts_with(word); });
    if (words.empty()) return CC_ERROR;
    std::string more = common_prefix(words).substr(word.size());
    if (words.size() == 1) more += ' ';
    if (!more.empty()) {
      el_insertstr(editor, more.c_str());
      return CC_REFRESH;
    }
    std::string list = "\n";
    for (const std::string& each : words) list += each + "  ";
    std::fprintf(stdout, "%s\n", list.c_str());
    std::fflush(stdout);
    return CC_REDISPLAY;
  }
};

std::string common_prefix(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  std::string prefix = words.front();
  for (const std::string& word : words) {
    const auto differs = std::ranges::mismatch(prefix, word);
    prefix.erase(differs.in1, prefix.end());
  }
  return prefix;
}

LineEditor::LineEditor(std::string history_file, Complete complete)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.history_file = std::move(history_file);
  state.complete = std::move(complete);
  use_utf8();
  state.editor = el_init("atoll", stdin, stdout, stderr);
  state.history = history_init();
  CHECK(state.editor != nullptr && state.history != nullptr);
  el_set(state.editor, EL_CLIENTDATA, &state);
  el_set(state.editor, EL_PROMPT, &State::prompt_of);
  el_set(state.editor, EL_GETCFN, &read_character);
  el_set(state.editor, EL_EDITOR, "emacs");
  history(state.history, &state.event, H_SETSIZE, kHistoryLines);
  history(state.history, &state.event, H_SETUNIQUE, 1);
  el_set(state.editor, EL_HIST, history, state.history);
  el_set(state.editor, EL_ADDFN, "atoll-complete", "Complete a word", &State::complete_word);
  el_set(state.editor, EL_BIND, "^I", "atoll-complete", nullptr);
  el_set(state.editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_source(state.editor, nullptr);  // ~/.editrc of the user
  if (!state.history_file.empty()) {
    // Values may be secret, so only the user may read the file.
    const int file = open(state.history_file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) close(file);
    history(state.history, &state.event, H_LOAD, state.history_file.c_str());
  }
  struct sigaction action{};
  action.sa_handler = ignore_interrupt;
  sigaction(SIGINT, &action, &state.old_interrupt);
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &state.old_blocked);
  blocked_in_wait = state.old_blocked;
  sigdelset(&blocked_in_wait, SIGINT);
}

LineEditor::~LineEditor() {
  sigaction(SIGINT, &state_->old_interrupt, nullptr);
  pthread_sigmask(SIG_SETMASK, &state_->old_blocked, nullptr);
  history_end(state_->history);
  el_end(state_->editor);
}

bool LineEditor::take_interrupt() {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  constexpr timespec kNow{};
  return sigtimedwait(&interrupt, nullptr, &kNow) == SIGINT;  // blocked, see blocked_in_wait
}

LineEditor::Read LineEditor::read(const std::string& prompt, std::string& line) {
  state_->prompt = prompt;
  el_resize(state_->editor);  // the size of the window may have changed
  int length = 0;
  errno = 0;
  const char* text = el_gets(state_->editor, &length);
  if (text == nullptr || length <= 0) {
    if (length < 0 && errno == EINTR) {
      el_reset(state_->editor);
      return Read::interrupted;
    }
    return Read::end;
  }
  line.assign(text, static_cast<size_t>(length));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return Read::line;
}

void LineEditor::remember(const std::string& line) {
  history(state_->history, &state_->event, H_ENTER, line.c_str());
  if (!state_->history_file.empty()) {
    history(state_->history, &state_->event, H_SAVE, state_->history_file.c_str());
  }
}

}  // namespace atolldb::shell
