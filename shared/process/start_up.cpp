#include "shared/process/start_up.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "shared/base/check.h"
#include "shared/base/limits.h"

namespace atolldb {

Result<void> check_processor() {
  __builtin_cpu_init();
  const char* missing = nullptr;
  // __builtin_cpu_supports accepts only a literal, so this is not a loop.
  if (!__builtin_cpu_supports("fma")) missing = "fma";
  if (!__builtin_cpu_supports("bmi2")) missing = "bmi2";
  if (!__builtin_cpu_supports("bmi")) missing = "bmi";
  if (!__builtin_cpu_supports("avx2")) missing = "avx2";
  if (!__builtin_cpu_supports("avx")) missing = "avx";
  if (missing == nullptr) return {};
  return make_error(ExitCode::resources,
                    std::string("this processor lacks ") + missing +
                        ", and Atoll needs x86-64-v3: use a machine with a processor from 2015 or "
                        "later");
}

bool die_with_parent(pid_t parent) {
  // The parent may have died before the call. Then the kernel never sends the signal.
  return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

Result<UniqueFd> receive_signals(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    CHECK(signal > 0 && signal < NSIG);
    sigaddset(&set, signal);
  }
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (fd.is_open()) return fd;
  return make_error(ExitCode::resources, std::string("signals: signalfd: ") + std::strerror(errno) +
                                             ": raise `ulimit -n`");
}

void become_batch_thread() {
  constexpr sched_param kNone{};
  static_cast<void>(::sched_setscheduler(0, SCHED_BATCH, &kNone));
}

namespace {

/// Argument of the system call sched_setattr, for which the C library has no type.
struct SchedulingAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime_ns;  // ordinary policies: wanted length of the time slice
  uint64_t deadline_ns;
  uint64_t period_ns;
};
static_assert(sizeof(SchedulingAttributes) == 48);

/// Shortest time slice that the kernel accepts. Of two threads with equal claims, the one with the
/// shorter slice runs first.
constexpr uint64_t kPromptSliceNs = 100'000;

}  // namespace

void become_prompt_thread() {
  SchedulingAttributes attributes{};
  attributes.size = sizeof attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.size = sizeof attributes;
  attributes.runtime_ns = kPromptSliceNs;
  static_cast<void>(::syscall(SYS_sched_setattr, 0, &attributes, 0));
}

void set_io_priority(IoPriority priority) {
  // The header of the kernel that has these numbers is not C++.
  constexpr int kWhoProcess = 1;
  constexpr int kRealTime = 1;
  constexpr int kBestEffort = 2;
  constexpr int kIdle = 3;
  const auto set = [](int priority_class) {
    const int value = priority_class << 13;  // level 0 of the class: the highest
    return ::syscall(SYS_ioprio_set, kWhoProcess, 0, value) == 0;
  };
  if (priority == IoPriority::last) {
    static_cast<void>(set(kIdle));
  } else if (!set(kRealTime)) {
    static_cast<void>(set(kBestEffort));
  }
}

void name_thread(const std::string& name) {
  constexpr size_t kLongest = 15;
  pthread_setname_np(pthread_self(), name.substr(0, kLongest).c_str());
}

Result<void> pin_thread(std::span<const int32_t> cpus, std::string_view key) {
  CHECK(!key.empty());
  if (cpus.empty()) return {};
  const auto free_set = [](cpu_set_t* set) { CPU_FREE(set); };
  const std::unique_ptr<cpu_set_t, decltype(free_set)> set(CPU_ALLOC(kMaxCpus), free_set);
  const size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
  CHECK(set != nullptr);
  CPU_ZERO_S(bytes, set.get());
  std::string list;
  for (const int32_t cpu : cpus) {
    CHECK(cpu >= 0 && cpu < kMaxCpus);
    CPU_SET_S(static_cast<size_t>(cpu), bytes, set.get());
    list += (list.empty() ? "" : ", ") + std::to_string(cpu);
  }
  const int error = pthread_setaffinity_np(pthread_self(), bytes, set.get());
  if (error == 0) return {};
  return make_error(ExitCode::resources,
                    "CPU " + list + ": a thread cannot be pinned: " + std::strerror(error) +
                        ": change `" + std::string(key) + "` of the node in the config");
}

void return_large_blocks() { CHECK(mallopt(M_MMAP_THRESHOLD, kLargeBlockBytes) == 1); }

void raise_open_files_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace atolldb
