#!/usr/bin/python3
"""The choice of `memory.cold_writes = "automatic"`, from a dense load to sparse updates.

A load in the order of the keys leaves the storage with pages: its changes are dense. Uniform
updates then copy a page for each record. The coordinator notices that between two snapshots or at
the next one, and changes the storage to single records. The speed of the machine decides which is
first. In a database that fits in the pools the coordinator never changes the storage.
"""
import sys
import unittest

sys.dont_write_bytecode = True
from cli_cluster import Cluster, Folder, wait_until  # noqa: E402

STORAGE = "ycsb_records"
MESSAGE = f"storage {STORAGE}: writes to cold records now bring single records into memory"
# With 140 bytes in a page, the records take 56 MB. The pools have 32 MiB together.
RECORDS = 400_000
FEW_RECORDS = 10_000


class ColdWrites(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.remove)

    def load(self, cluster, records):
        cluster.atoll("bench", "ycsb", "prepare", "--records", records, "--insert-order", "ordered")

    def update(self, cluster):
        cluster.atoll("bench", "ycsb", "run", "--mix", "0:100:0:0:0", "--distribution", "uniform",
                      "--seconds", 2, "--warmup", 0)

    def choice(self, cluster):
        storages = {each["name"]: each for each in cluster.json("status")["storages"]}
        return storages[STORAGE]["cold_writes"]

    def logged(self, cluster):
        return any(MESSAGE in file.read_text(encoding="utf-8", errors="replace")
                   for file in self.folder.path.rglob("*.log"))

    def test_sparse_updates_of_large_data_change_to_records(self):
        with Cluster(self.folder, name="large") as cluster:
            self.load(cluster, RECORDS)
            self.assertEqual(self.choice(cluster), "pages", "the load was dense")

            def has_changed():
                self.update(cluster)
                return self.choice(cluster) == "records"
            self.assertTrue(wait_until(has_changed))
            self.assertTrue(wait_until(lambda: self.logged(cluster)), "the log does not say why")

    def test_updates_of_data_that_fits_keep_pages(self):
        with Cluster(self.folder, name="fits") as cluster:
            self.load(cluster, FEW_RECORDS)
            self.update(cluster)
            cluster.atoll("snapshot", "take")
            self.update(cluster)
            self.assertEqual(self.choice(cluster), "pages")
            self.assertFalse(self.logged(cluster))

    def test_a_choice_of_pages_is_kept(self):
        with Cluster(self.folder, name="pages",
                     more={"memory": {"cold_writes": '"pages"'}}) as cluster:
            self.load(cluster, RECORDS)
            self.update(cluster)
            self.assertEqual(self.choice(cluster), "pages")
            self.assertFalse(self.logged(cluster))


if __name__ == "__main__":
    unittest.main()
