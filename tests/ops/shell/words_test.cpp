// The words of a line of the shell.
#include "ops/shell/words.h"

#include <gtest/gtest.h>

namespace atolldb::shell {
namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view line) {
  const auto words = split_words(line);
  return words ? *words : Words{"error: " + words.error()};
}

TEST(Words, BlanksSeparateWordsAndQuotesJoinThem) {
  EXPECT_EQ(words_of(""), Words());
  EXPECT_EQ(words_of(" \t "), Words());
  EXPECT_EQ(words_of("put  t k\tv "), (Words{"put", "t", "k", "v"}));
  EXPECT_EQ(words_of("put t 'a b' \"c d\""), (Words{"put", "t", "a b", "c d"}));
  EXPECT_EQ(words_of("a'b c'd"), (Words{"ab cd"}));
  EXPECT_EQ(words_of("put t '' \"\""), (Words{"put", "t", "", ""}));
  EXPECT_EQ(words_of("'{\"a\": \"x\"}'"), (Words{"{\"a\": \"x\"}"}));
  EXPECT_EQ(words_of("\"a\\\"b\""), (Words{"a\"b"}));
}

TEST(Words, OtherBackslashesRemainForTheFormats) {
  EXPECT_EQ(words_of("a\\x00 'b\\n' \"c\\t\""), (Words{"a\\x00", "b\\n", "c\\t"}));
}

TEST(Words, ACommentBeginsOnlyAtTheStartOfAWord) {
  EXPECT_EQ(words_of("# all"), Words());
  EXPECT_EQ(words_of("get t k # why"), (Words{"get", "t", "k"}));
  EXPECT_EQ(words_of("get t k#1 '#2'"), (Words{"get", "t", "k#1", "#2"}));
}

TEST(Words, AnOpenQuoteIsAnError) {
  EXPECT_EQ(words_of("put t 'a"), (Words{"error: the quote ' is not closed"}));
  EXPECT_EQ(words_of("put t \"a'"), (Words{"error: the quote \" is not closed"}));
}

TEST(Words, TheWordAtTheCursorMayBeEmptyOrOpen) {
  EXPECT_EQ(words_before_cursor(""), (Words{""}));
  EXPECT_EQ(words_before_cursor("ge"), (Words{"ge"}));
  EXPECT_EQ(words_before_cursor("get "), (Words{"get", ""}));
  EXPECT_EQ(words_before_cursor("get 'acc"), (Words{"get", "acc"}));
}

}  // namespace
}  // namespace atolldb::shell
