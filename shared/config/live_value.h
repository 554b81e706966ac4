// A value of the config that `atoll config reload` changes while other threads read it.
#pragma once

#include <atomic>
#include <compare>
#include <concepts>
#include <type_traits>

namespace atolldb {

/// Reads as a plain T. A reader gets the old value or the new one. Values of several keys may be of
/// different reloads, so code that relies on a relation of two keys checks it. Thread: any may read
/// and set; `plain` only before others can see the object.
template <typename T>
class Live {
 public:
  using Value = T;

  template <typename U>
    requires(std::constructible_from<T, U> && !std::same_as<std::remove_cvref_t<U>, Live>)
  constexpr explicit(!std::convertible_to<U, T>) Live(U value) : value_(static_cast<T>(value)) {}
  constexpr Live(const Live& other) : value_(other.get()) {}
  Live& operator=(const Live& other) {
    set(other.get());
    return *this;
  }
  ~Live() = default;

  // Relaxed, because no other data depends on a value.
  constexpr T get() const {
    if (std::is_constant_evaluated()) return value_;
    return std::atomic_ref<T>(value_).load(std::memory_order_relaxed);
  }
  constexpr operator T() const { return get(); }
  void set(T value) { std::atomic_ref<T>(value_).store(value, std::memory_order_relaxed); }

  /// Returns the value itself, for the code that reads a config.
  T& plain() { return value_; }

  constexpr bool operator==(const Live& other) const { return get() == other.get(); }
  // Templates, so that no conversion of the other operand makes a comparison ambiguous.
  template <typename U>
    requires(!std::same_as<U, Live>)
  constexpr bool operator==(const U& other) const {
    return get() == other;
  }
  template <typename U>
    requires(!std::same_as<U, Live>)
  constexpr auto operator<=>(const U& other) const {
    return get() <=> other;
  }

 private:
  static_assert(std::is_trivially_copyable_v<T> && std::atomic_ref<T>::is_always_lock_free);

  // Mutable, because std::atomic_ref needs a plain type for a load, too.
  mutable T value_;
};

template <typename T>
inline constexpr bool kIsLive = false;
template <typename T>
inline constexpr bool kIsLive<Live<T>> = true;

}  // namespace atolldb
