// The tests of replay_test.cpp with tiny pages: many levels, layers and splits.
#include "tests/engine/checkpoint/replay_test.cpp"
