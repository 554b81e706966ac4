// The tests of random_history_test.cpp with tiny pages and fan-outs: constant splits, adoptions,
// new layers and merges.
#include "tests/engine/serializability/random_history_test.cpp"
