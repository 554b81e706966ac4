// The tests of add_test.cpp with tiny pages.
#include "tests/engine/install/add_test.cpp"
