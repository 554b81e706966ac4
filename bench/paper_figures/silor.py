"""The experiments of sections 6.2 to 6.4 of [SILOR14]. Each returns an Outcome."""
import contextlib
import json
import os
import signal
import subprocess
import time

from paper_figures import published
from paper_figures.benches import PATIENCE_S, PaperError, thousands
from paper_figures.experiments import Outcome
from paper_figures.watch import MetricsWatch

WATCH_PERIOD_S = 0.2
NO_CHECKPOINTS = {"durability.checkpoint_interval": "0s", "durability.checkpoint_volume": "0B"}
LATENCIES = ("p50", "p99")


def systems(options):
    """Returns the settings and arguments of each system, by its name."""
    interval = {"durability.checkpoint_interval": f"{options.interval}s"}
    return {
        "MemSilo": ({}, ("--durability", "off")),
        "LogSilo": ({"durability.scheme": "silor", **NO_CHECKPOINTS}, ()),
        "SiloR": ({"durability.scheme": "silor", **interval}, ()),
        "gleaned": ({"gleaner.interval": f"{options.interval}s"}, ()),
    }


class CheckpointWatch(MetricsWatch):
    """Records when checkpoints run, and how many were taken."""

    def __init__(self, bench):
        super().__init__(bench.log_dir, WATCH_PERIOD_S)
        self.began = time.monotonic()
        self.samples = []  # (seconds since the begin of the watch, whether one is running)
        self.taken = 0
        self.last_s = self.bytes = 0.0

    def take(self, found):
        metrics = dict(found)
        if "atoll_checkpoint_running" not in metrics:
            return
        self.samples.append((time.monotonic() - self.began, metrics["atoll_checkpoint_running"]))
        self.taken = max(self.taken, int(metrics["atoll_checkpoints_taken_total"]))
        self.last_s = metrics["atoll_checkpoint_duration_seconds"]
        self.bytes = metrics["atoll_checkpoint_bytes"]

    def share(self):
        """Returns the share of the samples at which a checkpoint was running."""
        return sum(running for _, running in self.samples) / max(1, len(self.samples))


def latency_text(report):
    """Latency until the commit was durable, or until the commit without a log, in ms."""
    run = report["runs"][0]
    found = run.get("durable_latency_us") or run["latency_us"]
    most = max(found.values(), key=lambda each: each["p99"])
    return [most[name] / 1000 for name in LATENCIES]


