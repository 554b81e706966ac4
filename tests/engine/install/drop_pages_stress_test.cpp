// The tests of drop_pages_test.cpp with tiny pages: many levels, many splits.
#include "tests/engine/install/drop_pages_test.cpp"
