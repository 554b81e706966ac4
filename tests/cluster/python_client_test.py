"""Tests of the Python package against a running cluster.

client_library_test.cpp sets these variables: PYTHONPATH, ATOLL_CLIENT_LIBRARY, ATOLL_PROGRAM
(the program `atoll`), ATOLL_CONFIG (the config file of the cluster "bank"). The cluster has the
storages tree and people (Master-trees), array and accounts, heap, and the example procedure.
"""
import asyncio
import contextlib
import csv
import datetime
import decimal
import doctest
import io
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import atoll
import atoll.aio
import atoll.metrics
import atoll.table
from atoll import _library, codec

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "shared" / "c_client" / "atoll_client.h"
WHERE = "atoll:bank"
FUNCTION = re.compile(r"(?:[\w*]+\s+)+?\**(atoll_\w+)\s*\(([^()]*)\)\s*;")


def functions_of(text):
    """Parameters of the functions that a text declares, by name."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    return {match.group(1): re.sub(r"\s+", " ", match.group(2)).strip()
            for match in FUNCTION.finditer(text)}


def run_atoll(*words):
    subprocess.run([os.environ["ATOLL_PROGRAM"], *words, "-c", os.environ["ATOLL_CONFIG"]],
                   check=True, capture_output=True)


class Declarations(unittest.TestCase):
    def test_the_declarations_are_those_of_the_header(self):
        header = functions_of(HEADER.read_text(encoding="utf-8"))
        self.assertGreater(len(header), 60)
        source = pathlib.Path(_library.__file__).read_text(encoding="utf-8")
        declared = functions_of(source.split('ffi.cdef("""')[1].split('"""')[0])
        self.assertGreater(len(declared), 45)
        for name, parameters in declared.items():
            self.assertEqual(parameters, header.get(name), name)

    def test_the_library_has_all_functions_of_the_header(self):
        for name in functions_of(HEADER.read_text(encoding="utf-8")):
            ffi = _library.cffi.FFI()
            ffi.cdef(f"void {name}(void);")
            getattr(ffi.dlopen(os.environ["ATOLL_CLIENT_LIBRARY"]), name)

    def test_a_missing_library_is_named(self):
        ran = subprocess.run([sys.executable, "-c", "import atoll"], capture_output=True,
                             text=True, check=False,
                             env={**os.environ, "ATOLL_CLIENT_LIBRARY": "/none.so"})
        self.assertEqual(ran.returncode, 1)
        self.assertIn("ImportError: /none.so", ran.stderr)
        self.assertIn("set ATOLL_CLIENT_LIBRARY", ran.stderr)


class Examples(unittest.TestCase):
    def test_the_codecs(self):
        self.assertEqual(doctest.testmod(codec).failed, 0)
        numbers = [-2**63, -1, 0, 1, 2**63 - 1]
        keys = [codec.I64_KEY.encode(number) for number in numbers]
        self.assertEqual(keys, sorted(keys))
        self.assertEqual([codec.I64_KEY.decode(key) for key in keys], numbers)
        self.assertEqual(codec.JSON.decode(codec.JSON.encode({"é": [1, None]})), {"é": [1, None]})
        self.assertEqual(codec.packed("<hd").decode(codec.packed("<hd").encode((1, 2.5))), (1, 2.5))
        self.assertEqual(codec.TEXT.decode(codec.TEXT.encode("é")), "é")

    def test_the_examples_of_the_readmes_print_what_they_say(self):
        count = 0
        for path in ("README.md", "shared/python/README.md"):
            text = (ROOT / path).read_text(encoding="utf-8")
            for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
                count += 1
                expected = re.findall(r"# prints (.*)$", block, re.MULTILINE)
                printed = io.StringIO()
                with (self.subTest(path=path), contextlib.redirect_stdout(printed),
                      tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder)):
                    exec(compile(block, path, "exec"), {"__name__": "example"})
                self.assertEqual(printed.getvalue().splitlines(), expected, path)
        self.assertGreaterEqual(count, 4)


SCHEMA = """
[[table]]
name = "values"
storage = "tree"
type = "mastertree"
payload_bytes = 56
key = [
  { name = "tag", type = "char(4)", offset = 0 },
  { name = "a", type = "u16", offset = 4, size = 8, shift = 48, bits = 16 },
  { name = "b", type = "u32", offset = 4, size = 8 },
  { name = "name", type = "varchar(20)", offset = 12 },
]
column = [
  { name = "i8", type = "i8", offset = 0 },
  { name = "u16", type = "u16", offset = 2 },
  { name = "i32", type = "i32", offset = 4, null = -1 },
  { name = "u64", type = "u64", offset = 8 },
  { name = "f32", type = "f32", offset = 16 },
  { name = "short", type = "decimal(9,3)", offset = 20, stored = "i32" },
  { name = "f64", type = "f64", offset = 24 },
  { name = "money", type = "decimal(18,2)", offset = 32 },
  { name = "at", type = "timestamp", offset = 40, null = 0 },
  { name = "length", type = "varchar(4)", offset = 49, length_offset = 48, length_bytes = 1 },
  { name = "raw", type = "bytes(3)", offset = 53 },
  { name = "rest", type = "varchar(30)", offset = 56 },
]

