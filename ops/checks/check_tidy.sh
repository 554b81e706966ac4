#!/usr/bin/env bash
# Runs clang-tidy with the settings of .clang-tidy.
#   check_tidy.sh BUILD_DIR         the 12 changed sources with the most new lines, to stay fast
#   check_tidy.sh BUILD_DIR --all   every source of the tree; takes about an hour on two cores
# A source counts as changed if it differs from the merge base of HEAD and origin/main. If that is
# HEAD itself, or unknown, it counts if it differs from the commit before HEAD. If no source has
# changed, or without git, the sources of shared/config are checked.
set -euo pipefail
build=$(cd "$1" && pwd)/tidy
scope=${2:-}
case "$scope" in
  "" | --all) ;;
  *) echo "check_tidy.sh: $scope: not an argument: use --all or nothing" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/../.."
# A unity build has no entry for a single source, so this database is made without it.
cmake -S . -B "$build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=g++ \
  -D ATOLL_UNITY=OFF -D ATOLL_CCACHE=OFF >/dev/null
max_files=12
folders=(shared engine soc coordinator ops bench tests)

changed() {
  git rev-parse --is-inside-work-tree >/dev/null 2>&1 || return 0
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=$(git rev-parse --verify -q HEAD~1 || git rev-parse HEAD)
  fi
  git diff --numstat --no-renames --diff-filter=d "$base" -- "${folders[@]}" | sort -rn | cut -f 3 |
    grep '\.cpp$'
}

# Keeps the files that the build compiles: only they have an entry in the compilation database.
compiled() {
  while read -r file; do
    if grep -qF "\"$PWD/$file\"" "$build/compile_commands.json"; then echo "$file"; fi
  done
}

if [ "$scope" = --all ]; then
  # clang-tidy checks a source without an entry with the options of a similar one.
  mapfile -t files < <(find "${folders[@]}" -name '*.cpp' | sort)
else
  mapfile -t files < <(changed | compiled | head -n $max_files)
fi
if [ ${#files[@]} -eq 0 ]; then
  mapfile -t files < <(find shared/config -name '*.cpp' | sort | compiled)
fi
printf '%s\n' "${files[@]}"
# The options of the database are those of g++. clang does not know all of its warnings. It reports
# stable_sort of libstdc++ 12, which calls a deprecated function (CMakeLists.txt).
printf '%s\0' "${files[@]}" | xargs -0 -n 2 -P "$(nproc)" clang-tidy-19 -p "$build" --quiet \
  --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-deprecated-declarations
