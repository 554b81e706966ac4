"""Recoveries of clusters that were killed: section 6.4 of [SILOR14]."""
import contextlib
import json
import os
import signal
import subprocess
import time

from paper_figures import published
from paper_figures.benches import MIB, PATIENCE_S, STEP, PaperError
from paper_figures.experiments import Outcome

NEWEST, OLDEST = "newest_first", "oldest_first"
# durability.scheme -> end of a config file, after keys of [durability]
NEVER_DUE = {"silor": 'checkpoint_interval = "0s"\ncheckpoint_volume = "0B"\n',
             "gleaned": '[gleaner]\ninterval = "24h"\nlog_volume = "1TiB"\n'}
# Of the experiment of section 6.4: the order of files shows only if there are many of them.
LOG_FILE = "8MiB"
RECORD = ("--record-bytes", 100)  # of YCSB
# Of each node, at least: the warehouses of its workers, and what a short run adds to them.
TPCC_POOL_MIB = 1024
TPCC_SECONDS = 5
COLUMNS = ["recovery from", "records", "log files", "MB of files", "seconds", "MB/s", "new records",
           "overwritten", "older"]
MEGABYTES, SECONDS, MB_PER_S, OVERWRITTEN = map(COLUMNS.index, ("MB of files", "seconds", "MB/s",
                                                                "overwritten"))


