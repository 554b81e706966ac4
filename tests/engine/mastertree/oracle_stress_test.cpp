// The tests of oracle_test.cpp with tiny pages: many levels, many splits.
#include "tests/engine/mastertree/oracle_test.cpp"
