"""Runs of the systems of [SILOR14] in turns, and what their metrics show meanwhile."""
import dataclasses
import statistics
import time

from paper_figures.benches import PaperError, thousands
from paper_figures.watch import MetricsWatch

WATCH_PERIOD_S = 0.2
# A window has this many periods, because the nodes are not sampled at the same instant.
WINDOW_PERIODS = 2
NO_CHECKPOINTS = {"durability.checkpoint_interval": "0s", "durability.checkpoint_volume": "0B"}
SILOR = {"durability.scheme": "silor"}
LATENCIES = ("p50", "p99")
WRITTEN = ("atoll_logger_written_bytes_total", "atoll_checkpoint_written_bytes_total",
           "atoll_composer_written_bytes_total", "atoll_reducer_dumped_bytes_total")


@dataclasses.dataclass
class System:
    """One line of a figure."""

    settings: dict
    arguments: tuple = ()
    nodes: int = 0    # 0: as the options say
    workers: int = 0  # of each node; 0: as the options say

    def shape(self, options):
        return self.nodes or options.nodes, self.workers or options.workers


def systems(options):
    """Returns the systems of figures 1 and 5, by their names."""
    interval = {"durability.checkpoint_interval": f"{options.interval}s"}
    return {
        "MemSilo": System({}, ("--durability", "off")),
        "LogSilo": System({**SILOR, **NO_CHECKPOINTS}),
        "SiloR": System({**SILOR, **interval}),
        "gleaned": System({"gleaner.interval": f"{options.interval}s"}),
    }


@dataclasses.dataclass
class Sample:
    """Sums over all processes at one instant."""

    at: float          # seconds
    is_copying: bool   # a checkpoint or snapshot is being taken
    commits: float
    written: float     # bytes of logs, checkpoints and snapshots
    memory: float      # bytes of pages that are in use, in pools and snapshot caches
    epochs: float      # epochs that have become durable
    epoch_s: float     # sum of their times from the end until then
    lag_s: float       # age of the oldest epoch that is not durable
    taken: int = 0     # checkpoints or snapshots, since the cluster has started
    took_s: float = 0  # the latest of them


class RunWatch(MetricsWatch):
    """Samples the metrics."""

    def __init__(self, bench):
        super().__init__(bench.log_dir, WATCH_PERIOD_S)
        self.samples = []

    def take(self, found):
        sums = {}
        for labelled, value in found:
            name = labelled.split("{")[0]
            sums[name] = sums.get(name, 0.0) + value
        if "atoll_commits_total" not in sums or "atoll_epoch_current" not in sums:
            return  # a process has not started yet

        def get(name):
            return sums.get(name, 0.0)

        self.samples.append(Sample(
            time.monotonic(),
            get("atoll_checkpoint_running") > 0 or get("atoll_snapshot_running") > 0,
            get("atoll_commits_total"), sum(map(get, WRITTEN)),
            get("atoll_pool_size_bytes") - get("atoll_pool_free_bytes") +
            get("atoll_snapshot_cache_used_bytes"),
            get("atoll_epoch_durable_seconds_count"), get("atoll_epoch_durable_seconds_sum"),
            get("atoll_durability_lag_seconds"),
            # A cluster has checkpoints or snapshots.
            int(get("atoll_checkpoints_taken_total") + get("atoll_snapshots_taken_total")),
            get("atoll_checkpoint_duration_seconds") + get("atoll_snapshot_duration_seconds")))

    def measured(self, seconds):
        """Returns the samples of the measured time, which ends with the last commit. The period of
        the last commit is not included, because nothing was committed in a part of it."""
        grown = [(before.at, after.at) for before, after in zip(self.samples, self.samples[1:])
                 if after.commits > before.commits]
        if not grown:
            return []
        last, end = grown[-1]
        return [each for each in self.samples if end - seconds <= each.at <= last]


def windows(samples):
    """Returns (end, thousand commits/s, latency in ms) of each window, from the first sample on.

    The latency is the mean time from the end of an epoch until its commits were durable, or the age
    of the oldest epoch that was not, if no epoch became durable in the window.
    """
    found = []
    for before, after in zip(samples, samples[WINDOW_PERIODS:]):
        rate = (after.commits - before.commits) / (after.at - before.at) / 1000
        epochs = after.epochs - before.epochs
        latency = (after.epoch_s - before.epoch_s) / epochs if epochs > 0 else after.lag_s
        found.append((after.at - samples[0].at, rate, 1000 * latency))
    return found


def checkpoint_spans(samples):
    """Returns (begin, end) of the times at which a checkpoint or snapshot was being taken."""
    spans = []
    for before, after in zip(samples, samples[1:]):
        if not after.is_copying:
            continue
        begin, end = before.at - samples[0].at, after.at - samples[0].at
        if spans and spans[-1][1] == begin:
            begin = spans.pop()[0]
        spans.append((begin, end))
    return spans


def panel(samples):
    """Returns a panel of a plot: throughput and latency, beside checkpoints or snapshots."""
    found = windows(samples)
    return {"throughput": [[at, rate] for at, rate, _ in found],
            "latency": [[at, latency] for at, _, latency in found],
            "spans": [list(span) for span in checkpoint_spans(samples)]}


