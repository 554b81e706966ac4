// The text of an error number of the system.
#pragma once

#include <cstring>
#include <string>

namespace atolldb {

/// Returns "Input/output error" for EIO. The text does not depend on the locale, because
/// file_failure_in has to find it in messages of other processes.
inline std::string error_text(int error_number) {
  const char* const text = ::strerrordesc_np(error_number);
  return text != nullptr ? text : "Unknown error " + std::to_string(error_number);
}

}  // namespace atolldb