def throughputs(bench, options, figure, run):
    """Runs all systems in turns. `run(what, settings, arguments)` returns a report."""
    rates, latencies, taken, series, durations = {}, {}, {}, {}, {}
    for _ in range(options.repeat):
        for name, (settings, arguments) in systems(options).items():
            with CheckpointWatch(bench) as watch:
                report = run(f"{figure}: {name}", settings, arguments)
            rates.setdefault(name, []).append(thousands(report))
            latencies[name] = latency_text(report)
            taken[name] = watch.taken
            durations[name] = (watch.last_s, watch.share(), watch.bytes)
            per_second = report["runs"][0]["per_second_tps"]
            series[name] = [[second, rate / 1000] for second, rate in enumerate(per_second)]
    median = {name: sorted(found)[len(found) // 2] for name, found in rates.items()}
    base = median["MemSilo"]
    rows = [[name, median[name], median[name] / base, *latencies[name], taken[name],
             durations[name][0], durations[name][1]] for name in median]
    for name, rate in published.SILOR_RATES[figure].items():
        rows.append([f"paper, {name}", rate, rate / published.SILOR_RATES[figure]["MemSilo"],
                     *[""] * 5])
    outcome = Outcome(["system", "thousand/s", "of MemSilo", "latency p50, ms", "latency p99, ms",
                       "checkpoints", "the last took, s", "share of the time"], rows)
    outcome.plot = {"x": "seconds", "y": "thousand transactions/s", "lines": series}
    needed = published.SILOR_MUST_HOLD[figure]
    share = median["SiloR"] / base
    outcome.check("SiloR over MemSilo", share, f"at least {needed}", share >= needed)
    loss = 1 - median["SiloR"] / median["LogSilo"]
    outcome.check("loss of SiloR against LogSilo", loss, "at most 0.05", loss <= 0.05)
    if taken["SiloR"] == 0 and not options.smoke:
        raise PaperError(f"{figure}: no checkpoint was taken: give more --seconds, or a smaller "
                         "--interval")
    return outcome


def ycsb_arguments(options):
    return ["--workload", "silor", "--records", options.records, "--record-bytes", 100]


def common_arguments(bench, options, settings):
    values = {"cluster.data_dir": bench.work / "data", **settings}
    found = ["--nodes", options.nodes, "--workers-per-node", options.workers, "--seconds",
             options.seconds, "--warmup", options.warmup, "--no-verify"]
    for key, value in values.items():
        found += ["--set", f"{key}={value}"]
    return found


def figure1(bench, options):
    """YCSB, 70 % reads, 30 % writes, uniform keys (section 6.2)."""
    return throughputs(bench, options, "silor1", lambda what, settings, arguments: bench.run(
        "ycsb", *ycsb_arguments(options), *common_arguments(bench, options, settings), *arguments,
        what=what))


def figure5(bench, options):
    """TPC-C (section 6.3)."""
    return throughputs(bench, options, "silor5", lambda what, settings, arguments: bench.run(
        "tpcc", *common_arguments(bench, options, settings), *arguments, what=what))


class KilledCluster:
    """A cluster that is filled, changed, killed and started again."""

    def __init__(self, bench, options, checkpoint):
        self.bench, self.options, self.checkpoint = bench, options, checkpoint
        pool = options.pool_mib // options.nodes * 1024 * 1024
        self.config = bench.config(
            f"[[node]]\nworkers = {options.workers}\n" * options.nodes +
            f'[memory]\nvolatile_pool = "{pool}B"\n'
            '[durability]\nmode = "durable"\nscheme = "silor"\ncheckpoint_interval = "0s"\n')

    def atoll(self, *arguments, code=0):
        command = [str(self.bench.binaries / "atoll"), *map(str, arguments), "-c",
                   str(self.config)]
        done = subprocess.run(command, env=self.bench.environment, capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        if done.returncode != code:
            raise PaperError(f"{' '.join(command)}: ends with {done.returncode}:\n"
                             f"{done.stdout[-1000:]}{done.stderr[-1000:]}")
        return done.stdout

    def status(self):
        return json.loads(self.atoll("status", "--json"))

    def kill(self):
        """Kills all processes at once, and waits until they have ended."""
        processes = [process["pid"] for process in self.status()["processes"]]
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(os.path.exists(f"/proc/{pid}") for pid in processes):
            time.sleep(0.05)

    def recover(self, records):
        """Returns the counters of the replay."""
        try:
            self.atoll("up")
            self.atoll("bench", "ycsb", "prepare", "--records", records, "--record-bytes", 100)
            if self.checkpoint:
                self.atoll("checkpoint", "take")
            report = self.bench.work / "report.json"
            self.atoll("bench", "ycsb", "run", "--workload", "silor", "--seconds",
                       self.options.seconds, "--warmup", 0, "--json", report)
            self.bench.machine = json.loads(report.read_text(encoding="utf-8"))["machine"]
            self.kill()
            self.atoll("up")
            replay = self.status()["checkpoints"]["replay"]
            self.atoll("bench", "ycsb", "verify")
            return replay
        finally:
            subprocess.run([str(self.bench.binaries / "atoll"), "down", "--now", "-c",
                            str(self.config)], env=self.bench.environment, capture_output=True,
                           check=False)
            self.bench.clear()


def recovery(bench, options):
    """Time of a recovery against its bytes, of checkpoint and log, and of log alone (6.4)."""
    rows, lines = [], {}
    for name, checkpoint in (("checkpoint and log", True), ("log", False)):
        for records in (options.records // 4, options.records // 2, options.records):
            bench.say(f"recovery from {name}, {records} records")
            replay = KilledCluster(bench, options, checkpoint).recover(records)
            seconds, megabytes = replay["ms"] / 1000, replay["bytes"] / 1e6
            rate = megabytes / max(seconds, 1e-3)
            rows.append([name, records, megabytes, seconds, rate, replay["inserted"],
                         replay["overwritten"], replay["older"]])
            lines.setdefault(name, []).append([megabytes, seconds])
    for name, gigabytes, seconds in published.SILOR_RECOVERY:
        rows.append([f"paper, {name}", "", 1000 * gigabytes, float(seconds),
                     1000 * gigabytes / seconds, *[""] * 3])
    outcome = Outcome(["recovery from", "records", "MB read", "seconds", "MB/s", "new records",
                       "overwritten", "older"], rows)
    outcome.plot = {"x": "MB of checkpoint and log", "y": "seconds", "lines": lines}
    cores = min(options.nodes * options.workers, len(os.sched_getaffinity(0)))
    per_core = rows[2][4] / cores
    outcome.check("MB/s and core of a recovery from checkpoint and log", per_core, "at least 100",
                  per_core >= 100)
    return outcome


EXPERIMENTS = {"figure1": figure1, "figure5": figure5, "recovery": recovery}
NAMES = {"figure1": "silor1", "figure5": "silor5", "recovery": "silor_recovery"}
