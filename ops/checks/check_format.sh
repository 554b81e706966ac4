#!/usr/bin/env bash
# Fails if clang-format would change a source that git tracks, or any source if there is no git.
set -euo pipefail
cd "$(dirname "$0")/../.."

folders=(shared engine soc coordinator ops bench tests)
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  mapfile -t files < <(git ls-files -- "${folders[@]}" | grep -E '\.(h|cpp)$')
else
  mapfile -t files < <(find "${folders[@]}" -name '*.h' -o -name '*.cpp')
fi
# A tracked file does not exist if its removal is not committed yet.
existing=()
for file in "${files[@]}"; do [ -f "$file" ] && existing+=("$file"); done
clang-format-19 --dry-run -Werror "${existing[@]}"
echo "${#existing[@]} files are formatted"
