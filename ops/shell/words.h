// Divides a line of the shell into words.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace atolldb::shell {

/// Blanks separate words. Text in '...' or "..." is one word or a part of one; in "..." a \" is a
/// quote. All other backslashes remain, because the formats of keys and values interpret them. A #
/// at the start of a word begins a comment. Returns an error if a quote is not closed.
std::expected<std::vector<std::string>, std::string> split_words(std::string_view line);

/// Returns the word that the cursor at the end of `line` is in, and the words before it. The last
/// word is empty after a blank. An open quote is no error here.
std::vector<std::string> words_before_cursor(std::string_view line);

}  // namespace atolldb::shell
