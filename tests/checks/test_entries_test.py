#!/usr/bin/python3
"""ops/checks/test_entries.py finds tests that no entry of ctest runs, or several, and nothing else.

test_entries_test.py BUILD_DIR also reads the entries of that build.
"""
import fnmatch
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else ROOT / "build" / "release"
sys.path.insert(0, str(ROOT / "ops" / "checks"))
sys.dont_write_bytecode = True
import test_entries  # noqa: E402

TESTS = ["Log.IsRead", "Log.IsCut", "Disks/Fault.IsReported/0", "Disks/Fault.IsReported/1"]
RIGHT = [("log_test", "/bin/log_tests", "Log.*"), ("fault_test", "/bin/log_tests", "*/Fault.*")]
# A program as GoogleTest's: it prints two tests of a suite, if its filter is "*".
PROGRAM = """#!/bin/sh
echo 'Running main() from gtest_main.cc'
[ "$1 $2" = '--gtest_filter=* --gtest_list_tests' ] || exit 0
echo 'Log.  # TypeParam = int'
echo '  IsRead'
echo '  IsCut  # GetParam() = 3'
"""


def violations(entries, tests=None):
    def list_tests(_, test_filter):
        return [test for test in tests or TESTS
                if any(fnmatch.fnmatchcase(test, one) for one in test_filter.split(":"))]
    return list(test_entries.check_entries(entries, list_tests))


class TestEntries(unittest.TestCase):
    def test_entries_that_share_the_tests_are_right(self):
        self.assertEqual(violations(RIGHT), [])

    def test_a_test_that_no_entry_runs(self):
        self.assertEqual(violations(RIGHT, TESTS + ["New.IsLost"]),
                         ["log_tests: New.IsLost: no entry of ctest runs it"])

    def test_a_test_that_two_entries_run(self):
        again = RIGHT + [("other_test", "/bin/log_tests", "Log.IsC*")]
        self.assertEqual(violations(again),
                         ["log_tests: Log.IsCut: several entries run it: log_test, other_test"])
        elsewhere = RIGHT + [("other_test", "/bin/other_tests", "*")]
        self.assertEqual(violations(elsewhere), [])

    def test_an_entry_without_tests(self):
        self.assertEqual(violations(RIGHT + [("old_test", "/bin/log_tests", "Old.*")]),
                         ["old_test: its filter selects no test of log_tests: Old.*"])

    def test_the_list_of_a_program_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "log_tests"
            program.write_text(PROGRAM)
            program.chmod(0o755)
            self.assertEqual(test_entries.listed(program), ["Log.IsRead", "Log.IsCut"])
            self.assertEqual(test_entries.listed(program, "Log.*"), [])

    def test_each_source_of_the_tree_has_one_entry(self):
        sources = (ROOT / "tests").rglob("*_test.cpp")
        names = [source.relative_to(ROOT / "tests").with_suffix("").as_posix().replace("/", "_")
                 for source in sources]
        entries = test_entries.entries_of(BUILD)
        self.assertEqual(sorted(names), sorted(name for name, _, _ in entries))


if __name__ == "__main__":
    unittest.main()
