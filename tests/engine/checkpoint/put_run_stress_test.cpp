// The tests of put_run_test.cpp with tiny pages: runs meet pages that other threads divide.
#include "tests/engine/checkpoint/put_run_test.cpp"
