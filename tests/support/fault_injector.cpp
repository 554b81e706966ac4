#include "tests/support/fault_injector.h"

#include <algorithm>
#include <cerrno>

#include "shared/file/file_errors.h"

namespace atolldb::test {
namespace {

std::unexpected<Error> injected(Fault fault, const std::string& what) {
  return io_error(what + " (injected)", fault == Fault::io_error ? EIO : ENOSPC);
}

/// Returns the first `bytes` bytes of the slices.
std::vector<std::span<const std::byte>> prefix(std::span<const std::span<const std::byte>> slices,
                                               uint64_t bytes) {
  std::vector<std::span<const std::byte>> parts;
  for (const auto& slice : slices) {
    parts.push_back(slice.first(std::min<uint64_t>(slice.size(), bytes)));
    bytes -= parts.back().size();
  }
  return parts;
}

}  // namespace

class FaultyFile : public File {
 public:
  FaultyFile(FaultInjector& injector, std::unique_ptr<File> below)
      : injector_(injector), below_(std::move(below)) {}

  Result<void> write(uint64_t offset, std::span<const std::span<const std::byte>> slices) override {
    if (auto good = failure_.check(); !good) return good;
    const uint64_t bytes = total_bytes(slices);
    const std::string what = write_text(path(), offset, bytes);
    const auto fault = injector_.count(IoCall::write, what);
    if (!fault) return below_->write(offset, slices);  // the backend remembers its own failures
    if (*fault == Fault::short_write) {
      const uint64_t half = bytes / 2 / kIoBlockBytes * kIoBlockBytes;
      if (auto written = below_->write(offset, prefix(slices, half)); !written) {
        return written;
      }
    }
    return failure_.keep(injected(*fault, what));
  }

  Result<void> grow(uint64_t bytes) override {
    if (auto good = failure_.check(); !good) return good;
    const std::string what = "growth of " + path() + " to " + std::to_string(bytes) + " bytes";
    if (auto begun = injector_.begin(IoCall::grow, what); !begun) return begun;
    return below_->grow(bytes);
  }

  Result<void> sync() override {
    if (auto good = failure_.check(); !good) return good;
    if (auto begun = injector_.begin(IoCall::sync, "sync of " + path()); !begun) {
      if (injector_.on_failed_sync) injector_.on_failed_sync(path());
      return failure_.keep(begun);
    }
    return below_->sync();
  }

  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    const std::string what = "read of " + std::to_string(into.size()) + " bytes at " +
                             std::to_string(offset) + " from " + path();
    if (auto begun = injector_.begin(IoCall::read, what); !begun) {
      return std::unexpected(begun.error());
    }
    return below_->read(offset, into);
  }

  Result<uint64_t> size() const override {
    if (auto begun = injector_.begin(IoCall::size, "size of " + path()); !begun) {
      return std::unexpected(begun.error());
    }
    return below_->size();
  }

  const std::string& path() const override { return below_->path(); }

 private:
  FaultInjector& injector_;
  std::unique_ptr<File> below_;
  FirstFailure failure_;
};

namespace {

Result<std::unique_ptr<File>> wrap(FaultInjector& injector, Result<std::unique_ptr<File>> below) {
  if (!below) return below;
  return std::make_unique<FaultyFile>(injector, std::move(*below));
}

}  // namespace

void FaultInjector::fail(uint64_t number, Fault fault) {
  const std::lock_guard lock(mutex_);
  faults_[number] = fault;
}

void FaultInjector::fail(IoCall call, uint64_t number, Fault fault) {
  const std::lock_guard lock(mutex_);
  faults_of_[{call, number}] = fault;
}

void FaultInjector::fail_from(uint64_t number, Fault fault) {
  const std::lock_guard lock(mutex_);
  fail_from_ = {number, fault};
}

void FaultInjector::heal() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
  faults_of_.clear();
  fail_from_.reset();
}

uint64_t FaultInjector::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

uint64_t FaultInjector::calls(IoCall call) const {
  const std::lock_guard lock(mutex_);
  return calls_of_[static_cast<size_t>(call)];
}

uint64_t FaultInjector::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

std::vector<std::string> FaultInjector::trace() const {
  const std::lock_guard lock(mutex_);
  return trace_;
}

std::optional<Fault> FaultInjector::count(IoCall call, const std::string& what) {
  const std::lock_guard lock(mutex_);
  const uint64_t number = ++calls_;
  const uint64_t number_of_kind = ++calls_of_[static_cast<size_t>(call)];
  std::optional<Fault> fault;
  if (fail_from_ && number >= fail_from_->first) fault = fail_from_->second;
  if (const auto found = faults_.find(number); found != faults_.end()) fault = found->second;
  if (const auto found = faults_of_.find({call, number_of_kind}); found != faults_of_.end()) {
    fault = found->second;
  }
  failures_ += fault.has_value() ? 1 : 0;
  trace_.push_back(what + (fault ? " (fails)" : ""));
  return fault;
}

Result<void> FaultInjector::begin(IoCall call, const std::string& what) {
  auto fault = count(call, what);
  if (!fault) return {};
  return injected(*fault == Fault::short_write ? Fault::io_error : *fault, what);
}

template <typename Operation>
auto FaultInjector::run(IoCall call, const std::string& what, Operation operation)
    -> decltype(operation()) {
  if (auto begun = begin(call, what); !begun) return std::unexpected(begun.error());
  return operation();
}

Result<std::unique_ptr<File>> FaultInjector::create(const std::string& path, uint64_t bytes) {
  const std::string what = "creation of " + path + " with " + std::to_string(bytes) + " bytes";
  return run(IoCall::create, what, [&] { return wrap(*this, below_.create(path, bytes)); });
}

Result<std::unique_ptr<File>> FaultInjector::open(const std::string& path) {
  return run(IoCall::open, "opening " + path, [&] { return wrap(*this, below_.open(path)); });
}

Result<std::unique_ptr<File>> FaultInjector::open_for_reading(const std::string& path) {
  return run(IoCall::open_for_reading, "opening " + path + " for reading",
             [&] { return wrap(*this, below_.open_for_reading(path)); });
}

Result<void> FaultInjector::sync_directory(const std::string& path) {
  return run(IoCall::sync_directory, "sync of directory " + path,
             [&] { return below_.sync_directory(path); });
}

Result<void> FaultInjector::make_directory(const std::string& path) {
  return run(IoCall::make_directory, "creation of directory " + path,
             [&] { return below_.make_directory(path); });
}

Result<std::vector<std::string>> FaultInjector::list(const std::string& path) {
  return run(IoCall::list, "listing of " + path, [&] { return below_.list(path); });
}

Result<bool> FaultInjector::exists(const std::string& path) {
  return run(IoCall::exists, "look-up of " + path, [&] { return below_.exists(path); });
}

Result<void> FaultInjector::rename(const std::string& from, const std::string& to) {
  return run(IoCall::rename, "renaming of " + from + " to " + to,
             [&] { return below_.rename(from, to); });
}

Result<void> FaultInjector::remove(const std::string& path) {
  return run(IoCall::remove, "removal of " + path, [&] { return below_.remove(path); });
}

Result<bool> FaultInjector::link(const std::string& from, const std::string& to) {
  return run(IoCall::rename, "linking of " + from + " to " + to,
             [&] { return below_.link(from, to); });
}

Result<void> FaultInjector::remove_directory(const std::string& path) {
  return run(IoCall::remove, "removal of directory " + path,
             [&] { return below_.remove_directory(path); });
}

}  // namespace atolldb::test
