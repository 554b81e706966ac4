#!/usr/bin/python3
"""`atoll config check|show|reload`, and the examples in configs/."""
import json
import os
import signal
import sys
import tomllib
import unittest

sys.dont_write_bytecode = True
from cli_cluster import ROOT, Cluster, Folder, wait_until  # noqa: E402

CONFIG = 78
NOT_RUNNING = 3


class ConfigTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.remove)

    def check(self, text, *words, code=0):
        return self.folder.atoll("config", "check", self.folder.write("c.toml", text), *words,
                                 code=code)


class Examples(ConfigTest):
    def test_every_example_is_valid_on_the_machine_that_it_is_for(self):
        examples = sorted((ROOT / "configs").glob("*.toml"))
        self.assertGreaterEqual(len(examples), 7)
        for example in examples:
            with self.subTest(example=example.name):
                ran = self.folder.atoll("config", "check", "--any-machine", example)
                self.assertIn(": valid: cluster ", ran.stdout)

    def test_every_example_fits_this_machine_with_its_own_folders_and_sizes(self):
        for example in sorted((ROOT / "configs").glob("*.toml")):
            values = tomllib.loads(example.read_text(encoding="utf-8"))
            here = self.folder.path / example.stem
            archive = here / "archive"
            archive.mkdir(parents=True)
            settings = {"cluster.run_dir": here / "run", "cluster.log_dir": here / "log",
                        "cluster.data_dir": here / "data", "memory.volatile_pool": "16MiB",
                        "memory.snapshot_cache": "2MiB", "memory.log_buffer": "2MiB",
                        "durability.log_file_size": "1MiB", "gleaner.disk_reserve": "1MiB"}
            if "directory" in values.get("archive", {}) and values["archive"]["directory"]:
                settings["archive.directory"] = archive
            for index, node in enumerate(values.get("node", [])):
                for key, value in {"cpus": "[]", "gleaner_cpus": "[]", "numa_node": "-1",
                                   "directories": f'["{here}/disk{index}"]'}.items():
                    if key in node:
                        settings[f"node[{index}].{key}"] = value
            words = []
            for key, value in settings.items():
                words += ["--set", f"{key}={value}"]
            with self.subTest(example=example.name):
                self.folder.atoll("config", "check", example, *words)
                self.assertFalse((here / "data").exists(), "a check makes nothing")


class Check(ConfigTest):
    def assert_refused(self, text, *parts):
        ran = self.check(text, code=CONFIG)
        for part in parts:
            self.assertIn(part, ran.stderr)
        self.assertNotIn("valid", ran.stdout)
        self.check(text, "--any-machine")  # the file itself is good
        return ran

    def test_a_library_that_is_missing_or_cannot_be_loaded_is_named(self):
        library = self.folder.path / "bank.so"
        text = f'[procedures]\nlibraries = ["{library}"]\n'
        self.assert_refused(text, f"procedures.libraries: {library}: cannot be read",
                            "build it, or change the path")
        library.write_text("no library", encoding="utf-8")
        self.assert_refused(text, "procedures.libraries:", f"{library}: cannot be loaded")
        self.assert_refused(f'[procedures]\nlibraries = ["{self.folder.path}"]\n', "is no file")

    def test_folders_that_cannot_be_used_are_named_with_their_keys(self):
        file = self.folder.write("file", "")
        for key in ("data_dir", "log_dir", "run_dir"):
            self.assert_refused(f'[cluster]\n{key} = "{file}/{key}"\n',
                                f"cluster.{key}: {file}/{key}: cannot be ")
        self.assert_refused(f'[[node]]\ndirectories = ["{file}"]\n',
                            f"node[0].directories: {file}: cannot be used: {file} is no folder")
        self.assert_refused(f'[archive]\ndirectory = "{self.folder.path}/none"\n',
                            f"archive.directory: {self.folder.path}/none: does not exist")
        self.assertFalse((self.folder.path / "data").exists(), "a check makes nothing")

    def test_a_disk_without_room_for_the_first_log_files_is_named(self):
        self.assert_refused('[[node]]\nworkers = 200\nloggers = 16\n[memory]\nlog_buffer = "2MiB"\n'
                            '[durability]\nlog_file_size = "64GiB"\nballast_files = 64\n',
                            "durability.log_file_size: ", "and the ballast", "do not fit")

    def test_a_missing_reserve_is_a_warning(self):
        ran = self.check('[gleaner]\ndisk_reserve = "1TiB"\n')
        if "warning: gleaner.disk_reserve: " not in ran.stderr:
            self.skipTest("this machine has a disk with more than 1 TiB of room")
        self.assertIn("no snapshot can be taken", ran.stderr)
        self.assertIn(": valid: ", ran.stdout)

    def test_json_has_mistakes_errors_and_warnings(self):
        file = self.folder.write("c.toml", "[memory]\nvolatile_pool = 3\n[log]\nlevl = 1\n")
        found = self.folder.json("config", "check", file, code=CONFIG)
        self.assertEqual((found["valid"], len(found["mistakes"])), (False, 2))
        self.assertEqual((found["mistakes"][0]["line"], found["mistakes"][0]["key"]),
                         (2, "memory.volatile_pool"))
        good = self.folder.json("config", "check", self.folder.write("g.toml", ""))
        self.assertEqual((good["valid"], good["nodes"], good["errors"]), (True, 2, []))

    def test_show_has_every_key_in_base_units_as_json(self):
        file = self.folder.write("c.toml", '[memory]\nvolatile_pool = "64MiB"\n')
        values = self.folder.json("config", "show", file, "--set", "log.level=warn")["values"]
        pool = values["memory"]["volatile_pool"]
        self.assertEqual((pool["value"], pool["text"], pool["reloadable"]),
                         (64 << 20, '"64MiB"', False))
        self.assertTrue(pool["origin"].endswith(":2"), pool)
        self.assertEqual(values["log"]["level"]["origin"], "--set log.level=warn")
        self.assertEqual(values["gleaner"]["interval"]["value"], 600)
        self.assertEqual(len(values["node"]), 2)

    def test_a_budget_of_memory_is_shown_with_its_parts(self):
        file = self.folder.write("c.toml", '[memory]\ntotal = "64MiB"\n')
        memory = self.folder.json("config", "show", file)["values"]["memory"]
        shown = {key: (memory[key]["text"], memory[key]["origin"])
                 for key in ("volatile_pool", "snapshot_cache")}
        self.assertEqual(shown, {"volatile_pool": ('"56MiB"', "memory.total"),
                                 "snapshot_cache": ('"8MiB"', "memory.total")})
        found = self.folder.json("config", "check", file, "--set", "memory.volatile_pool=32MiB",
                                 code=CONFIG)
        self.assertEqual([each["key"] for each in found["mistakes"]], ["memory.volatile_pool"])


