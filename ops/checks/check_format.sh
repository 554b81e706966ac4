#!/usr/bin/env bash
# clang-format has nothing to change in any source that git tracks (without git: in any source).
set -euo pipefail
cd "$(dirname "$0")/../.."

folders=(shared engine soc coordinator ops bench tests)
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  mapfile -t files < <(git ls-files -- "${folders[@]}" | grep -E '\.(h|cpp)$')
else
  mapfile -t files < <(find "${folders[@]}" -name '*.h' -o -name '*.cpp')
fi
# A tracked file may be gone from the tree of somebody who is about to commit that.
existing=()
for file in "${files[@]}"; do [ -f "$file" ] && existing+=("$file"); done
clang-format-19 --dry-run -Werror "${existing[@]}"
echo "${#existing[@]} files are formatted"
