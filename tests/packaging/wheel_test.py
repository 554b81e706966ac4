#!/usr/bin/python3
"""Builds the wheel of the Python package, installs it into a new environment, and uses it there.

Arguments: the source tree, and the build directory. Runs only with ATOLL_LONG, and with the Python
of `ops/setup --python`: the examples of the package's README, tables of Arrow and pandas, and an
export to Parquet, which has the same content as a table of Arrow.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
SOURCE, BUILD = (pathlib.Path(word) for word in sys.argv[1:3])
README = SOURCE / "shared" / "python" / "README.md"
PYTHON = SOURCE / "build" / "tools" / "python" / "bin" / "python3"
CONFIG = """
[cluster]
name = "bank"
[nodes]
count = 2
[memory]
volatile_pool = "16MiB"
log_buffer = "2MiB"
exchange = "2MiB"
"""
EXAMPLES = """
import sys
for block in sys.stdin.read().split("\\0"):
    exec(compile(block, "README.md", "exec"), {"__name__": "example"})
"""
# The schema is that of the README's last example, which has written people.toml.
TABLES = """
import pathlib, subprocess, sys
import atoll, pandas, pyarrow, pyarrow.parquet
from atoll.table import Table

folder, program = pathlib.Path(sys.argv[1]), sys.argv[2]
assert pathlib.Path(atoll.__file__).is_relative_to(sys.prefix), atoll.__file__
people = Table(folder / "people.toml", "people")
ROWS = 5000
with atoll.connect("atoll:bank") as db:
    for row in list(db.scan("people", keys_only=True)):
        db.delete("people", row.key)
    for first in range(0, ROWS, 200):
        batch = db.batch()
        for number in range(first, first + 200):
            batch.put("people", b"p%05d" % number, atoll.codec.I64.encode(number - 7))
        batch.run()
    expected = [("p%05d" % number, number - 7) for number in range(ROWS)]
    table = people.to_arrow(db.scan("people"))
    assert table.schema == pyarrow.schema([("name", pyarrow.string()), ("amount", pyarrow.int64())])
    assert list(zip(*table.to_pydict().values())) == expected
    sizes = [part.num_rows for part in people.batches(db.scan("people"), size=1999)]
    assert sizes == [1999, 1999, 1002], sizes
    frame = people.to_pandas(db.scan("people"))
    assert list(frame.itertuples(index=False, name=None)) == expected
    assert frame["amount"].sum() == sum(amount for _, amount in expected)
subprocess.run([program, "snapshot", "take"], check=True)
subprocess.run([program, "export", folder / "out", "--schema", folder / "people.toml", "--format",
                "parquet", "--python", sys.executable], check=True)
parts = sorted((folder / "out" / "people").glob("part-*.parquet"))
exported = pyarrow.concat_tables(map(pyarrow.parquet.read_table, parts)).sort_by("name")
assert exported.schema.remove_metadata() == table.schema, exported.schema
assert exported.to_pydict() == table.to_pydict()
print("rows", exported.num_rows)
"""


class Wheel(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.environment = {**os.environ, "HOME": str(self.folder),
                            "XDG_RUNTIME_DIR": str(self.folder),
                            "PYTHONDONTWRITEBYTECODE": "1"}
        for name in ("PYTHONPATH", "ATOLL_CLIENT_LIBRARY"):
            self.environment.pop(name, None)

    def run_in(self, *words, given=None):
        ran = subprocess.run([str(word) for word in words], cwd=self.folder, input=given,
                             env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 0, f"{words}: {ran.stdout}{ran.stderr}")
        return ran.stdout

    def install_wheel(self):
        """Returns the Python of a new environment, which has the wheel."""
        self.run_in(PYTHON, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w",
                    self.folder, SOURCE / "shared" / "python")
        wheels = list(self.folder.glob("atoll-*.whl"))
        self.assertEqual(len(wheels), 1, wheels)
        self.assertRegex(wheels[0].name, r"^atoll-[\d.]+-py3-none-.*\.whl$")
        python = self.folder / "environment" / "bin" / "python3"
        self.run_in("/usr/bin/python3", "-m", "venv", self.folder / "environment")
        # The packages that it needs come from the other environment: no download.
        site = next((PYTHON.parents[1] / "lib").glob("python3*/site-packages"))
        own = next((self.folder / "environment" / "lib").glob("python3*/site-packages"))
        (own / "others.pth").write_text(f"{site}\n", encoding="utf-8")
        self.run_in(python, "-m", "pip", "install", "--no-deps", "--no-index", wheels[0])
        return python

    def test_the_wheel_runs_the_examples_and_makes_tables(self):
        python = self.install_wheel()
        program = BUILD / "bin" / "atoll"
        config = self.folder / "bank.toml"
        config.write_text(CONFIG, encoding="utf-8")
        self.run_in(program, "up", "-c", config)
        self.addCleanup(subprocess.run, [program, "down", "--now", "-c", config],
                        env=self.environment, capture_output=True, check=False)
        self.run_in(program, "storage", "create", "people", "--type", "mastertree")
        text = README.read_text(encoding="utf-8")
        examples = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        printed = self.run_in(python, "-c", EXAMPLES, given="\0".join(examples))
        self.assertEqual(printed.splitlines(), re.findall(r"# prints (.*)$", text, re.MULTILINE))
        self.assertIn("rows 5000", self.run_in(python, "-c", TABLES, self.folder, program))


if __name__ == "__main__":
    if "ATOLL_LONG" not in os.environ:
        print("set ATOLL_LONG=1, or run ops/test --long: this test builds the wheel")
        sys.exit(SKIPPED)
    if not PYTHON.exists():
        print(f"{PYTHON} is missing: run ops/setup --python")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
