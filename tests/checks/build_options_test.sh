#!/usr/bin/env bash
# ATOLL_WERROR and ATOLL_MARCH add or remove their compiler options. Configures; compiles no source.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CXXFLAGS
failed=0

# configure <argument of cmake...>: sets `options` to the -march and -Werror of all sources.
configure() {
  cmake -S "$root" -B "$work/build" --fresh -G Ninja -D CMAKE_BUILD_TYPE=Release \
    -D CMAKE_CXX_COMPILER=g++ -D ATOLL_TESTS=OFF -D ATOLL_CCACHE=OFF "$@" >"$work/out" 2>&1 ||
    return 1
  options=$(grep '"command":' "$work/build/compile_commands.json" |
    sed -E 's/.* (-march=[^ ]*).* (-Werror) .*/\1 \2/; t; s/.* (-march=[^ ]*).*/\1/; t; s/.*/none/' |
    sort -u)
}

# expect <options> <argument of cmake...>
expect() {
  local expected=$1
  shift
  if ! configure "$@"; then
    echo "cmake $*: failed:"
    cat "$work/out"
    failed=1
  elif [ "$options" != "$expected" ]; then
    echo "cmake $*: the options are \"$options\", expected \"$expected\""
    failed=1
  fi
}

expect "-march=x86-64-v3 -Werror"
expect "-march=haswell" -D ATOLL_MARCH=haswell -D ATOLL_WERROR=OFF
expect "none" -D ATOLL_MARCH= -D ATOLL_WERROR=OFF -D CMAKE_CXX_FLAGS="-mavx2 -mbmi2"
# These lack AVX2: with a message instead of errors in the middle of the build.
for march in x86-64-v2 ""; do
  if configure -D ATOLL_MARCH=$march || ! grep -q "ATOLL_MARCH=\"$march\"" "$work/out"; then
    echo "cmake -D ATOLL_MARCH=$march: is not refused with a message that names it:"
    cat "$work/out"
    failed=1
  fi
done
exit $failed
