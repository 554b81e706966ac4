// Checks of `atoll-lines` that the counter sees the accesses of the engine.
#pragma once

namespace atolldb::bench {

/// Searches in a border page and in an interior page, and CHECKs that the counter sees exactly the
/// lines that the searches read. It misses lines if the engine is not instrumented, or if a search
/// loads values by instructions that the compiler does not instrument. REQUIRES: no Crew exists.
void check_that_searches_are_counted();

}  // namespace atolldb::bench
