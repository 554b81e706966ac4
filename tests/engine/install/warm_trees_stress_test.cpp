// The tests of warm_trees_test.cpp with tiny pages: many levels, many splits.
#include "tests/engine/install/warm_trees_test.cpp"
