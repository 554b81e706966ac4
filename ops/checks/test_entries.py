#!/usr/bin/python3
"""Every test of every test program is run by exactly one entry of ctest. Prints violations and ends with 1 if there are any.

An entry runs the tests of one source: its program with a filter that CMake makes of the source's
text. A filter that misses tests would lose them without any failure.
test_entries.py BUILD_DIR reads the entries of that build, whose programs must be built;
tests/checks plants violations to see it fail.
"""
import collections
import pathlib
import re
import subprocess
import sys

# As CMake writes it: add_test([=[name]=] "program" "--gtest_filter=...")
ENTRY = re.compile(
    r'^add_test\((?:\[=*\[)?([\w-]+)(?:\]=*\])? "([^"]+)" "--gtest_filter=([^"]*)"\)$', re.MULTILINE
)


def entries_of(build):
    """Triples of name, program and filter, from CMake's file for ctest."""
    return ENTRY.findall((build / "tests" / "CTestTestfile.cmake").read_text(encoding="utf-8"))


def listed(program, test_filter="*"):
    """The tests that the program runs with this filter, as a list of SUITE.TEST."""
    ran = subprocess.run([program, f"--gtest_filter={test_filter}", "--gtest_list_tests"],
                         capture_output=True, text=True, check=True)
    tests = []
    suite = ""
    for line in ran.stdout.splitlines():
        name = line.split("#")[0].rstrip()
        if name.startswith("  "):
            tests.append(suite + name.strip())
        elif re.fullmatch(r"\S+\.", name):  # other lines are of gtest's main()
            suite = name
    return tests


def check_entries(entries, list_tests=listed):
    """Yields a message for each violation. `list_tests(program, filter)` returns names of tests."""
    programs = collections.defaultdict(list)
    for name, program, test_filter in entries:
        programs[program].append((name, test_filter))
    for program, of_program in programs.items():
        short = pathlib.Path(program).name
        runs = collections.defaultdict(list)
        for name, test_filter in of_program:
            selected = list_tests(program, test_filter)
            if not selected:
                yield f"{name}: its filter selects no test of {short}: {test_filter}"
            for test in selected:
                runs[test].append(name)
        for test in list_tests(program, "*"):
            if test not in runs:
                yield f"{short}: {test}: no entry of ctest runs it"
        for test, names in runs.items():
            if len(names) > 1:
                yield f"{short}: {test}: several entries run it: {', '.join(names)}"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: test_entries.py BUILD_DIR")
    entries = entries_of(pathlib.Path(sys.argv[1]))
    missing = sorted({program for _, program, _ in entries if not pathlib.Path(program).exists()})
    if missing:
        sys.exit("\n".join(f"{program}: is not built" for program in missing))
    violations = list(check_entries(entries))
    print("\n".join(violations + [f"{len(entries)} entries, {len(violations)} violations"]))
    sys.exit(1 if violations or not entries else 0)


if __name__ == "__main__":
    main()
