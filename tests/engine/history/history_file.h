// A history as a stream of words: how child processes hand theirs to the parent.
#pragma once

#include "tests/engine/history/history.h"

namespace atolldb::test {

/// Appends the history to the file; false when it cannot be written.
bool write_history(int fd, const History& history);
/// Reads the whole file and appends what it holds to `history`.
bool read_history(int fd, History& history);

}  // namespace atolldb::test
