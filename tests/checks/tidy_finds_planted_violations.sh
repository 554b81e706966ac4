#!/usr/bin/env bash
# Plants violations, and checks that the project's clang-tidy and clang-format settings reject them.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# finds <check> <code>: fails unless clang-tidy reports an error of this check for the code.
finds() {
  echo "$2" >"$work/a.cpp"
  if clang-tidy-19 --config-file="$root/.clang-tidy" --quiet "$work/a.cpp" -- -std=c++23 \
    >"$work/out" 2>/dev/null || ! grep -q "error:.*\[$1" "$work/out"; then
    echo "clang-tidy does not find $1 in: $2"
    cat "$work/out"
    failed=1
  fi
}

naming=readability-identifier-naming
finds $naming 'class bad_class {};'
finds $naming 'void BadFunction() {}'
finds $naming 'class A { int no_suffix = 0; int f() { return no_suffix; } };'
finds $naming 'struct A { int suffix_ = 0; };'
finds $naming 'constexpr int bad_constant = 1;'
finds $naming 'int f(int BadParameter) { return BadParameter; }'
finds modernize-use-override 'struct A { virtual void f(); }; struct B : A { virtual void f(); };'
finds performance-move-const-arg '#include <utility>
int f() { const int a = 1; return std::move(a); }'
finds bugprone-use-after-move '#include <string>
void g(std::string); auto f(std::string s) { g(std::move(s)); return s.size(); }'
finds bugprone-dangling-handle '#include <string>
#include <string_view>
std::string g(); void f() { std::string_view v = g(); }'

cp "$root/.clang-format" "$work"
echo 'int  x ;' >"$work/a.cpp"
if clang-format-19 --dry-run -Werror "$work/a.cpp" 2>/dev/null; then
  echo "clang-format accepts badly formatted code"
  failed=1
fi
exit $failed
