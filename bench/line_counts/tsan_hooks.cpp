// The functions that code calls when it is compiled with -fsanitize=thread, and functions of the C
// library that access memory or give up the processor. They replace the runtime of
// ThreadSanitizer. This source itself is not instrumented.
//
// The names and arguments are those of GCC 12 (gcc/sanitizer.def).
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "bench/line_counts/crew.h"

namespace {

using atolldb::bench::active_crew;

void count(const void* address, uint64_t bytes, bool is_write) {
  if (active_crew != nullptr) active_crew->access(address, bytes, is_write);
}

/// Calls the kernel. Returns a negative error number on failure.
long call_kernel(long number, long a, long b, long c, long d, long e, long f) {
  long result = 0;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ __volatile__("syscall"
                       : "=a"(result)
                       : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                       : "rcx", "r11", "memory");
  return result;
}

void* copy_up(void* to, const void* from, size_t bytes) {
  void* const start = to;
  __asm__ __volatile__("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  return start;
}

}  // namespace

extern "C" {

// -- Plain accesses -------------------------------------------------------------------------------

#define ATOLL_ACCESS(bytes)                                                          \
  void __tsan_read##bytes(void* address) { count(address, bytes, false); }           \
  void __tsan_write##bytes(void* address) { count(address, bytes, true); }           \
  void __tsan_unaligned_read##bytes(void* address) { count(address, bytes, false); } \
  void __tsan_unaligned_write##bytes(void* address) { count(address, bytes, true); } \
  void __tsan_volatile_read##bytes(void* address) { count(address, bytes, false); }  \
  void __tsan_volatile_write##bytes(void* address) { count(address, bytes, true); }
ATOLL_ACCESS(1)
ATOLL_ACCESS(2)
ATOLL_ACCESS(4)
ATOLL_ACCESS(8)
ATOLL_ACCESS(16)
#undef ATOLL_ACCESS

void __tsan_read_range(void* address, size_t bytes) { count(address, bytes, false); }
void __tsan_write_range(void* address, size_t bytes) { count(address, bytes, true); }
void __tsan_vptr_update(void* address, void*) { count(address, sizeof(void*), true); }
void __tsan_vptr_read(void* address) { count(address, sizeof(void*), false); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

// -- Atomic operations. All are sequentially consistent, because one thread runs. ---------------

#define ATOLL_FETCH(bits, type, name, builtin)                        \
  type __tsan_atomic##bits##_##name(type* address, type value, int) { \
    count(address, sizeof(type), true);                               \
    return builtin(address, value, __ATOMIC_SEQ_CST);                 \
  }
#define ATOLL_COMPARE(bits, type, name)                                                         \
  bool __tsan_atomic##bits##_compare_exchange_##name(type* address, type* expected, type value, \
                                                     int, int) {                                \
    count(address, sizeof(type), true);                                                         \
    return __atomic_compare_exchange_n(address, expected, value, false, __ATOMIC_SEQ_CST,       \
                                       __ATOMIC_SEQ_CST);                                       \
  }
#define ATOLL_ATOMIC(bits, type)                                     \
  type __tsan_atomic##bits##_load(const type* address, int) {        \
    count(address, sizeof(type), false);                             \
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);               \
  }                                                                  \
  void __tsan_atomic##bits##_store(type* address, type value, int) { \
    count(address, sizeof(type), true);                              \
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);              \
  }                                                                  \
  ATOLL_FETCH(bits, type, exchange, __atomic_exchange_n)             \
  ATOLL_FETCH(bits, type, fetch_add, __atomic_fetch_add)             \
  ATOLL_FETCH(bits, type, fetch_sub, __atomic_fetch_sub)             \
  ATOLL_FETCH(bits, type, fetch_and, __atomic_fetch_and)             \
  ATOLL_FETCH(bits, type, fetch_or, __atomic_fetch_or)               \
  ATOLL_FETCH(bits, type, fetch_xor, __atomic_fetch_xor)             \
  ATOLL_FETCH(bits, type, fetch_nand, __atomic_fetch_nand)           \
  ATOLL_COMPARE(bits, type, strong)                                  \
  ATOLL_COMPARE(bits, type, weak)
ATOLL_ATOMIC(8, uint8_t)
ATOLL_ATOMIC(16, uint16_t)
ATOLL_ATOMIC(32, uint32_t)
ATOLL_ATOMIC(64, uint64_t)
#undef ATOLL_ATOMIC
#undef ATOLL_COMPARE
#undef ATOLL_FETCH

void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}

// -- The C library --------------------------------------------------------------------------------

void* memcpy(void* to, const void* from, size_t bytes) {
  count(from, bytes, false);
  count(to, bytes, true);
  return copy_up(to, from, bytes);
}

void* memmove(void* to, const void* from, size_t bytes) {
  count(from, bytes, false);
  count(to, bytes, true);
  auto* out = static_cast<unsigned char*>(to);
  const auto* in = static_cast<const unsigned char*>(from);
  if (out <= in || out >= in + bytes) return copy_up(to, from, bytes);
  for (size_t i = bytes; i != 0; --i) out[i - 1] = in[i - 1];
  return to;
}

void* memset(void* to, int value, size_t bytes) {
  count(to, bytes, true);
  void* const start = to;
  __asm__ __volatile__("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
  return start;
}

int memcmp(const void* left, const void* right, size_t bytes) {
  count(left, bytes, false);
  count(right, bytes, false);
  const auto* a = static_cast<const unsigned char*>(left);
  const auto* b = static_cast<const unsigned char*>(right);
  for (size_t i = 0; i < bytes; ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

/// A worker that would sleep passes its turn, and wakes up without a reason.
long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  const bool is_sleep = number == SYS_futex && (arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT;
  if (is_sleep && active_crew != nullptr && active_crew->is_running()) {
    active_crew->pass();
    return 0;
  }
  const long result = call_kernel(number, arguments[0], arguments[1], arguments[2], arguments[3],
                                  arguments[4], arguments[5]);
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

int sched_yield() noexcept {
  if (active_crew != nullptr && active_crew->is_running()) active_crew->pass();
  return 0;
}

}  // extern "C"