[[table]]
name = "counters"
storage = "array"
type = "array"
payload_bytes = 8
key = [ { name = "index", type = "u64" } ]
column = [ { name = "count", type = "i64", offset = 0 } ]
"""
FROM_CSV = {
    "i8": int, "u16": int, "u32": int, "i32": int, "u64": int, "f64": float,
    "f32": lambda text: struct.unpack("<f", struct.pack("<f", float(text)))[0],
    "timestamp": datetime.datetime.fromisoformat, "bytes(3)": bytes.fromhex,
    "decimal(9,3)": decimal.Decimal, "decimal(18,2)": decimal.Decimal,
}


class Tables(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.schema = self.folder / "schema.toml"
        self.schema.write_text(SCHEMA, encoding="utf-8")
        self.db = self.enterContext(atoll.connect(WHERE))
        for row in list(self.db.scan("tree", keys_only=True)):
            self.db.delete("tree", row.key)

    def test_rows_are_those_of_an_export(self):
        seed = random.randrange(1 << 32)
        print("seed", seed, file=sys.stderr)
        draw = random.Random(seed)
        for number in range(200):
            key = b"row\0" + struct.pack(">HHI", number, 0, draw.getrandbits(32))
            text = "é€x"[:draw.randrange(4)].encode()[:4].decode(errors="ignore").encode()
            value = struct.pack(
                "<bxHiQfidqqB4s3s", draw.randrange(-128, 128), draw.getrandbits(16),
                draw.choice((-1, draw.randrange(-2**31, 2**31))), draw.getrandbits(64),
                draw.choice((0.5, -1e30, draw.random())), draw.randrange(-10**9 + 1, 10**9),
                draw.choice((0.1, -1e300, draw.random())), draw.randrange(-10**18 + 1, 10**18),
                draw.choice((0, -1, draw.randrange(-10**15, 10**17))), len(text), text,
                draw.randbytes(3))
            self.db.put("tree", key + f"n{number}".encode(), value + b"r" * draw.randrange(31))
        table = atoll.table.Table(self.schema, "values")
        run_atoll("snapshot", "take")
        rows = list(table.rows(self.db.snapshot().scan(table.storage)))
        run_atoll("export", str(self.folder / "out"), "--schema", str(self.schema), "--table",
                  "values")
        exported = []
        for path in sorted((self.folder / "out" / "values").glob("part-*.csv")):
            with open(path, encoding="utf-8", newline="") as file:
                lines = list(csv.reader(file))
            self.assertEqual(lines[0], [column.name for column in table.columns])
            exported += lines[1:]
        self.assertEqual(len(rows), 200)
        nulls = {"i32", "timestamp"}
        self.assertEqual(rows, [
            tuple(None if text == "" and column.type in nulls
                  else FROM_CSV.get(column.type, str)(text)
                  for text, column in zip(line, table.columns)) for line in exported])

    def test_errors_name_the_column_and_the_way_out(self):
        table = atoll.table.Table(self.schema, "values")
        for key, value, message in (
            (b"row\0" + bytes(8), bytes(10), "the payload has 10 bytes, the schema says 56"),
            (b"r", bytes(56), "the key has 1 bytes, the schema says 12 or more"),
            (b"row\0" + bytes(8), bytes(56) + b"r" * 31, "has 31 bytes, the limit is 30"),
            (b"row\0" + bytes(8), bytes(56) + b"\xff", "the text is not utf-8"),
            (b"r\0w\0" + bytes(8), bytes(56), "tag: the text has a zero byte"),
            (b"row\0" + bytes(8), bytes(48) + b"\x05" + bytes(7), "length: its length is 5"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                table.row(atoll.Row(key, value, 1))
        for name, message in (("none", "has no table 'none'"), ("counters", "only \"mastertree\"")):
            with self.assertRaisesRegex(ValueError, message):
                atoll.table.Table(self.schema, name)


class Metrics(unittest.TestCase):
    def test_values_are_read_from_all_processes(self):
        with atoll.connect(WHERE) as db:
            before = atoll.metrics.value(WHERE, "atoll_session_requests_total", node="0")
            for _ in range(10):
                db.get("tree", b"k")
            after = atoll.metrics.value(WHERE, "atoll_session_requests_total", node="0")
        self.assertGreaterEqual(after - before, 10)
        self.assertGreaterEqual(len({sample.process for sample in atoll.metrics.read(WHERE)}), 3)
        with self.assertRaises(KeyError):
            atoll.metrics.value(WHERE, "atoll_none")
        with self.assertRaisesRegex(atoll.Unavailable, "start it with `atoll up`"):
            atoll.metrics.value("atoll:none", "atoll_none")
        for where in ("bank", "atoll://bank", "atoll:"):
            with self.assertRaises(ValueError):
                atoll.metrics.run_folder(where)


class Calls(unittest.TestCase):
    def setUp(self):
        self.db = atoll.connect(WHERE)
        self.addCleanup(self.db.close)

    def test_single_operations(self):
        db = self.db
        commit = db.put("tree", b"py/a", b"1")
        self.assertTrue(commit.is_durable and commit.epoch and commit.version)
        self.assertEqual(commit.incarnation, db.incarnation)
        self.assertEqual(db.get("tree", bytearray(b"py/a")), b"1")
        self.assertIsNone(db.get("tree", b"py/none"))
        with self.assertRaises(atoll.AlreadyExists):
            db.insert("tree", b"py/a", b"2")
        db.insert("tree", b"py/empty", b"")
        self.assertEqual(db.get("tree", memoryview(b"py/empty")), b"")
        self.assertTrue(db.delete("tree", b"py/a"))
        self.assertFalse(db.delete("tree", b"py/a"))
        key = codec.U64_KEY.encode(100)
        db.add("array", key, 40)
        db.add("array", key, -2, acknowledge="visible", timeout=60)
        self.assertEqual(codec.I64.decode(db.get("array", key)), 38)
        accepted = db.add("array", key, 0, acknowledge="accepted")
        self.assertEqual((accepted.version, accepted.is_durable), (0, False))
        db.put("array", key, b"\x01", 7)
        self.assertEqual(codec.I64.decode(db.get("array", key)), 38 + (1 << 56))
        db.append("heap", b"entry")
        self.assertEqual(codec.TEXT.decode(db.call("transfer", b"3 4 0")), "0")

    def test_procedures_have_long_inputs_and_outputs(self):
        data = bytes(range(256)) * 1200
        self.assertEqual(self.db.call("repeat", data), data * 8)
        with self.assertRaisesRegex(atoll.Error, "procedures.max_output"):
            self.db.call("repeat", data * 2)
        with self.assertRaisesRegex(atoll.InvalidArgument, "procedures.max_input"):
            self.db.call("repeat", data * 4)

    def test_errors_have_classes_and_messages(self):
        db = self.db
        for error, call in (
            (atoll.StorageNotFound, lambda: db.get("none", b"k")),
            (atoll.ProcedureNotFound, lambda: db.call("none")),
            (atoll.Aborted, lambda: db.call("transfer", b"3 4 9000")),
            (atoll.NotFound, lambda: db.add("tree", b"py/none", 1)),
            (atoll.NotSupported, lambda: db.append("tree", b"x")),
            (atoll.InvalidArgument, lambda: db.get("tree", b"k" * 1025)),
            (atoll.InvalidArgument, lambda: db.put("tree", b"k", b"v" * 2049)),
            (atoll.InvalidArgument, lambda: atoll.connect("bank")),
            (atoll.InvalidArgument, lambda: atoll.connect("atoll+tcp://host")),
            (atoll.Unavailable, lambda: atoll.connect("atoll:none?connect_timeout_ms=0")),
            (atoll.SnapshotNotFound, lambda: db.snapshot(4000000).get("tree", b"k")),
            (TypeError, lambda: db.get("tree", "text")),
            (TypeError, lambda: db.get(b"tree", b"k")),
            (ValueError, lambda: db.get("tr\0ee", b"k")),
            (ValueError, lambda: db.put("tree", b"k", b"v", acknowledge="never")),
            (ValueError, lambda: db.get("tree", b"k", timeout=0)),
        ):
            with self.assertRaises(error) as caught:
                call()
            self.assertNotEqual(str(caught.exception), "")
        with self.assertRaises(atoll.Error) as caught:
            db.get("none", b"k")
        self.assertEqual((caught.exception.status, caught.exception.name), (9, "storage_not_found"))
        self.assertIn('storage "none" does not exist', str(caught.exception))

    def test_scans_are_iterators(self):
        db = self.db
        batch = db.batch()
        for i in range(100):
            batch.put("tree", b"py/s" + codec.U64_KEY.encode(i), b"v" * 600)
        batch.run()
        rows = list(db.scan("tree", prefix=b"py/s"))
        self.assertEqual([codec.U64_KEY.decode(row.key[4:]) for row in rows], list(range(100)))
        self.assertTrue(all(row.value == b"v" * 600 and row.version for row in rows))
        back = list(db.scan("tree", rows[10].key, rows[90].key, reverse=True, keys_only=True,
                            limit=70))
        self.assertEqual([row.key for row in back], [rows[i].key for i in range(89, 19, -1)])
        self.assertEqual(list(db.scan("tree", prefix=b"\xff\xff")), [])
        first, second = db.batch().scan("tree", prefix=b"py/s").scan("tree", rows[0].key,
                                                                     rows[1].key).run()
        self.assertEqual((len(first) < 100, first.has_more), (True, True))
        self.assertEqual((len(second), second.has_more), (0, True))
        self.assertEqual(next(atoll.connect(WHERE).scan("tree", prefix=b"py/s")).key, rows[0].key)

    def test_a_batch_is_all_or_nothing(self):
        db = self.db
        key = codec.U64_KEY.encode(101)
        batch = (db.batch().put("tree", b"py/b", b"1").get("tree", b"py/b").get("tree", b"py/none")
                 .add("array", key, 2, returns_value=True).check("tree", b"py/b", b"1")
                 .check("tree", b"py/none", None).scan("tree", prefix=b"py/b"))
        results = batch.run()
        self.assertEqual(results[:3], [None, b"1", None])
        self.assertEqual(codec.I64.decode(results[3]), 2)
        self.assertEqual([row.key for row in results[6]], [b"py/b"])
        self.assertNotEqual(batch.commit.version, 0)
        with self.assertRaises(atoll.Aborted):
            db.batch().put("tree", b"py/b", b"9").check("tree", b"py/b", b"other").run()
        with self.assertRaises(atoll.NotFound):
            db.batch().put("tree", b"py/b", b"9").delete("tree", b"py/none").run()
        self.assertEqual(db.get("tree", b"py/b"), b"1")
        full = db.batch()
        for _ in range(256):
            full.get("tree", b"k")
        with self.assertRaises(atoll.InvalidArgument):
            full.get("tree", b"k")
        self.assertEqual(len(full.run()), 256)
        with self.assertRaises(atoll.InvalidArgument):
            db.batch().run()

    def test_many_records_are_written_and_read_in_few_transactions(self):
        db = self.db
        keys = [b"py/m" + codec.U64_KEY.encode(number) for number in range(1000)]
        records = {key: bytes([number % 251]) * (number % 90) for number, key in enumerate(keys)}
        commits = db.put_many("tree", records.items())
        self.assertEqual(len(commits), 4)  # 256 records each
        self.assertTrue(all(commit.is_durable and commit.version for commit in commits))
        self.assertEqual(db.get_many("tree", keys), list(records.values()))
        self.assertEqual(db.get_many("tree", [b"py/none", keys[3], bytearray(keys[3])]),
                         [None, records[keys[3]], records[keys[3]]])
        for key in (keys[0], keys[255], keys[256], keys[999]):
            self.assertEqual(db.get("tree", key), records[key])
        visible = db.put_many("tree", [(keys[0], b"0")], acknowledge="visible")
        self.assertEqual(len(visible), 1)
        self.assertEqual((db.get_many("tree", []), db.put_many("tree", [])), ([], []))

    def test_many_large_records_need_more_transactions(self):
        db = self.db
        records = [(b"py/w%03d" % number, bytes([number]) * 2000) for number in range(100)]
        commits = db.put_many("tree", records)
        self.assertEqual(len(commits), 4)  # 31 records have 64 KiB
        # The keys fit into one request, but the values do not fit into one reply.
        self.assertEqual(db.get_many("tree", (key for key, _ in records)),
                         [value for _, value in records])
        full = b"k" * 1024
        self.assertEqual(len(db.put_many("tree", [(full, b"v" * 2048)])), 1)
        self.assertEqual(db.get_many("tree", [full]), [b"v" * 2048])
        self.assertTrue(db.delete("tree", full))

    def test_failures_of_many_records_are_exceptions(self):
        db = self.db
        for keys, storage, wrong in (([b"k" * 1025], "tree", atoll.InvalidArgument),
                                     ([b"k"], "none", atoll.StorageNotFound),
                                     ([b"k"], "", atoll.InvalidArgument),
                                     ([b"k"], "s" * 64, atoll.InvalidArgument),
                                     (["k"], "tree", TypeError)):
            with self.assertRaises(wrong):
                db.get_many(storage, keys)
            with self.assertRaises(wrong):
                db.put_many(storage, [(key, b"v") for key in keys])
        with self.assertRaises(atoll.InvalidArgument):
            db.put_many("tree", [(b"py/x", b"v" * 2049)])
        with self.assertRaises(atoll.Error):
            db.put_many("tree", [(b"py/x%d" % i, b"v") for i in range(300)] + [(b"k" * 1025, b"")])
        self.assertEqual(db.get("tree", b"py/x299"), None)  # its transaction was not sent
        other = atoll.connect(WHERE)
        other.close()
        for call in (lambda: other.get_many("tree", [b"k"]),
                     lambda: other.put_many("tree", [(b"k", b"v")])):
            with self.assertRaises(atoll.Closed):
                call()

    def test_a_transaction_commits_or_aborts(self):
        db = self.db
        with db.transaction() as t:
            t.put("tree", b"py/t", b"1")
            self.assertIsNone(db.get("tree", b"py/t"))
            self.assertEqual(t.get("tree", b"py/t"), b"1")
            self.assertEqual([row.key for row in t.scan("tree", prefix=b"py/t")], [b"py/t"])
        self.assertNotEqual(t.committed.version, 0)
        with self.assertRaises(atoll.Closed):
            t.get("tree", b"py/t")
        with self.assertRaises(ZeroDivisionError), db.transaction() as t:
            t.put("tree", b"py/t", b"2")
            t.append("heap", b"entry")
            1 / 0
        self.assertEqual(db.get("tree", b"py/t"), b"1")
        with db.transaction() as t:
            t.put_at("tree", b"py/t", 0, b"3")
            self.assertFalse(t.delete("tree", b"py/none"))
            t.insert("tree", b"py/t2", b"")
            self.assertTrue(t.delete("tree", b"py/t2"))
            t.add("array", codec.U64_KEY.encode(102), 1.5, "f64")
        self.assertEqual(db.get("tree", b"py/t"), b"3")
        with self.assertRaises(atoll.Conflict), db.transaction() as t:
            t.get("tree", b"py/t")
            db.put("tree", b"py/t", b"4")
            t.put("tree", b"py/t", b"5")
        self.assertEqual(db.get("tree", b"py/t"), b"4")

    def test_retry_repeats_conflicts_a_bounded_number_of_times(self):
        db = self.db
        db.put("tree", b"py/counter", codec.I64.encode(0))

        @atoll.retry(db, attempts=100)
        def increment(t, by):
            """Adds by a read and a write, so two of them conflict."""
            number = codec.I64.decode(t.get("tree", b"py/counter")) + by
            t.put("tree", b"py/counter", codec.I64.encode(number))
            return number

        threads = [threading.Thread(target=lambda: [increment(1) for _ in range(10)])
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(codec.I64.decode(db.get("tree", b"py/counter")), 40)
        self.assertEqual(increment.__name__, "increment")
        runs = []

        @atoll.retry(db, attempts=3, first_pause=0)
        def always_conflicts(t):
            runs.append(t.get("tree", b"py/counter"))
            db.put("tree", b"py/counter", codec.I64.encode(len(runs)))
            t.put("tree", b"py/counter", b"")

        with self.assertRaises(atoll.Conflict):
            always_conflicts()
        self.assertEqual(len(runs), 3)
        with self.assertRaises(ValueError):
            atoll.retry(db, attempts=0)

    def test_snapshots_only_read(self):
        db = self.db
        db.put("tree", b"py/snapshot", b"old")
        run_atoll("snapshot", "take")
        db.put("tree", b"py/snapshot", b"new")
        view = db.snapshot()
        self.assertEqual(view.get("tree", b"py/snapshot"), b"old")
        self.assertEqual([row.value for row in view.scan("tree", prefix=b"py/snapshot")], [b"old"])
        with self.assertRaises(atoll.ReadOnly):
            db.batch().put("tree", b"k", b"v").run(isolation="snapshot_read_only")

    def test_a_snapshot_is_found_by_its_epoch(self):
        db = self.db
        old = db.put("tree", b"py/epoch", b"old")
        run_atoll("snapshot", "take")
        run_atoll("snapshot", "pin", "--name", "py-old")
        self.addCleanup(run_atoll, "snapshot", "unpin", "py-old")
        pinned = db.snapshots()[-1]
        self.assertGreaterEqual(pinned.epoch, old.epoch)
        new = db.put("tree", b"py/epoch", b"new")
        run_atoll("snapshot", "take")
        newest = db.snapshots()[-1]
        self.assertGreaterEqual(newest.epoch, new.epoch)
        self.assertIn(pinned, db.snapshots())
        for epoch, value in ((newest.epoch, b"new"), (newest.epoch - 1, b"old"),
                             (pinned.epoch, b"old")):
            self.assertEqual(db.snapshot(epoch=epoch).get("tree", b"py/epoch"), value)
        self.assertEqual(db.snapshot(pinned.id).get("tree", b"py/epoch"), b"old")
        with self.assertRaises(atoll.SnapshotNotFound):
            db.snapshot(epoch=0)
        with self.assertRaises(ValueError):
            db.snapshot(1, epoch=1)

    def test_a_closed_connection_refuses_calls(self):
        db = atoll.connect(f"{WHERE}?node=1")
        self.assertEqual(db.node, 1)
        with db:
            self.assertTrue(db.is_open)
        self.assertFalse(db.is_open)
        for call in (lambda: db.get("tree", b"k"), lambda: db.batch().get("tree", b"k").run(),
                     lambda: next(db.scan("tree")), db.transaction, db.reconnect):
            with self.assertRaises(atoll.Closed):
                call()
        db.close()


class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def test_calls_are_awaited_and_run_at_the_same_time(self):
        async with await atoll.aio.connect(WHERE) as db:
            await asyncio.gather(*(db.put("tree", b"aio/%02d" % i, b"1") for i in range(20)))
            self.assertEqual(await db.get("tree", b"aio/07"), b"1")
            rows = [row.key async for row in db.scan("tree", prefix=b"aio/")]
            self.assertEqual(rows, [b"aio/%02d" % i for i in range(20)])
            results = await db.run(db.batch().get("tree", b"aio/00").delete("tree", b"aio/01"))
            self.assertEqual(results, [b"1", None])
            async with db.transaction() as t:
                values = await asyncio.gather(t.get("tree", b"aio/02"), t.get("tree", b"aio/03"))
                self.assertEqual(values, [b"1", b"1"])
                await t.put("tree", b"aio/02", b"2")
                self.assertEqual(len(await t.scan("tree", prefix=b"aio/")), 19)
            self.assertEqual(await db.get("tree", b"aio/02"), b"2")
            with self.assertRaises(atoll.Conflict):
                async with db.transaction() as t:
                    await t.get("tree", b"aio/02")
                    await db.put("tree", b"aio/02", b"3")
                    await t.put("tree", b"aio/02", b"4")
            self.assertEqual(await db.call("transfer", b"3 4 0"), b"0")
            records = [(b"aiom/%03d" % i, b"%d" % i) for i in range(300)]
            self.assertEqual(len(await db.put_many("tree", records)), 2)
            self.assertEqual(await db.get_many("tree", (key for key, _ in records)),
                             [value for _, value in records])
            # A cancelled call of a transaction has ended before the next one begins.
            async with db.transaction() as t:
                calls = [asyncio.create_task(t.get("tree", b"aio/%02d" % i)) for i in range(20)]
                await asyncio.sleep(0)
                for call in calls[::2]:
                    call.cancel()
                results = await asyncio.gather(*calls, return_exceptions=True)
                self.assertEqual(results[3::2], [b"1"] * 9)
                self.assertTrue(all(isinstance(result, asyncio.CancelledError)
                                    for result in results[::2]))
        with self.assertRaises(atoll.Closed):
            await db.get("tree", b"k")

    async def test_a_long_scan_yields_each_row_once(self):
        async with await atoll.aio.connect(WHERE) as db:
            for first in range(0, 600, 200):
                batch = db.batch()
                for i in range(first, first + 200):
                    batch.put("tree", b"aio-long/%03d" % i, b"v")
                await db.run(batch)
            rows = [row.key async for row in db.scan("tree", prefix=b"aio-long/")]
            self.assertEqual(rows, [b"aio-long/%03d" % i for i in range(600)])

    async def test_a_snapshot_is_read(self):
        async with await atoll.aio.connect(WHERE) as db:
            await db.put("tree", b"aio-snapshot", b"old")
            run_atoll("snapshot", "take")
            newest = (await db.snapshots())[-1]
            await db.put("tree", b"aio-snapshot", b"new")
            for view in (await db.snapshot(), await db.snapshot(newest.id),
                         await db.snapshot(epoch=newest.epoch)):
                self.assertEqual(await view.get("tree", b"aio-snapshot"), b"old")
                rows = [row.value async for row in view.scan("tree", prefix=b"aio-snapshot")]
                self.assertEqual(rows, [b"old"])
            with self.assertRaises(atoll.SnapshotNotFound):
                await db.snapshot(epoch=0)


class Outage(unittest.TestCase):
    def test_a_stopped_cluster_is_reported_and_the_next_one_is_used(self):
        with atoll.connect(WHERE) as db:
            db.put("tree", b"py/kept", b"1")
            before = db.incarnation
            errors = []
            is_busy = threading.Event()

            def work():
                try:
                    while True:
                        db.put("tree", b"py/busy", b"1")
                        is_busy.set()
                except atoll.Error as error:
                    errors.append(error)

            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            self.assertTrue(is_busy.wait(60))
            run_atoll("down", "--now")
            for thread in threads:
                thread.join()
            for error in errors:
                self.assertIsInstance(error, (atoll.OutcomeUnknown, atoll.Unavailable))
            self.assertEqual(len(errors), 2)
            with self.assertRaises(atoll.Unavailable):
                db.get("tree", b"py/kept")
            with self.assertRaises(atoll.Unavailable):
                db.reconnect(0)
            run_atoll("up")
            self.assertTrue(db.reconnect(60))
            self.assertFalse(db.reconnect(60))
            self.assertNotEqual(db.incarnation, before)
            self.assertEqual(db.get("tree", b"py/kept"), b"1")


if __name__ == "__main__":
    unittest.main()
