#include "shared/memory/mapped_segment.h"

#include <sys/mman.h>

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/pointer.h"

namespace atolldb {
namespace {

namespace ipc = boost::interprocess;

/// Lets Boost map a descriptor: a memfd has no name, so Boost's own classes cannot open it.
class SegmentDescriptor {
 public:
  SegmentDescriptor(int file, ipc::mode_t mode) : file_(file), mode_(mode) {}

  ipc::mapping_handle_t get_mapping_handle() const {
    ipc::mapping_handle_t handle{};  // zeros: no System V shared memory
    handle.handle = file_;
    return handle;
  }
  ipc::mode_t get_mode() const { return mode_; }

 private:
  int file_;
  ipc::mode_t mode_;
};

}  // namespace

Result<MappedSegment> MappedSegment::map(int file, uint64_t bytes, bool writable,
                                         const void* address) {
  CHECK(bytes != 0);
  CHECK(reinterpret_cast<uintptr_t>(address) % kPageBytes == 0);
  const SegmentDescriptor segment(file, writable ? ipc::read_write : ipc::read_only);
  // Boost adds MAP_SHARED. With MAP_FIXED_NOREPLACE, mmap fails if the range is in use.
  const ipc::map_options_t options =
      address != nullptr ? MAP_FIXED_NOREPLACE : ipc::default_map_options;
  try {
    return MappedSegment(std::make_unique<ipc::mapped_region>(segment, segment.get_mode(), 0, bytes,
                                                              address, options));
  } catch (const ipc::interprocess_exception& error) {
    return make_error(ExitCode::resources, error.what());
  }
}

MappedSegment::MappedSegment(std::unique_ptr<ipc::mapped_region> region)
    : region_(std::move(region)) {}
MappedSegment::MappedSegment(MappedSegment&& other) noexcept = default;
MappedSegment& MappedSegment::operator=(MappedSegment&& other) noexcept = default;
MappedSegment::~MappedSegment() = default;

std::byte* MappedSegment::base() const {
  CHECK(region_ != nullptr);  // this object was not moved from
  return static_cast<std::byte*>(region_->get_address());
}

uint64_t MappedSegment::bytes() const {
  CHECK(region_ != nullptr);
  return region_->get_size();
}

}  // namespace atolldb
