// The tests of delta_test.cpp with tiny pages: many levels, many splits.
#include "tests/engine/install/delta_test.cpp"
