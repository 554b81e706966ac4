// ATOLL_TSAN marks ThreadSanitizer builds. They replace code that the sanitizer does not
// understand, such as fences and vector instructions.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define ATOLL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ATOLL_TSAN 1
#endif
#endif
