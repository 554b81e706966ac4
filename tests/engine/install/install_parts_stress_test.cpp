// The tests of install_parts_test.cpp with tiny pages: many levels, and many pages in several
// parts.
#include "tests/engine/install/install_parts_test.cpp"