class KilledCluster:
    """A cluster that is filled, changed, killed and started again. Use it in a `with` block, which
    ends the cluster and removes its data. `workload`: "ycsb" or "tpcc". `scheme`: that of
    durability. `log_file`: size of a log file. `record`: size of the records of YCSB, as options.
    No checkpoint or snapshot is due by time or volume.
    """

    def __init__(self, bench, options, workload="ycsb", scheme="silor", log_file="256MiB",
                 record=RECORD):
        self.bench, self.options, self.workload = bench, options, workload
        self.scheme, self.log_file, self.record = scheme, log_file, record
        self.log_files = 0  # when the cluster was killed last
        self.committed = 0.0  # transactions of the last `change`
        self.set_order(NEWEST)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.bench.clear()

    def end(self):
        """Ends the cluster if it runs, and waits until its launcher has ended."""
        subprocess.run([str(self.bench.binaries / "atoll"), "down", "--now", "-c",
                        str(self.config)], env=self.bench.environment, capture_output=True,
                       check=False)

    def set_order(self, order):
        """Sets the order of the log files in the next recoveries."""
        least = TPCC_POOL_MIB if self.workload == "tpcc" else 0  # of a node
        pool = max(self.options.pool_mib // self.options.nodes, least) * MIB // STEP * STEP
        self.config = self.bench.config(
            f"[[node]]\nworkers = {self.options.workers}\n" * self.options.nodes +
            f'[memory]\nvolatile_pool = "{pool}B"\n'
            f'[durability]\nmode = "durable"\nscheme = "{self.scheme}"\n'
            f'log_file_size = "{self.log_file}"\nreplay_order = "{order}"\n'
            f'{NEVER_DUE[self.scheme]}')

    def atoll(self, *arguments):
        command = [str(self.bench.binaries / "atoll"), *map(str, arguments), "-c",
                   str(self.config)]
        done = subprocess.run(command, env=self.bench.environment, capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise PaperError(f"{' '.join(command)}: ends with {done.returncode}:\n"
                             f"{done.stdout[-1000:]}{done.stderr[-1000:]}")
        return done.stdout

    def status(self):
        return json.loads(self.atoll("status", "--json"))

    def fill(self, records):
        self.atoll("up")
        sizes = (("--records", records, *self.record) if self.workload == "ycsb" else
                 ("--warehouses", self.options.nodes * self.options.workers))
        self.atoll("bench", self.workload, "prepare", *sizes)

    def change(self, seconds):
        report = self.bench.work / "report.json"
        mix = ("--workload", "silor") if self.workload == "ycsb" else ()
        self.atoll("bench", self.workload, "run", *mix, "--seconds", seconds, "--warmup", 0,
                   "--json", report)
        found = json.loads(report.read_text(encoding="utf-8"))
        self.bench.machine = found["machine"]
        self.committed = found["throughput_tps"] * seconds

    def kill(self):
        """Kills all nodes and the coordinator at once, and waits until they have ended. Then waits
        for the launcher, which notices their deaths and ends by itself."""
        processes = [process["pid"] for process in self.status()["processes"]]
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(os.path.exists(f"/proc/{pid}") for pid in processes):
            time.sleep(0.05)
        self.end()

    def recover(self):
        """Kills the cluster, starts it and verifies its data. Returns the seconds until it runs."""
        self.kill()
        self.log_files = sum(1 for _ in (self.bench.work / "data").rglob("log_*.atlog"))
        begin = time.monotonic()
        self.atoll("up")
        seconds = time.monotonic() - begin
        self.atoll("bench", self.workload, "verify")
        return seconds

    def replay(self):
        """Returns the counters of the latest replay."""
        return self.status()["checkpoints"]["replay"]


def recovery_row(name, records, cluster):
    """Returns the row of the latest replay. Each file is read by one node, and the counters are
    sums over the nodes.
    """
    replay = cluster.replay()
    seconds, megabytes = replay["ms"] / 1000, replay["bytes"] / 1e6
    return [name, records, cluster.log_files, megabytes, seconds, megabytes / max(seconds, 1e-3),
            replay["inserted"], replay["overwritten"], replay["older"]]


def tpcc_row(bench, options):
    """TPC-C, from a checkpoint of the load and the log of a short run, because it inserts."""
    bench.say("recovery from checkpoint and log, TPC-C")
    with KilledCluster(bench, options, "tpcc", log_file=LOG_FILE) as cluster:
        cluster.fill(options.records)
        cluster.atoll("checkpoint", "take")
        cluster.change(min(options.seconds, TPCC_SECONDS))
        cluster.recover()
        return recovery_row("TPC-C, checkpoint and log", "", cluster)


def recovery(bench, options):
    """Time of a recovery against its bytes, of checkpoint and log, and of log alone (6.4). The
    largest ones also with the oldest log files first. Then one of TPC-C."""
    rows, lines, overwritten = [], {}, {}
    sizes = [options.records // 4, options.records // 2, options.records]
    if options.smoke:
        del sizes[1]
    for name, checkpoint in (("checkpoint and log", True), ("log", False)):
        for records in sizes:
            bench.say(f"recovery from {name}, {records} records")
            with KilledCluster(bench, options, log_file=LOG_FILE) as cluster:
                cluster.fill(records)
                if checkpoint:
                    cluster.atoll("checkpoint", "take")
                # The log grows with the checkpoint.
                cluster.change(max(1, options.seconds * records // options.records))
                cluster.recover()
                row = recovery_row(name, records, cluster)
                rows.append(row)
                lines.setdefault(name, []).append([row[MEGABYTES], row[SECONDS]])
                if records != options.records:
                    continue
                # The log that was replayed is kept until the next checkpoint.
                cluster.set_order(OLDEST)
                cluster.recover()
                again = recovery_row(f"{name}, oldest file first", records, cluster)
                rows.append(again)
                overwritten[name] = row[OVERWRITTEN] / max(1, again[OVERWRITTEN])
    rows.append(tpcc_row(bench, options))
    for name, gigabytes, seconds in published.SILOR_RECOVERY:
        rows.append([f"paper, {name}", "", "", 1000 * gigabytes, float(seconds),
                     1000 * gigabytes / seconds, *[""] * 3])
    outcome = Outcome(COLUMNS, rows)
    outcome.plot = {"x": "MB of checkpoint and log files", "y": "seconds", "lines": lines}
    cores = min(options.nodes * options.workers, len(os.sched_getaffinity(0)))
    largest = next(row for row in rows if row[1] == options.records)
    per_core = largest[MB_PER_S] / cores
    outcome.check("MB/s and core of a recovery from checkpoint and log", per_core, "at least 100",
                  per_core >= 100)
    for name, points in lines.items():
        rates = [megabytes / max(seconds, 1e-3) for megabytes, seconds in points]
        steady = rates[-1] / max(rates[0], 1e-9)
        outcome.check(f"MB/s of the largest recovery from {name} over that of the smallest", steady,
                      "at least 0.8", steady >= 0.8)
    for name, share in overwritten.items():
        outcome.check(f"overwritten records of {name}, newest file first over oldest first", share,
                      "less than 1", share < 1)
    return outcome
