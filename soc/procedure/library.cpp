#include "soc/procedure/library.h"

#include <atoll/procedure.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "engine/api/procedure_attempt.h"
#include "engine/format/crc32c.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/base/unique_fd.h"

namespace atolldb {
namespace {

constexpr const char* kPublicSymbol = "atoll_library";
constexpr const char* kInternalSymbol = "atoll_procedure_library";

/// A copy of a library's file, in memory.
struct FileCopy {
  UniqueFd file;
  uint32_t checksum = 0;
};

std::string last_error() { return std::strerror(errno); }

UniqueFd make_memory_file(const std::string& name) {
#ifdef MFD_EXEC
  constexpr unsigned kExecutable = MFD_EXEC;
#else
  constexpr unsigned kExecutable = 0x0010U;  // of Linux 6.3
#endif
  UniqueFd file(memfd_create(name.c_str(), MFD_CLOEXEC | kExecutable));
  if (file.is_open() || errno != EINVAL) return file;
  return UniqueFd(memfd_create(name.c_str(), MFD_CLOEXEC));  // an older kernel
}

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = uninterrupted([&] { return write(file, bytes.data(), bytes.size()); });
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

Result<FileCopy> copy_file(const std::string& path) {
  const UniqueFd source(uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!source.is_open()) {
    return library_error(
        path, "cannot be read: " + last_error() + ": build the library, or correct the path");
  }
  struct stat info{};
  if (fstat(source.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return library_error(path, "is not a regular file: give the path of a shared library");
  }
  if (static_cast<uint64_t>(info.st_size) > LoadedLibrary::kMaxFileBytes) {
    return library_error(
        path, "has " + std::to_string(info.st_size) + " bytes, more than the limit of " +
                  std::to_string(LoadedLibrary::kMaxFileBytes) + ": strip it, or split it");
  }
  const std::string name = path.substr(path.rfind('/') + 1).substr(0, NAME_MAX - 16);
  FileCopy copy{make_memory_file(name)};
  if (!copy.file.is_open()) return library_error(path, "memfd_create: " + last_error());
  std::vector<std::byte> buffer(size_t{1} << 20);
  uint64_t total = 0;
  for (;;) {
    const ssize_t got =
        uninterrupted([&] { return read(source.get(), buffer.data(), buffer.size()); });
    if (got == 0) return copy;
    const auto part = std::span(buffer).first(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    total += part.size();
    if (got < 0 || total > LoadedLibrary::kMaxFileBytes || !write_all(copy.file.get(), part)) {
      return library_error(path, "cannot be copied to memory: " + last_error());
    }
    copy.checksum = crc32c(part, copy.checksum);
  }
}

/// Loads the copy. The dynamic linker takes a path that it has seen before for the library of then,
/// and descriptors are used again. So each load has a path of its own: more or fewer slashes.
Result<void*> open_copy(const FileCopy& copy, const std::string& path) {
  static constinit std::atomic<uint32_t> loads{0};
  // Relaxed: only the uniqueness of the numbers matters.
  const uint32_t number = loads.fetch_add(1, std::memory_order_relaxed);
  if (number >= LoadedLibrary::kMaxLoads) {
    return library_error(path, "this process has loaded " +
                                   std::to_string(LoadedLibrary::kMaxLoads) +
                                   " versions of libraries, which is the limit: restart the "
                                   "cluster");
  }
  const std::string own_path =
      "/proc/self/fd" + std::string(size_t{number} + 1, '/') + std::to_string(copy.file.get());
  void* const library = dlopen(own_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* const reason = dlerror();
  std::string text = reason != nullptr ? reason : "no reason given";
  if (text.starts_with(own_path + ": ")) text.erase(0, own_path.size() + 2);
  return library_error(path, "cannot be loaded: " + text +
                                 ": build it with the headers of this version, and link what it "
                                 "needs");
}

std::string version_text(uint32_t major, uint32_t minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

Result<void> check_version(const atoll_api::abi::LibraryDescription& description,
                           const std::string& path) {
  using namespace atoll_api::abi;
  if (description.magic != kMagic) {
    return library_error(path, std::string("its symbol ") + kPublicSymbol +
                                   " is no list of procedures: use ATOLL_LIBRARY once in it");
  }
  if (description.abi_major == kAbiMajor && description.abi_minor <= kAbiMinor) return {};
  return library_error(path, "it was built for version " +
                                 version_text(description.abi_major, description.abi_minor) +
                                 " of the procedure ABI, this node has version " +
                                 version_text(kAbiMajor, kAbiMinor) +
                                 ": build it again with the headers of this Atoll "
                                 "(find_package(atoll_procedure)), or install a matching Atoll");
}

}  // namespace

std::unexpected<Error> library_error(const std::string& path, const std::string& why) {
  return make_error(ExitCode::config, "procedures.libraries: " + path + ": " + why);
}

Result<std::unique_ptr<LoadedLibrary>> LoadedLibrary::load(const std::string& path) {
  ATOLL_ASSIGN(const FileCopy copy, copy_file(path));
  ATOLL_ASSIGN(void* const library, open_copy(copy, path));
  std::unique_ptr<LoadedLibrary> loaded(new LoadedLibrary(path, copy.checksum));
  ATOLL_TRY(loaded->find_list(library));
  return loaded;
}

Result<void> LoadedLibrary::find_list(void* library) {
  CHECK(library != nullptr);
  if (const void* const found = dlsym(library, kPublicSymbol)) {
    const auto& list = *static_cast<const atoll_api::abi::LibraryDescription*>(found);
    ATOLL_TRY(check_version(list, path_));
    description_ = &list;
    on_load_ = list.on_load;
  } else {
    internal_list_ = static_cast<const ProcedureLibrary*>(dlsym(library, kInternalSymbol));
    if (internal_list_ == nullptr) {
      return library_error(path_, std::string("it has no symbol ") + kPublicSymbol +
                                      ": use ATOLL_LIBRARY once in it");
    }
  }
  // Relaxed: other threads get the library later, from the registry.
  is_prepared_.store(on_load_ == nullptr, std::memory_order_relaxed);
  return {};
}

Status LoadedLibrary::run_load_function(ControlSegment& control, std::string& message) {
  const std::lock_guard guard(load_mutex_);
  if (is_prepared_.load(std::memory_order_relaxed)) return Status::ok;
  CHECK(on_load_ != nullptr);
  std::string why;
  auto status = atoll_api::Status::procedure_failed;
  {
    LibraryLoad scope(control, why);
    atoll_api::Library library(node_functions(), scope.number());
    try {
      status = on_load_(library);
    } catch (const std::exception& error) {
      why = std::string("it threw: ") + error.what();
    } catch (...) {
      why = "it threw an object that is not a std::exception";
    }
  }
  if (status == atoll_api::Status::ok) {
    is_prepared_.store(true, std::memory_order_release);
    return Status::ok;
  }
  message = path_ + ": its load function returned " + std::string(to_string(status)) +
            (why.empty() ? "" : ": " + why);
  return status == atoll_api::Status::storage_not_found ? Status::storage_not_found
                                                        : Status::procedure_failed;
}

}  // namespace atolldb