class Reload(ConfigTest):
    def reload(self, cluster, *words, code=0):
        return cluster.atoll("config", "reload", *words, code=code)

    def snapshots_taken(self, cluster):
        return cluster.json("status")["snapshots"]["newest"]

    def test_new_values_take_effect_and_outlive_a_restart_of_the_cluster(self):
        with Cluster(self.folder, more={"cluster": {"restart": '"recover"'}}) as cluster:
            self.assertIn("has these values already", self.reload(cluster).stdout)
            before = self.snapshots_taken(cluster)
            cluster.set(gleaner={"interval": '"100ms"'}, log={"level": '"debug"'},
                        snapshot={"scrub_interval": '"100ms"', "scrub_rate": '"1MiB"'})
            dry = self.reload(cluster, "--dry-run")
            self.assertIn('gleaner.interval: "10min" -> "100ms"', dry.stdout)
            self.assertIn("nothing was changed", dry.stdout)
            self.assertIn('cluster "small": has the new values', self.reload(cluster).stdout)
            self.assertIn("has these values already", self.reload(cluster).stdout)
            cluster.atoll("storage", "create", "t", "--type", "mastertree")

            def has_new_snapshot():
                cluster.atoll("kv", "put", "t", "k", "v")
                return self.snapshots_taken(cluster) > before
            self.assertTrue(wait_until(has_new_snapshot), "gleaner.interval had no effect")
            for role in ("launcher", "coordinator", "node0", "node1"):
                log = self.folder.path / "state" / "atoll" / "small" / f"{role}.log"
                self.assertIn('config: gleaner.interval changes from "10min" to "100ms"',
                              log.read_text(encoding="utf-8"))

            coordinator = cluster.pid("coordinator")
            os.kill(cluster.pid("node1"), signal.SIGKILL)

            def is_back():
                status = json.loads(self.status_text(cluster))
                return (status.get("state") == "running" and status["processes"][0]["pid"]
                        not in (coordinator, None))
            self.assertTrue(wait_until(is_back))
            self.assertIn("has these values already", self.reload(cluster).stdout)

    def status_text(self, cluster):
        try:
            return cluster.atoll("status", "--json").stdout
        except AssertionError:
            return "{}"  # while the cluster restarts

    def test_a_key_that_cannot_change_is_named_and_nothing_is_changed(self):
        with Cluster(self.folder) as cluster:
            cluster.set(gleaner={"interval": '"1min"'}, memory={"volatile_pool": '"32MiB"'},
                        nodes={"count": 3})
            ran = self.reload(cluster, code=CONFIG)
            self.assertIn('memory.volatile_pool: cannot change while the cluster runs: it has '
                          '"16MiB", and "32MiB" is given', ran.stderr)
            self.assertIn("nodes.count: cannot change", ran.stderr)
            self.assertIn("nothing was changed", ran.stderr)
            refused = json.loads(self.reload(cluster, "--json", code=CONFIG).stdout)
            self.assertFalse(refused["applied"])
            self.assertEqual([(change["key"], change["reloadable"])
                              for change in refused["changes"]],
                             [("nodes.count", False), ("memory.volatile_pool", False),
                              ("gleaner.interval", True)])
            cluster.set(memory={"volatile_pool": '"16MiB"'}, nodes={"count": 2})
            done = json.loads(self.reload(cluster, "--json").stdout)
            self.assertEqual((done["applied"], [c["key"] for c in done["changes"]]),
                             (True, ["gleaner.interval"]))

    def test_single_values_can_be_set_without_a_file(self):
        with Cluster(self.folder):
            set_one = ("config", "reload", "--set", "archive.retry=5s")
            self.assertIn('archive.retry: "10s" -> "5s"', self.folder.atoll(*set_one).stdout)
            self.assertIn("has these values already", self.folder.atoll(*set_one).stdout)
            self.folder.atoll("config", "reload", code=2)
            self.folder.atoll("config", "reload", "--set", "cluster.epoch=20ms", code=CONFIG)
            self.folder.atoll("config", "reload", "--set", "gleaner.pool_low_water=95", code=CONFIG)
            # A relation to a value that the cluster has.
            ran = self.folder.atoll("config", "reload", "--set", "gleaner.pool_high_water=10",
                                    code=CONFIG)
            self.assertIn("gleaner.pool_high_water: expected more than gleaner.pool_low_water",
                          ran.stderr)

    def test_a_cluster_that_does_not_run_is_no_success(self):
        self.folder.atoll("config", "reload", "-c", self.folder.write("c.toml", ""),
                          code=NOT_RUNNING)


if __name__ == "__main__":
    unittest.main()
