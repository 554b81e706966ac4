#!/usr/bin/python3
"""ops/checks/module_order.py finds every kind of violation, and nothing in clean code."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ops" / "checks"))
sys.dont_write_bytecode = True
import module_order  # noqa: E402


def messages(path, text):
    return [m for _, m in module_order.check_text(pathlib.PurePosixPath(path), text)]


class ModuleOrder(unittest.TestCase):
    def test_includes_go_down_only(self):
        for top, order in module_order.ORDER.items():
            for at, includer in enumerate(order):
                for place, target in enumerate(order):
                    found = messages(f"{top}/{includer}/a.cpp", f'#include "{top}/{target}/x.h"\n')
                    if place <= at:
                        self.assertEqual(found, [])
                    else:
                        self.assertEqual(len(found), 1, found)
                        self.assertIn("which is above it", found[0])

    def test_the_order_is_that_of_the_design(self):
        for path, target in (("engine/log/a.h", "engine/transaction/x.h"),
                             ("engine/transaction/a.cpp", "engine/mastertree/x.h"),
                             ("engine/snapshot/deep/a.cpp", "engine/compose/x.h"),
                             ("shared/sync/a.h", "shared/memory/x.h"),
                             ("shared/memory/a.h", "shared/metrics/x.h")):
            found = messages(path, f'#pragma once\n  #  include "{target}"\n')
            self.assertEqual(len(found), 1, found)

    def test_other_folders_and_other_lines_are_not_its_business(self):
        text = '#include <engine/api/x.h>\n#include "shared/client/x.h"\n// "engine/api/x.h"\n'
        self.assertEqual(messages("engine/hooks/a.cpp", text), [])

    def test_every_source_is_in_a_module_of_the_list(self):
        self.assertIn("lies in one of its modules", messages("engine/a.h", "")[0])
        self.assertIn("has no place", messages("engine/other/a.h", "")[0])
        self.assertIn("in no module", messages("engine/log/a.h", '#include "engine/x.h"\n')[0])
        self.assertIn("in no module", messages("engine/log/a.h", '#include "engine/o/x.h"\n')[0])

    def test_a_tree_is_walked_and_named(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            self.assertEqual(module_order.check_tree(root), (0, []))
            (root / "engine" / "log").mkdir(parents=True)
            (root / "engine" / "log" / "a.cpp").write_text('\n#include "engine/api/x.h"\n')
            (root / "engine" / "README.md").write_text('#include "engine/api/x.h"\n')
            count, violations = module_order.check_tree(root)
            self.assertEqual(count, 1)
            self.assertEqual(violations, ["engine/log/a.cpp:2: engine/log/ may not include "
                                          "engine/api/, which is above it"])


if __name__ == "__main__":
    unittest.main()