def latencies_of(report):
    """Latency until the commit was durable, or until the commit without a log, in ms."""
    run = report["runs"][0]
    found = run.get("durable_latency_us") or run["latency_us"]
    most = max(found.values(), key=lambda each: each["p99"])
    return [most[name] / 1000 for name in LATENCIES]


class Runs:
    """The runs of one system. All figures are medians, unless their name says otherwise."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.reports, self.watches = [], []

    def add(self, report, watch):
        self.reports.append(report)
        self.watches.append(watch)

    def samples(self):
        """Returns the samples of the measured time of each run."""
        return [watch.measured(self.seconds) for watch in self.watches]

    @property
    def rate(self):
        """Thousand transactions/s."""
        return statistics.median(map(thousands, self.reports))

    @property
    def worst_second(self):
        """Thousand transactions/s in the second with the fewest commits."""
        return statistics.median(min(report["runs"][0]["per_second_tps"], default=0.0) / 1000
                                 for report in self.reports)

    @property
    def latencies(self):
        return [statistics.median(each) for each in zip(*map(latencies_of, self.reports))]

    @property
    def per_second(self):
        """[second, thousand transactions/s] of the last run."""
        return [[second, rate / 1000]
                for second, rate in enumerate(self.reports[-1]["runs"][0]["per_second_tps"])]

    @property
    def worst_window(self):
        """Thousand transactions/s in the window with the fewest commits."""
        return statistics.median(min((rate for _, rate, _ in windows(samples)), default=0.0)
                                 for samples in self.samples())

    @property
    def window_latencies(self):
        """Mean and maximum over the windows, in ms."""
        found = [[latency for _, _, latency in windows(samples)] or [0.0]
                 for samples in self.samples()]
        return [statistics.median(map(statistics.mean, found)),
                statistics.median(map(max, found))]

    @property
    def memory(self):
        """Most bytes of pages in use."""
        return statistics.median(max((each.memory for each in samples), default=0.0)
                                 for samples in self.samples())

    @property
    def written_per_commit(self):
        """Bytes of logs, checkpoints and snapshots, for each commit."""
        found = [(samples[-1].written - samples[0].written) /
                 (samples[-1].commits - samples[0].commits)
                 for samples in self.samples() if len(samples) > 1]
        return statistics.median(found) if found else 0.0

    @property
    def written_mb(self):
        """MB/s of logs, checkpoints and snapshots, on all devices."""
        found = [(samples[-1].written - samples[0].written) / 1e6 /
                 (samples[-1].at - samples[0].at)
                 for samples in self.samples() if len(samples) > 1]
        return statistics.median(found) if found else 0.0

    @property
    def taken_of_each(self):
        """Checkpoints or snapshots that ended in the measured time, of each run."""
        return [samples[-1].taken - samples[0].taken if samples else 0
                for samples in self.samples()]

    @property
    def taken(self):
        return statistics.median(self.taken_of_each)

    @property
    def took_s(self):
        """Seconds of the latest checkpoint or snapshot."""
        return statistics.median(samples[-1].took_s if samples else 0.0
                                 for samples in self.samples())

    @property
    def copying_share(self):
        """Share of the measured time in which a checkpoint or snapshot was being taken."""
        return statistics.median(sum(each.is_copying for each in samples) / max(1, len(samples))
                                 for samples in self.samples())

    @property
    def panel(self):
        """Throughput and latency of the last run over time."""
        return panel(self.samples()[-1])


def run_in_turns(bench, options, figure, lines, run):
    """Runs all systems in turns. `run(what, system)` returns a report. Returns Runs by name."""
    found = {name: Runs(options.seconds) for name in lines}
    for _ in range(options.repeat):
        for name, system in lines.items():
            with RunWatch(bench) as watch:
                report = run(f"{figure}: {name}", system)
            found[name].add(report, watch)
    return found


def require_taken(options, figure, found):
    """Raises an error if a run of the systems has taken no checkpoint or snapshot meanwhile. Smoke
    runs are too short for one."""
    for name, runs in found.items():
        if not options.smoke and min(runs.taken_of_each) < 1:
            raise PaperError(f"{figure}: {name} has completed no checkpoint or snapshot in the "
                             f"{options.seconds} s of a run: give more --seconds, or a smaller "
                             "--interval")


def arguments_of(bench, options, system):
    nodes, workers = system.shape(options)
    found = ["--nodes", nodes, "--workers-per-node", workers, "--seconds", options.seconds,
             "--warmup", options.warmup, "--no-verify"]
    for key, value in {"cluster.data_dir": bench.work / "data", **system.settings}.items():
        found += ["--set", f"{key}={value}"]
    return [*found, *system.arguments]


def run_ycsb(bench, options, record=("--record-bytes", 100)):
    """Returns a function for run_in_turns: YCSB, 70 % reads, 30 % writes, uniform keys."""
    return lambda what, system: bench.run(
        "ycsb", "--workload", "silor", "--records", options.records, *record,
        *arguments_of(bench, options, system), what=what)


def run_tpcc(bench, options):
    return lambda what, system: bench.run("tpcc", *arguments_of(bench, options, system), what=what)
