#!/usr/bin/env python3
"""ops/checks/check_source.py finds every kind of violation, and nothing in clean code."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ops" / "checks"))
sys.dont_write_bytecode = True
import check_source  # noqa: E402


def messages(path, text):
    return [m for _, m in check_source.check_text(pathlib.PurePosixPath(path), text)]


class CheckSource(unittest.TestCase):
    def assert_bad(self, path, text, part):
        found = messages(path, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def assert_clean(self, path, text):
        self.assertEqual(messages(path, text), [])

    def test_includes_go_down_only(self):
        folders = list(check_source.BELOW)
        for includer in folders:
            for target in folders:
                text = f'#include "{target}/x.h"\n'
                if target in check_source.BELOW[includer]:
                    self.assert_clean(f"{includer}/a.cpp", text)
                else:
                    self.assert_bad(f"{includer}/a.cpp", text, "may not include")

    def test_the_layers_are_those_of_the_design(self):
        self.assert_bad("shared/a.cpp", '#include "engine/a.h"\n', "may not include engine/")
        self.assert_bad("soc/a.cpp", '#include "coordinator/a.h"\n', "may not include")
        self.assert_bad("coordinator/a.cpp", '#include "soc/a.h"\n', "may not include soc/")
        self.assert_bad("engine/a.cpp", '#include "soc/a.h"\n', "may not include soc/")
        self.assert_bad("bench/a.cpp", '#include "ops/a.h"\n', "may not include ops/")
        self.assert_bad("ops/a.cpp", '#include "tests/a.h"\n', "may not include tests/")

    def test_includes_begin_at_the_root(self):
        self.assert_bad("shared/a.cpp", '#include "a.h"\n', "root of the repository")
        self.assert_clean("shared/a.cpp", "#include <atomic>\n")

    def test_atomics_name_their_order(self):
        for call in ("load()", "store(1)", "exchange(2)", "fetch_add(f(1))",
                     "compare_exchange_strong(a, b)", "compare_exchange_weak(\n  a,\n  b)"):
            self.assert_bad("engine/a.cpp", f"x.{call};\n", "without a memory order")
            self.assert_bad("engine/a.cpp", f"x->{call};\n", "without a memory order")
        self.assert_clean("engine/a.cpp", "x.load(std::memory_order_relaxed);\n")
        self.assert_clean("engine/a.cpp", "x.store(f(1),\n  std::memory_order::release);\n")
        self.assert_clean("shared/a.h", "#pragma once\nreturn x.load(order);\n")
        # The order of another call on the line does not count.
        self.assert_bad("engine/a.cpp", "x.store(1); y.load(std::memory_order_relaxed);\n", "store")

    def test_fences_live_in_shared_sync(self):
        text = "std::atomic_thread_fence(std::memory_order_seq_cst);\n"
        self.assert_bad("engine/a.cpp", text, "fences")
        self.assert_bad("shared/memory/a.cpp", text, "fences")
        self.assert_clean("shared/sync/a.cpp", text)

    def test_volatile(self):
        self.assert_bad("soc/a.cpp", "volatile int x;\n", "volatile")
        self.assert_clean("soc/a.cpp", "int volatile_pool;  // not volatile\n")
        self.assert_clean("soc/a.cpp", 'auto s = "volatile";\nauto t = R"(volatile)";\n')
        self.assert_bad("soc/a.cpp", "auto n = 1'000; volatile int x = 2'000;\n", "volatile")

    def test_unfinished_work(self):
        for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X"):
            self.assert_bad("ops/a.cpp", f"// {word}: later\n", "unfinished")

    def test_sizes(self):
        self.assert_clean("ops/a.cpp", "x;\n" * check_source.MAX_LINES)
        self.assert_bad("ops/a.cpp", "x;\n" * (check_source.MAX_LINES + 1), "lines")
        self.assert_clean("ops/a.cpp", "x" * check_source.MAX_COLUMNS + "\n")
        self.assert_bad("ops/a.cpp", "x" * (check_source.MAX_COLUMNS + 1) + "\n", "columns")

    def test_headers_are_included_once(self):
        self.assert_bad("soc/a.h", "int x;\n", "#pragma once")

    def test_a_tree_is_walked_and_named(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            self.assertEqual(check_source.check_tree(root), (0, []))
            (root / "engine" / "deep").mkdir(parents=True)
            (root / "engine" / "deep" / "a.cpp").write_text('\n#include "soc/x.h"\n')
            self.assertEqual(check_source.check_tree(root),
                             (1, ["engine/deep/a.cpp:2: engine/ may not include soc/"]))

    def rules(self, table):
        """What is wrong with the table of a tree with one file, one test and one row."""
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "engine").mkdir()
            (root / "tests").mkdir()
            (root / "engine" / "a.cpp").write_text("")
            (root / "tests" / "some_test.cpp").write_text("TEST_F(Suite,\n       Name) {}\n")
            (root / "tests" / check_source.RULE_TEST).write_text(
                'const Rule kRules[] = {\n    {"Row", Mutant::none, [] { return ""; }},\n};\n')
            (root / check_source.RULES).write_text(table)
            return [m for _, m in check_source.check_rules(root)]

    def test_the_table_of_rules_names_what_exists(self):
        lines = [f"| R{i} | what | | |" for i in range(1, check_source.LAST_RULE + 1)]
        good = "\n".join(lines + ["| - | what | `engine/a.cpp` | `Row` `Suite.Name` |"])
        self.assertEqual(self.rules(good), [])
        for name in ("engine/b.cpp", "Column", "Suite.Other", "Name"):
            found = self.rules(good + f"\n| - | | | `{name}` |")
            self.assertEqual(len(found), 1, found)
            self.assertIn(f"{name}: there is no such", found[0])
        self.assertEqual(self.rules(good.replace("| R7 |", "| R8 |")), ["R7 has no line"])
        found = self.rules(good.replace("`Row`", ""))
        self.assertEqual(len(found), 1, found)
        self.assertIn("Row, a row of", found[0])


if __name__ == "__main__":
    unittest.main()
