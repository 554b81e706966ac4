// One loaded version of a procedure library. It stays loaded until the process ends, because
// workers may run its code until then.
#pragma once

#include <atoll/abi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "shared/base/error.h"
#include "shared/base/status.h"
#include "shared/memory/control_layout.h"
#include "soc/procedure/procedure.h"

namespace atolldb {

class LoadedLibrary {
 public:
  /// Limit of the versions of all libraries that a process loads. None of them is ever unloaded.
  static constexpr uint32_t kMaxLoads = 1000;
  static constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;

  /// Maps a private copy of the file, so that the file may be overwritten or removed at any time.
  /// Checks the version of its API. An error names the library and the reason. Thread: any.
  static Result<std::unique_ptr<LoadedLibrary>> load(const std::string& path);
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;

  const std::string& path() const { return path_; }
  /// CRC32C of the file.
  uint32_t checksum() const { return checksum_; }

  /// Returns the list of a library with the public API, or null.
  const atoll_api::abi::LibraryDescription* description() const { return description_; }
  /// Returns the list of a library with the API of soc/procedure/procedure.h, or null.
  const ProcedureLibrary* internal_list() const { return internal_list_; }

  /// Runs the library's load function, unless it has succeeded. Returns ok, storage_not_found, or
  /// procedure_failed if it returned any other status or threw. Sets `message` to the reason.
  /// Thread: any, outside of procedures; only one at a time runs the function.
  Status prepare(ControlSegment& control, std::string& message) {
    if (is_prepared()) [[likely]]
      return Status::ok;
    return run_load_function(control, message);
  }
  /// Returns whether the load function has succeeded, or there is none. Thread: any.
  bool is_prepared() const {
    // Acquire pairs with the release after the function: its storages are visible.
    return is_prepared_.load(std::memory_order_acquire);
  }

 private:
  LoadedLibrary(std::string path, uint32_t checksum)
      : path_(std::move(path)), checksum_(checksum) {}
  Result<void> find_list(void* library);
  Status run_load_function(ControlSegment& control, std::string& message);

  const std::string path_;
  const uint32_t checksum_;
  const atoll_api::abi::LibraryDescription* description_ = nullptr;
  const ProcedureLibrary* internal_list_ = nullptr;
  atoll_api::LoadFunction on_load_ = nullptr;  // null: none
  std::mutex load_mutex_;                      // held while the load function runs
  std::atomic<bool> is_prepared_{false};
};

/// Returns the error of a library that cannot be used.
std::unexpected<Error> library_error(const std::string& path, const std::string& why);

}  // namespace atolldb
