#!/usr/bin/env bash
# clang-tidy on the changed sources: check_tidy.sh BUILD_DIR
# Changed: in the work tree, or since the last release branch point (origin/main), or else in the
# last commit. Nothing changed or no git: shared/config. At most 24 files, to stay fast.
set -euo pipefail
build=$(cd "$1" && pwd)/tidy
cd "$(dirname "$0")/../.."
# A database of every source alone, which a build that compiles several together has not.
cmake -S . -B "$build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=g++ \
  -D ATOLL_UNITY=OFF -D ATOLL_CCACHE=OFF >/dev/null
max_files=24

changed() {
  git rev-parse --is-inside-work-tree >/dev/null 2>&1 || return 0
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=$(git rev-parse --verify -q HEAD~1 || git rev-parse HEAD)
  fi
  git diff --name-only --diff-filter=d "$base"
}

# Only files that are compiled have an entry in the compilation database.
compiled() {
  while read -r file; do
    if grep -qF "\"$PWD/$file\"" "$build/compile_commands.json"; then echo "$file"; fi
  done
}

mapfile -t files < <(changed | grep -E '^(shared|engine|soc|coordinator|ops|bench|tests)/.*\.cpp$' |
  compiled | head -n $max_files)
if [ ${#files[@]} -eq 0 ]; then
  mapfile -t files < <(find shared/config -name '*.cpp' | sort | compiled)
fi
printf '%s\n' "${files[@]}"
# The database may come from g++, whose warning options clang does not all know.
printf '%s\0' "${files[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy-19 -p "$build" --quiet \
  --extra-arg=-Wno-unknown-warning-option
