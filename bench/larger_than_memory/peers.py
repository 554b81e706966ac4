"""Runs RocksDB and LMDB beside Atoll, in a program for each store."""
import json
import shutil
import sys

from common.compiler import compile_sources, has_header
from larger_than_memory import programs
from larger_than_memory.cases import MIB, MIXES, NEW_KEYS, NODES, MemoryBenchError
from larger_than_memory.memory_group import memory_group

FOLDER = "bench/larger_than_memory"
SHARED_SOURCES = [f"{FOLDER}/peer_main.cpp", f"{FOLDER}/load.cpp", f"{FOLDER}/run.cpp",
                  "bench/ycsb/generator.cpp", "bench/ycsb/keyspace.cpp", "bench/ycsb/zipfian.cpp",
                  "bench/common/clock.cpp", "shared/base/tick_clock.cpp",
                  "shared/memory/histogram.cpp"]


def skip(system, reason):
    print(f"... {system} is skipped: {reason}", file=sys.stderr)


def peers(options, work):
    """Returns the peers that can run. Prints why the others cannot."""
    found = []
    if "rocksdb" in options.systems:
        if has_header("rocksdb/db.h"):
            found.append(RocksDb(options, work))
        else:
            skip("RocksDB", "the package librocksdb-dev is not installed")
    if "lmdb" in options.systems:
        try:
            with memory_group(options.memory_mib * MIB) as in_group:
                programs.run(in_group(["true"]), programs.Device(work))
            if has_header("lmdb.h"):
                found.append(Lmdb(options, work))
            else:
                skip("LMDB", "the package liblmdb-dev is not installed")
        except (MemoryBenchError, OSError) as error:
            skip("LMDB", error)
    return found


class Program:
    """A store in a program of its own, with Atoll's generator of keys and operations."""

    def __init__(self, options, work):
        self.options, self.work = options, work
        self.folder = work / self.store
        self.device = programs.Device(work)
        self.binary = work / f"peer_{self.store}"
        compile_sources(self.binary, [*SHARED_SOURCES, f"{FOLDER}/{self.store}_store.cpp"],
                        f"-l{self.store}")

    def can_run(self, case):
        return not case.is_tpcc

    def run(self, case):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        distribution = "uniform" if case.distribution == NEW_KEYS else case.distribution
        command = [str(self.binary), str(self.folder), str(self.cache_bytes()), str(case.count),
                   MIXES[case.mix], distribution, str(self.options.workers * NODES),
                   str(self.options.warmup), str(self.options.seconds)]
        try:
            done = self.execute(command)
            synced = done.sync()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        seconds = programs.measured(done, self.options)
        figures = json.loads(done.lines[-1][1])
        rate = figures["operations_per_second"]
        return programs.result(case, done, (seconds[0][0], seconds[-1][0], synced),
                               (rate, min(each for _, each in seconds[1:])),
                               {"all": figures["all_latency_us"], **figures["latency_us"]},
                               case.changed_bytes(rate))


class RocksDb(Program):
    name = "RocksDB"
    store = "rocksdb"

    def cache_bytes(self):
        return self.options.memory_mib * MIB * self.options.rocksdb_cache_percent // 100

    def execute(self, command):
        return programs.run(command, self.device)


class Lmdb(Program):
    """LMDB, whose cache is the page cache. So a memory control group limits it to the memory."""
    name = "LMDB"
    store = "lmdb"

    def cache_bytes(self):
        return self.options.memory_mib * MIB

    def execute(self, command):
        # The load runs in the group, too. So the pages that it leaves in the page cache count.
        with memory_group(self.options.memory_mib * MIB) as in_group:
            return programs.run(in_group(command), self.device)
