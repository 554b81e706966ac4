#include "engine/snapshot/page_output.h"

#include <fmt/format.h>

#include <cstring>

namespace atolldb {

std::unexpected<Error> wrong_page(uint32_t storage_id, SnapshotPointer page,
                                  const std::string& reason) {
  return make_error(ExitCode::corruption,
                    fmt::format("storage {}: page {} of snapshot {} and node {}: {}: restore the "
                                "snapshot from a backup, or recover from an older one and its log",
                                storage_id, page.page(), page.snapshot(), page.node(), reason));
}

Result<void> PageOutput::check_cancelled() const {
  if (!cancelled_ || !cancelled_()) return {};
  return make_error(ExitCode::failed,
                    fmt::format("composing storage {}: the run was cancelled", storage_id_));
}

Result<void> PageOutput::read(SnapshotPointer pointer, PageBuffer& into, PageType type,
                              uint8_t layer) {
  return read(pointer, into, type, type, layer);
}

Result<void> PageOutput::read(SnapshotPointer pointer, PageBuffer& into, PageType type,
                              PageType other, uint8_t layer) {
  if (auto go_on = check_cancelled(); !go_on) return go_on;
  ++pages_read_;
  if (auto good = base_.read(pointer, &into.header()); !good) return good;
  const PageHeader& header = into.header();
  if (header.storage_id != storage_id_) {
    return wrong_page(storage_id_, pointer, fmt::format("it is of storage {}", header.storage_id));
  }
  if ((header.type != type && header.type != other) || header.layer != layer) {
    return wrong_page(
        storage_id_, pointer,
        fmt::format("it has type {} and layer {}, not type {} and layer {}",
                    static_cast<int>(header.type), header.layer, static_cast<int>(type), layer));
  }
  return {};
}

void PageOutput::copy(PageBuffer& page, PageHeader& to) {
  const PageHeader& from = page.header();
  to.type = from.type;
  to.layer = from.layer;
  to.level = from.level;
  to.version_word.store(from.version_word.load(std::memory_order_relaxed),
                        std::memory_order_relaxed);
  std::memcpy(reinterpret_cast<std::byte*>(&to) + sizeof(PageHeader),
              page.bytes + sizeof(PageHeader), kPageBytes - sizeof(PageHeader));
  ++pages_written_;
}

Result<SnapshotPointer> PageOutput::write(PageBuffer& page) {
  SnapshotPointer at;
  auto written = write_run({&page, 1}, [&](SnapshotPointer first) { at = first; });
  if (!written) return std::unexpected(written.error());
  return at;
}

Result<void> PageOutput::write_run(std::span<PageBuffer> pages,
                                   const std::function<void(SnapshotPointer first)>& place) {
  if (auto go_on = check_cancelled(); !go_on) return go_on;
  std::unique_lock<std::mutex> lock;
  if (writer_mutex_ != nullptr) lock = std::unique_lock(*writer_mutex_);
  for (size_t i = 0; i < pages.size(); ++i) {
    auto next = writer_.next(storage_id_);
    if (!next) return std::unexpected(next.error());
    if (i == 0) place(SnapshotPointer((*next)->self));
    copy(pages[i], **next);
  }
  return {};
}

}  // namespace atolldb
