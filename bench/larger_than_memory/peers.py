"""Runs RocksDB and LMDB beside Atoll: db_bench, and a program of its own for each store."""
import csv
import json
import os
import re
import shutil
import sys

from common.compiler import compile_sources, has_header
from larger_than_memory import programs
from larger_than_memory.cases import (KEY_BYTES, MIB, MIXES, NEW_KEYS, NODES, VALUE_BYTES, WARMUP_S,
                                      MemoryBenchError)
from larger_than_memory.memory_group import memory_group

FOLDER = "bench/larger_than_memory"
SHARED_SOURCES = [f"{FOLDER}/peer_main.cpp", f"{FOLDER}/load.cpp", f"{FOLDER}/run.cpp",
                  "bench/ycsb/generator.cpp", "bench/ycsb/keyspace.cpp", "bench/ycsb/zipfian.cpp",
                  "bench/common/clock.cpp", "shared/memory/histogram.cpp"]
MEAN_SCAN = 50  # Atoll's scans have 1 to 100 records
DB_BENCH = {"read": ["--benchmarks=readrandom"],
            "95:5": ["--benchmarks=readrandomwriterandom", "--readwritepercent=95"],
            "50:50": ["--benchmarks=readrandomwriterandom", "--readwritepercent=50"],
            "insert": ["--benchmarks=overwrite"],
            "scan": ["--benchmarks=seekrandom", f"--seek_nexts={MEAN_SCAN}"]}
# db_bench inserts no new keys into a loaded database. So the loaded keys of this case are random
# ones of a range that is larger by this factor, and nearly all random keys of the range are new.
KEYS_PER_RECORD = 1000
PERCENTILES = re.compile(r"Max: ([\d.]+)\n.*P99: ([\d.]+) P99.9: ([\d.]+)")


def skip(system, reason):
    print(f"... {system} is skipped: {reason}", file=sys.stderr)


def peers(options, work):
    """Returns the peers that can run. Prints why the others cannot."""
    found = []
    if "rocksdb" in options.systems:
        if shutil.which("db_bench"):
            found.append(DbBench(options, work))
        else:
            skip("RocksDB except for zipfian keys", "the package rocksdb-tools is not installed")
        if "zipfian" in options.distributions:
            if has_header("rocksdb/db.h"):
                found.append(RocksDb(options, work))
            else:
                skip("RocksDB with zipfian keys", "the package librocksdb-dev is not installed")
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


def block_cache_bytes(options):
    return options.memory_mib * MIB * options.rocksdb_cache_percent // 100


class DbBench:
    """RocksDB's own benchmark, for all keys that it can choose."""
    name = "RocksDB"

    def __init__(self, options, work):
        self.options, self.work = options, work
        self.folder = work / "rocksdb"
        self.device = programs.Device(work)

    def can_run(self, case):
        return case.mix in DB_BENCH and case.distribution != "zipfian"

    def run(self, case):
        shutil.rmtree(self.folder, ignore_errors=True)
        keys = case.count * (KEYS_PER_RECORD if case.distribution == NEW_KEYS else 1)
        # The line that announces the run is needed at once, so lines must not be buffered.
        common = ["stdbuf", "-oL", "db_bench", f"--db={self.folder}", f"--num={keys}",
                  f"--key_size={KEY_BYTES}", f"--value_size={VALUE_BYTES}", "--compression_ratio=1",
                  f"--cache_size={block_cache_bytes(self.options)}", "--sync=0",
                  "--use_direct_reads", "--use_direct_io_for_flush_and_compaction"]
        load = (["--benchmarks=fillrandom,waitforcompaction", f"--writes={case.count}"]
                if case.distribution == NEW_KEYS else ["--benchmarks=fillseq"])
        try:
            programs.run([*common, *load, "--threads=1"], self.device)
            os.sync()  # the log of the load is still in memory
            return self.measure(case, common)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def measure(self, case, common):
        seconds = self.options.seconds
        file = self.work / "rates.csv"
        file.unlink(missing_ok=True)
        command = [*common, *DB_BENCH[case.mix], "--use_existing_db", "--histogram",
                   f"--threads={self.options.workers * NODES}", f"--duration={WARMUP_S + seconds}",
                   "--report_interval_seconds=1", f"--report_file={file}"]
        done = programs.run(command, self.device)
        with file.open(encoding="utf-8") as lines:
            rates = [int(row["interval_qps"]) for row in csv.DictReader(lines)]
        rates = rates[WARMUP_S : WARMUP_S + seconds]
        begins = [at for at, text in done.lines if text.startswith("DB path")]
        if not rates or not begins:
            raise MemoryBenchError(f"{' '.join(command)}: prints no rates:\n{done.text[-400:]}")
        begin = begins[-1] + WARMUP_S
        latencies = [dict(zip(("max", "p99", "p99.9"), map(float, found)))
                     for found in PERCENTILES.findall(done.text)]
        rate = sum(rates) / len(rates)
        return programs.result(case, done, (begin, begin + seconds, done.sync()),
                               (rate, min(rates)), latencies, case.changed_bytes(rate))


class Program:
    """A store in a program of its own, with Atoll's generator of keys and operations."""

    def __init__(self, options, work):
        self.options, self.work = options, work
        self.folder = work / self.store
        self.device = programs.Device(work)
        self.binary = work / f"peer_{self.store}"
        compile_sources(self.binary, [*SHARED_SOURCES, f"{FOLDER}/{self.store}_store.cpp"],
                        f"-l{self.store}")

    def run(self, case):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        distribution = "uniform" if case.distribution == NEW_KEYS else case.distribution
        command = [str(self.binary), str(self.folder), str(self.cache_bytes()), str(case.count),
                   MIXES[case.mix], distribution, str(self.options.workers * NODES), str(WARMUP_S),
                   str(self.options.seconds)]
        try:
            done = self.execute(command)
            synced = done.sync()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        seconds = programs.measured(done, self.options.seconds)
        figures = json.loads(done.lines[-1][1])
        rate = figures["operations_per_second"]
        return programs.result(case, done, (seconds[0][0], seconds[-1][0], synced),
                               (rate, min(each for _, each in seconds[1:])),
                               list(figures["latency_us"].values()),
                               case.changed_bytes(rate))


class RocksDb(Program):
    """RocksDB with zipfian keys, which db_bench cannot choose."""
    name = "RocksDB"
    store = "rocksdb"

    def can_run(self, case):
        return case.distribution == "zipfian"

    def cache_bytes(self):
        return block_cache_bytes(self.options)

    def execute(self, command):
        return programs.run(command, self.device)


class Lmdb(Program):
    """LMDB, whose cache is the page cache. So a memory control group limits it to the memory."""
    name = "LMDB"
    store = "lmdb"

    def can_run(self, case):
        return not case.is_tpcc

    def cache_bytes(self):
        return self.options.memory_mib * MIB

    def execute(self, command):
        # The load runs in the group, too. So the pages that it leaves in the page cache count.
        with memory_group(self.options.memory_mib * MIB) as in_group:
            return programs.run(in_group(command), self.device)
