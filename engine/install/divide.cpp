// Divides the storages for several installers.
#include <algorithm>
#include <vector>

#include "engine/format/array_page.h"
#include "engine/format/tree_page.h"
#include "engine/install/install.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// Pieces per part. Pieces differ in size, so a part of several pieces is nearer to the average.
constexpr uint32_t kPiecesPerPart = 8;

/// A range that begins at `low`. `page`: the volatile page of the range; null: the range is not
/// divided further.
struct Piece {
  uint64_t low = 0;
  TreePage* page = nullptr;
};

TreePage* page_at(const WorkerContext& worker, const DualPointer& pointer) {
  const VolatilePointer word = pointer.load_acquire();
  return word.is_null() ? nullptr : tree_page(worker.view().resolve(word.thawed()));
}

/// Adds the pieces of a page: its volatile children, or its slices with next layers. The content is
/// a hint, because the page may change meanwhile.
void add_pieces(const WorkerContext& worker, const Piece& from, std::vector<Piece>& pieces) {
  if (from.page == nullptr) return pieces.push_back(from);
  const uint32_t count = from.page->header.version().count();
  const size_t before = pieces.size();
  if (from.page->is_border()) {
    BorderPage& page = *border_page(from.page);
    for (uint32_t slot = 0; slot < count; ++slot) {
      if (!page.record(slot)->head.load_acquire().is_next_layer()) continue;
      pieces.push_back({page.slices()[slot], nullptr});
    }
    if (pieces.size() == before) pieces.push_back({from.low, nullptr});
    return;
  }
  const InteriorPage& page = *interior_page(from.page);
  for (uint32_t i = 0; i < count; ++i) {
    TreePage* child = page_at(worker, page.children[i]);
    // The words of a moved page may lead to pages that were reused (R3). If the page has not moved
    // after the load, the child is reachable in this epoch.
    if (page.header.version().is_moved()) return;
    if (child != nullptr) pieces.push_back({page.separators[i], child});
  }
}

/// Returns pieces of the first layer with about the same number of volatile pages each. Descends
/// level by level, until there are enough pieces.
std::vector<Piece> pieces_of_tree(const WorkerContext& worker, StorageControl& storage,
                                  size_t enough) {
  std::vector<Piece> pieces;
  TreePage* root = page_at(worker, storage.root);
  if (root != nullptr) pieces.push_back({0, root});
  const auto has_page = [](const Piece& piece) { return piece.page != nullptr; };
  while (pieces.size() < enough && std::ranges::any_of(pieces, has_page)) {
    std::vector<Piece> below;
    for (const Piece& piece : pieces) add_pieces(worker, piece, below);
    pieces = std::move(below);
  }
  std::ranges::sort(pieces, {}, &Piece::low);
  return pieces;
}

std::vector<Piece> pieces_of_array(const WorkerContext& worker, const StorageControl& storage) {
  const ArrayShape shape(storage.record_count, storage.payload_bytes);
  const VolatilePointer word = storage.root.load_acquire();
  if (shape.levels == 1 || word.is_null()) return {};
  const auto& root = *reinterpret_cast<const ArrayInterior*>(worker.view().resolve(word.thawed()));
  std::vector<Piece> pieces;
  for (uint32_t i = 0; i < kArrayFanout; ++i) {
    if (root.children[i].load_acquire().is_null()) continue;
    pieces.push_back({i * shape.records_below_root_child(), nullptr});
  }
  return pieces;
}

}  // namespace

std::vector<uint64_t> divide_storage(WorkerContext& worker, StorageControl& storage, uint32_t parts,
                                     uint32_t min_pages) {
  CHECK(parts != 0 && min_pages != 0);
  std::vector<Piece> pieces;
  const size_t enough = size_t{parts} * std::max(min_pages, kPiecesPerPart);
  if (is_tree(storage.type)) pieces = pieces_of_tree(worker, storage, enough);
  if (storage.type == StorageType::array) pieces = pieces_of_array(worker, storage);
  // Each piece has at least one page, so each part gets at least `min_pages` pages.
  const size_t count = std::min<size_t>(parts, pieces.size() / min_pages);
  std::vector<uint64_t> bounds;
  for (size_t part = 1; part < count; ++part) {
    const uint64_t low = pieces[part * pieces.size() / count].low;
    if (low != 0 && (bounds.empty() || bounds.back() < low)) bounds.push_back(low);
  }
  return bounds;
}

}  // namespace atolldb
