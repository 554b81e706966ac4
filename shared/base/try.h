// Macros that return an error to the caller, for functions that return a Result. They are only for
// cold paths, because the transaction path uses Status.
#pragma once

#include <expected>
#include <utility>

#define ATOLL_JOIN_WORDS(one, other) one##other
#define ATOLL_JOIN(one, other) ATOLL_JOIN_WORDS(one, other)

/// Evaluates the expression, a Result, and returns its error if it has one. Ignores its value.
#define ATOLL_TRY(...)                                                   \
  do {                                                                   \
    if (auto atoll_result = (__VA_ARGS__); !atoll_result) [[unlikely]] { \
      return std::unexpected(std::move(atoll_result).error());           \
    }                                                                    \
  } while (false)

/// Evaluates the expression, a Result, and returns its error if it has one. Otherwise moves the
/// value to the target, for example `ATOLL_ASSIGN(const auto names, file_system.list(directory));`.
#define ATOLL_ASSIGN(target, ...) \
  ATOLL_ASSIGN_FROM(ATOLL_JOIN(atoll_result_, __COUNTER__), target, __VA_ARGS__)
#define ATOLL_ASSIGN_FROM(result, target, ...)         \
  auto result = (__VA_ARGS__);                         \
  if (!result) [[unlikely]]                            \
    return std::unexpected(std::move(result).error()); \
  target = *std::move(result)
