"""Runs `atoll bench ycsb` and `atoll bench tpcc` with limited memory."""
import json
import os
import pathlib
import shutil

from larger_than_memory import programs
from larger_than_memory.cases import MIB, MIXES, NEW_KEYS, NODES, VALUE_BYTES

STEP = 2 * MIB  # sizes of pools and caches are multiples of this
PERCENT_OF_CACHES = 20


class Atoll:
    name = "Atoll"

    def __init__(self, options, work):
        self.options, self.work = options, work
        self.device = programs.Device(work)
        self.binary = str(pathlib.Path(options.bin).resolve() / "atoll")

    def can_run(self, _):
        return True

    def run(self, case):
        config, data, report = (self.work / name for name in ("memory.toml", "data", "report.json"))
        shutil.rmtree(data, ignore_errors=True)
        config.write_text(self.config(data), encoding="utf-8")
        command = [self.binary, "bench", *self.arguments(case), "-c", str(config),
                   "--nodes", str(NODES), "--seconds", str(self.options.seconds),
                   "--warmup", str(self.options.warmup),
                   "--workers-per-node", str(self.options.workers),
                   "--no-verify", "--json", str(report)]
        if self.options.blind_updates and not case.is_tpcc:
            command.append("--blind-updates")
        try:
            done = programs.run(command, self.device,
                                dict(os.environ, XDG_RUNTIME_DIR=str(self.work)))
        finally:
            shutil.rmtree(data, ignore_errors=True)
        found = json.loads(report.read_text(encoding="utf-8"))["runs"][0]
        seconds = programs.measured(done, self.options)
        rates = found["throughput_tps"], min(rate for _, rate in seconds[1:])
        end = seconds[-1][0]  # the commits that count are durable by then
        kind = "durable_latency_us" if found.get("durable_latency_us") else "latency_us"
        latencies = {"all": found[f"all_{kind}"], **found[kind]}
        return {**programs.result(case, done, (seconds[0][0], end, end), rates, latencies,
                                  self.changed_bytes_per_s(case, found)),
                "longest_pause_ms": found.get("longest_pause_ms")}

    def config(self, data):
        memory = self.options.memory_mib * MIB
        caches = memory * PERCENT_OF_CACHES // 100
        cache = caches // NODES // STEP * STEP
        pool = (memory - caches) // NODES // STEP * STEP
        return (f'[cluster]\nname = "memory"\n'
                f'data_dir = "{data}"\nlog_dir = "{self.work / "logs"}"\n'
                f'[memory]\nvolatile_pool = "{pool}B"\nsnapshot_cache = "{cache}B"\n'
                f'cold_writes = "{self.options.cold_writes}"\n')

    @staticmethod
    def arguments(case):
        if case.is_tpcc:
            return ["tpcc", "--warehouses", str(case.count)]
        inserts = case.distribution == NEW_KEYS
        # A load in the order of the keys writes each page once, as the loads of the peers do.
        # Inserts need keys at random places.
        return ["ycsb", "--records", str(case.count), "--record-bytes", str(VALUE_BYTES),
                "--mix", MIXES[case.mix],
                "--distribution", "uniform" if inserts else case.distribution,
                "--insert-order", "hashed" if inserts else "ordered"]

    @staticmethod
    def changed_bytes_per_s(case, found):
        """A transaction of TPC-C changes records of many sizes, so their log records count."""
        if case.is_tpcc:
            return found["log_bytes"] / found["seconds"]
        return case.changed_bytes(found["throughput_tps"])
