#include "ops/shell/words.h"

#include <utility>

namespace atolldb::shell {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

struct Split {
  std::vector<std::string> words;
  bool is_in_word = false;  // the line ends within its last word
  char open_quote = '\0';   // the quote that is not closed
};

Split split(std::string_view line) {
  Split done;
  std::string word;
  char quote = '\0';
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else if (quote == '"' && c == '\\' && i + 1 < line.size() && line[i + 1] == '"') {
        word += line[++i];
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      done.is_in_word = true;
    } else if (kBlanks.contains(c)) {
      if (done.is_in_word) done.words.push_back(std::exchange(word, {}));
      done.is_in_word = false;
    } else if (c == '#' && !done.is_in_word) {
      break;
    } else {
      word += c;
      done.is_in_word = true;
    }
  }
  if (done.is_in_word) done.words.push_back(std::move(word));
  done.open_quote = quote;
  return done;
}

}  // namespace

std::expected<std::vector<std::string>, std::string> split_words(std::string_view line) {
  Split done = split(line);
  if (done.open_quote != '\0') {
    return std::unexpected(std::string("the quote ") + done.open_quote + " is not closed");
  }
  return std::move(done.words);
}

std::vector<std::string> words_before_cursor(std::string_view line) {
  Split done = split(line);
  if (!done.is_in_word) done.words.emplace_back();
  return std::move(done.words);
}

}  // namespace atolldb::shell
