#!/usr/bin/python3
"""Snapshot pages come to lie on the node that reads them, although another node writes them."""
import sys
import unittest

sys.dont_write_bytecode = True
from cli_cluster import Cluster, Folder  # noqa: E402

RECORDS = 5_000  # more than twice the snapshot cache
PER_TRANSACTION = 50
BYTES = 1_000
CHANGED = range(0, RECORDS, 500)
SETTINGS = {"memory": {"snapshot_cache": '"2MiB"', "lend_pool": "false"},
            "snapshot": {"warm_cache": "false"}, "gleaner": {"interval": '"1h"'}}


def puts(numbers, value):
    return "".join(f"put t k{number:06d} {value}\n" for number in numbers)


class Reads(unittest.TestCase):
    def nodes_with_pages(self, reader):
        """Node 0 changes a few records. Returns the nodes whose files have the new pages, if this
        node reads all records twice meanwhile. `reader`: None if no node does."""
        folder = Folder()
        self.addCleanup(folder.remove)
        cluster = Cluster(folder, more=SETTINGS)
        with cluster:
            cluster.atoll("storage", "create", "t", "--type", "mastertree", "--payload-bytes",
                          BYTES)
            for first in range(0, RECORDS, PER_TRANSACTION):
                cluster.atoll("kv", "txn",
                              text=puts(range(first, first + PER_TRANSACTION), "x" * BYTES))
            cluster.atoll("snapshot", "take")
            cluster.atoll("down")
        with cluster:
            for _ in range(2 if reader is not None else 0):
                keys = cluster.atoll("kv", "scan", "t", "--limit", 0, "--keys-only", "--node",
                                     reader).stdout
                self.assertEqual(keys.count("k0"), RECORDS)
            cluster.atoll("kv", "txn", "--node", 0, text=puts(CHANGED, "y" * BYTES))
            taken = cluster.json("snapshot", "take")["id"]
            files = (folder.path / "data").rglob(f"snapshot_{taken}.atsnap")
            cluster.atoll("down")
        return sorted({file.parent.name for file in files} - {"coordinator"})

    def test_pages_are_on_the_node_that_reads_them_often(self):
        self.assertEqual(self.nodes_with_pages(None), ["node0"])
        self.assertEqual(self.nodes_with_pages(1), ["node1"])
        self.assertEqual(self.nodes_with_pages(0), ["node0"])


if __name__ == "__main__":
    unittest.main()
