#!/usr/bin/env bash
# check_tidy.sh passes the right sources to clang-tidy, and fails if clang-tidy fails. A script that
# only records its arguments takes the place of clang-tidy.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/build"
cat >"$work/bin/clang-tidy-19" <<'EOF'
#!/usr/bin/env bash
printf '%s\n' "$@" >>"$RECORD"
[[ " $* " != *" ${REFUSED:-none} "* ]]
EOF
chmod +x "$work/bin/clang-tidy-19"
export PATH="$work/bin:$PATH" RECORD="$work/record"
failed=0

# run <argument...>: sets `files` to the sorted sources that clang-tidy receives.
run() {
  rm -f "$RECORD"
  local result=0
  "$root/ops/checks/check_tidy.sh" "$work/build" "$@" >"$work/out" 2>&1 || result=$?
  files=$(grep -s "\.cpp$" "$RECORD" | sort || true)
  return $result
}

fail() {
  echo "$1"
  cat "$work/out"
  failed=1
}

all=$(cd "$root" && find shared engine soc coordinator ops bench tests -name '*.cpp' | sort)
run --all || fail "check_tidy.sh --all fails although clang-tidy does not"
[ "$files" = "$all" ] || fail "--all leaves out or adds: $(diff <(echo "$files") <(echo "$all"))"

run || fail "check_tidy.sh fails although clang-tidy does not"
count=$(echo "$files" | grep -c .) || true
if [ "$count" -lt 1 ] || [ "$count" -gt 12 ]; then
  fail "without --all there are $count sources, not 1 to 12"
fi

last=$(echo "$all" | tail -n 1)
if REFUSED=$last run --all; then fail "check_tidy.sh passes although clang-tidy fails for $last"; fi
if run --al; then fail "check_tidy.sh accepts the argument --al"; fi
exit $failed
