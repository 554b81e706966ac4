#!/usr/bin/python3
"""The output of each verb with --json is as its schema in ops/schemas/ says.

Programs may meet members that a schema does not name, because versions add some. This test allows
only members that have an entry.
"""
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

import jsonschema

sys.dont_write_bytecode = True
from cli_cluster import BIN, ROOT, Cluster, Folder  # noqa: E402

SCHEMAS = ROOT / "ops" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Their --json names a file for the report, which bench/README.md describes.
WITH_REPORT_FILES = {"bench log", "bench gleaner"}.union(
    f"bench {name}{verb}" for name in ("tpcc", "ycsb")
    for verb in ("", " prepare", " run", " verify", " cleanup"))
# These print the same documents.
SAME_SCHEMA = {f"kv {verb}": "kv-record"
               for verb in ("get", "put", "insert", "del", "add", "append", "check")}
SAME_SCHEMA.update({"keys generate": "keys", "keys show": "keys"})
NOT_RUNNING = 3
KV_GET = 1

TABLE = """\
[[table]]
name = "rows"
type = "mastertree"
payload_bytes = 2
key = [{ name = "k", type = "char(2)", offset = 0 }]
column = [{ name = "v", type = "char(2)", offset = 0 }]
"""


def strict(schema):
    """The schema without members that it does not name."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    if isinstance(made.get("properties"), dict) and "type" in made:
        made.setdefault("additionalProperties", False)
    return made


def kv_get_request(storage, key):
    """A request of the procedure kv.get: shared/kv/README.md has the layout."""
    return (struct.pack("<IIQ", 1, 1, 0)
            + struct.pack("<BBBBHHIIQQ", KV_GET, 0, len(storage), 0, len(key), 0, 0, 0, 0, 0)
            + storage + key)


def documents_in(text):
    decoder = json.JSONDecoder()
    found = []
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:]
    return found


class JsonCommandsTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.remove)
        self.seen = set()

    def schema_of(self, verb):
        path = SCHEMAS / f"{SAME_SCHEMA.get(verb, verb.replace(' ', '-'))}.json"
        self.assertTrue(path.exists(), f"`atoll {verb} --json` has no schema {path.name}")
        schema = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(schema["$schema"], DIALECT, path.name)
        jsonschema.Draft202012Validator.check_schema(schema)
        return schema

    def validate(self, verb, document):
        self.seen.add(verb)
        validator = jsonschema.Draft202012Validator(strict(self.schema_of(verb)))
        errors = [f"{list(error.absolute_path)}: {error.message}"
                  for error in validator.iter_errors(document)]
        self.assertEqual(errors, [], f"`atoll {verb} --json`: {json.dumps(document)[:2000]}")
        self.assertEqual(document["schema_version"], 1, verb)
        return document

    def expect(self, verb, *words, code=0):
        """Runs a command, which finds the only running cluster or gets its config in `words`."""
        ran = self.folder.atoll(*verb.split(), *words, "--json", code=code)
        return self.validate(verb, json.loads(ran.stdout))

    def verbs_with_json(self, above=()):
        text = self.folder.atoll(*above, "--help").stdout
        below = re.search(r"^Subcommands:\n(.*?)(\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
        names = re.findall(r"^  ([a-z]+) ", below.group(1), re.MULTILINE) if below else []
        own = {" ".join(above)} if re.search(r"^  --json\b", text, re.MULTILINE) else set()
        return own.union(*[self.verbs_with_json((*above, name)) for name in names])

    def pin_old_snapshot(self):
        """Pins a snapshot of which the next one uses no page."""
        self.expect("storage create", "t", "--type", "mastertree")
        self.expect("kv put", "t", "k", "v")
        self.expect("snapshot take")
        self.expect("snapshot pin", "--name", "old")
        self.expect("kv put", "t", "k", "w")
        self.expect("snapshot take")
        described = self.expect("storage describe", "t")["snapshot"]
        self.assertEqual(described["records"], 1)
        self.assertFalse(described["records_is_estimate"])

    def run_storages(self):
        self.expect("storage create", "s", "--type", "sequential")
        self.expect("storage create", "a", "--type", "array", "--payload-bytes", 8, "--records", 9)
        self.expect("storage ls")
        self.expect("storage describe", "a")

    def run_records(self):
        self.expect("kv put", "t", "k", "v")
        self.expect("kv insert", "t", "l", "v")
        self.expect("kv get", "t", "k")
        self.expect("kv check", "t", "k", "v")
        self.expect("kv add", "a", 3, 5, "--return")
        self.expect("kv append", "s", "v")
        self.expect("kv scan", "t", "--limit", 1)
        self.expect("kv txn", "get t k", "scan t", "put t m v", "add a 3 1")
        self.expect("kv del", "t", "l")
        self.expect("kv add", "t", "number", 5, "--blind", "--return")
        self.expect("kv del", "t", "number")
        request = self.folder.path / "request"
        request.write_bytes(kv_get_request(b"t", b"k"))
        self.expect("procedure call", "kv.get", "--input-file", request)
        reply = self.folder.path / "reply"
        told = self.expect("procedure call", "kv.get", "--input-file", request, "--output", reply)
        self.assertEqual(told["output_file"], str(reply))
        self.assertEqual(told["output_bytes"], reply.stat().st_size)
        self.expect("procedure ls")

    def run_shell(self):
        lines = ("set json on\nset\nstorages\nbegin\nput t s 1\nget t s\nscan t\ncommit\nbegin\n"
                 "abort\nbegin snapshot\nabort\ncreate x\ndrop x\nset timing on\nget t s\n")
        documents = documents_in(self.folder.atoll("shell", text=lines).stdout)
        self.assertGreaterEqual(len(documents), 16)
        for document in documents:
            self.validate("shell", document)

    def make_keys(self, stem=""):
        """The config of network sessions, with the keys of the nodes and of a client."""
        for name in ("node", "client"):
            path = self.folder.path / f"{stem}{name}.key"
            key = self.folder.atoll("keys", "generate", path).stdout
        self.folder.write(f"{stem}clients", f"{key.strip()} alice read,write\n")
        return {"enabled": "true", "key_file": f'"{stem}node.key"',
                "authorised_keys": f'"{stem}clients"'}

    def run_keys(self):
        file = self.folder.path / "other.key"
        made = self.expect("keys generate", file)
        self.assertEqual(self.expect("keys show", file), made)

    def lines_of(self, verb, *words):
        """Runs a command that prints an object per line."""
        printed = self.folder.atoll(*verb.split(), *words, "--json").stdout
        return [self.validate(verb, json.loads(line)) for line in printed.splitlines()]

    def run_life_cycle(self):
        """Starts and stops a cluster, and reads its logs."""
        cluster = Cluster(self.folder, name="lives", more={
            "network": self.make_keys("lives_") | {"base_port": 0}})
        try:
            started = self.expect("up", "-c", cluster.file)
            self.assertEqual([started["state"], started["cluster"]], ["running", "lives"])
            self.assertEqual(set(started["metrics"]), {"coordinator", "node0", "node1"})
            self.assertEqual(set(started["network"]), {"node0", "node1"})
            self.assertEqual([each["node"] for each in started["nodes"]], [0, 1])
            self.assertEqual(started["durability"], "durable")
            lines = self.lines_of("logs", "-c", cluster.file)
            self.assertEqual({line["process"] for line in lines if "level" in line},
                             {"launcher", "coordinator", "node0", "node1"}, lines)
            pid = int(cluster.pid("node0"))
            self.assertGreater(pid, 1)
            stopped = self.expect("down", "-c", cluster.file)
            self.assertEqual(stopped["cluster"], "lives")
            self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())
            log = pathlib.Path(started["log_dir"]) / "node1.log"
            with open(log, "a", encoding="utf-8") as file:
                file.write("a line of a library\n")
            last = self.lines_of("logs", "node1", "-n", 1, "-c", cluster.file)
            self.assertEqual([line["message"] for line in last], ["a line of a library"])
            self.assertNotIn("level", last[0])
        finally:
            cluster.__exit__()

    def run_demo(self):
        ran = self.lines_of("demo", "--seconds", 1, "--rate", 100, "--keep",
                            "--dir", self.folder.path / "demos")
        self.assertEqual([line["event"] for line in ran], ["running", "ended", "kept"])
        self.assertEqual(ran[1]["sum"], ran[1]["expected_sum"])
        self.assertTrue(pathlib.Path(ran[2]["config_file"]).is_file())

    def run_network(self):
        """Lists a session over the network while it is open, and ends it."""
        status = self.expect("status")
        node = next(each for each in status["processes"] if each["role"] == "node0")
        where = (f"atoll+tcp://{node['network']['endpoint']}?server_key={node['network']['key']}"
                 f"&key_file={self.folder.path}/client.key")
        with subprocess.Popen([BIN / "atoll", "shell", "--connect", where], text=True,
                              env=self.folder.environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as shell:
            shell.stdin.write("get t k\n")
            shell.stdin.flush()
            self.assertEqual(shell.stdout.readline(), "v\n")
            listed = self.expect("session ls")["sessions"]
            remote = [each for each in listed if "address" in each]
            self.assertEqual([each["key"] for each in remote], ["alice"], listed)
            self.assertEqual(remote[0]["rights"], "read,write")
            self.expect("top", "--once")
            killed = self.expect("session kill", f"0/{remote[0]['session']}")
            self.assertEqual(len(killed["killed"]), 1)
            shell.stdin.close()
        self.expect("kv get", "t", "k", "--connect", where)
        self.expect("storage ls", "--connect", where)
        self.expect("storage describe", "t", "--connect", where)

    def run_snapshots(self):
        self.expect("snapshot take")
        self.expect("snapshot ls")
        self.expect("snapshot pin", "--name", "p")
        self.expect("snapshot damage")
        self.expect("snapshot verify")
        self.expect("snapshot unpin", "p")
        self.expect("kv put", "t", "n", "v")
        self.expect("snapshot take")

    def run_checkpoints(self):
        more = {"durability": {"scheme": '"silor"', "checkpoint_interval": '"0s"'}}
        with Cluster(self.folder, name="silor", more=more) as cluster:
            self.expect("storage create", "t", "--type", "mastertree")
            self.expect("kv put", "t", "k", "v")
            taken = self.expect("checkpoint take")
            self.assertGreaterEqual(taken["records"], 1)
            counted = {"records": 1, "records_is_estimate": False}
            self.assertEqual(self.expect("storage describe", "t")["checkpoint"], counted)
            self.assertEqual(self.expect("storage ls")["storages"][0]["checkpoint"], counted)
            self.expect("checkpoint ls")
            self.expect("checkpoint verify")
            self.expect("snapshot damage")
            self.expect("status")
            self.expect("top", "--once")
            self.expect("backup", self.folder.path / "checkpoints")
            cluster.atoll("down")
            verified = self.expect("checkpoint verify", "-c", cluster.file)
            self.assertTrue(verified["intact"])

    def run_backups(self, cluster):
        backups = self.folder.path / "backups"
        taken = self.expect("backup", backups)
        self.expect("backup ls", backups)
        self.expect("backup verify", backups)
        self.expect("restore", backups, "--to", self.folder.path / "restored")
        cluster.atoll("down")
        self.expect("snapshot unpin", "old", "-c", cluster.file)
        self.expect("snapshot rm", 1, "-c", cluster.file)
        self.expect("wal ls", "-c", cluster.file)
        self.expect("wal verify", "-c", cluster.file)
        self.expect("wal dump", "-c", cluster.file)
        self.expect("snapshot verify", "-c", cluster.file)
        self.expect("status", "-c", cluster.file, code=NOT_RUNNING)
        self.expect("backup", backups, "-c", cluster.file)
        self.expect("backup rm", backups, taken["id"])

    def adopt_moved(self, cluster):
        data = self.folder.path / "data" / "atoll" / cluster.name
        shutil.move(data, data.with_name("moved"))
        cluster.set(cluster={"data_dir": f'"{data.with_name("moved")}"'})
        self.expect("data adopt", "--moved", "-c", cluster.file)

    def build_procedures(self):
        """Builds the library of the example. Returns its path."""
        library = self.folder.path / "transfer.so"
        subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-I",
                        ROOT / "engine" / "api", ROOT / "bench/example_procedure/transfer.cpp",
                        "-o", library], check=True)
        return library

    def test_every_output_is_as_its_schema_says(self):
        more = {"snapshot": {"keep": 1}, "network": self.make_keys(),
                "procedures": {"libraries": f'["{self.build_procedures()}"]'}}
        with Cluster(self.folder, more=more) as cluster:
            self.expect("status")
            self.expect("procedure reload")
            self.expect("top", "--once")
            self.pin_old_snapshot()
            self.run_storages()
            self.run_records()
            self.run_network()
            schema = self.folder.write("t_schema.toml", TABLE)
            rows = self.folder.write("t.csv", "k,v\nab,cd\nef,gh\n")
            self.expect("storage create", "rows", "--type", "mastertree", "--payload-bytes", 2)
            self.expect("import", "rows", rows, "--schema", schema)
            self.expect("export", self.folder.path / "export", "--schema", schema)
            self.run_snapshots()
            self.run_shell()  # reads a snapshot
            self.expect("session ls")
            self.expect("session kill", "--all")
            self.expect("config reload", "--set", "gleaner.interval=5min")
            self.expect("storage drop", "a")
            self.expect("status")
            self.run_backups(cluster)
            self.adopt_moved(cluster)
            self.expect("config check", cluster.file)
            self.expect("config show", cluster.file)
        self.run_checkpoints()
        self.run_keys()
        self.run_life_cycle()
        self.run_demo()
        bad = self.folder.write("bad.toml", "[memory]\nvolatile_pool = 3\n")
        self.expect("config check", bad, code=78)
        self.expect("doctor")
        self.expect("version")
        missing = self.verbs_with_json() - self.seen - WITH_REPORT_FILES - {"shell"}
        self.assertEqual(missing, set(), "these verbs print JSON that no step above validates")
        names = {SAME_SCHEMA.get(verb, verb.replace(" ", "-")) for verb in self.seen}
        self.assertEqual({path.stem for path in SCHEMAS.glob("*.json")} - names, set(),
                         "these schemas are of no verb")


if __name__ == "__main__":
    unittest.main()
