"""Snapshots gleaned from the log against checkpoints: the table of RESULTS.md."""
import statistics

from paper_figures.benches import MIB
from paper_figures.experiments import Outcome
from paper_figures.silor_recovery import KilledCluster
from paper_figures.silor_runs import require_taken, run_in_turns, run_tpcc, run_ycsb, systems

COMPARED = {"gleaned": "gleaned", "SiloR": "silor"}  # name -> durability.scheme
TAKERS = {"gleaned": "snapshot", "silor": "checkpoint"}  # durability.scheme -> command
MOST_RECOVERIES = 3
WORKLOADS = {"YCSB": ("ycsb", run_ycsb), "TPC-C": ("tpcc", run_tpcc)}
SMOKE_WORKLOADS = ("YCSB",)  # figure5 and recovery run TPC-C


def recovery_s(bench, options, workload, scheme):
    """Returns the median seconds of a recovery after all processes were killed. They are killed an
    interval after the only checkpoint or snapshot, so all recoveries have equally much log."""
    found = []
    for _ in range(min(options.repeat, MOST_RECOVERIES)):
        with KilledCluster(bench, options, workload, scheme) as cluster:
            cluster.fill(options.records)
            cluster.atoll(TAKERS[scheme], "take")
            cluster.change(options.interval)
            found.append(cluster.recover())
    return statistics.median(found)


def compare(bench, options):
    """Both schemes with the same number of seconds as their interval, with YCSB and TPC-C."""
    rows, lines = [], {}
    compared = {name: system for name, system in systems(options).items() if name in COMPARED}
    for title, (workload, run) in WORKLOADS.items():
        if options.smoke and title not in SMOKE_WORKLOADS:
            continue
        found = run_in_turns(bench, options, f"compare, {title}", compared, run(bench, options))
        require_taken(options, f"compare, {title}", found)
        for name, runs in found.items():
            bench.say(f"compare, {title}: recovery of {name}")
            seconds = recovery_s(bench, options, workload, COMPARED[name])
            rows.append([f"{title}, {name}", runs.rate, runs.worst_second, *runs.latencies,
                         runs.memory / MIB, runs.written_per_commit, runs.taken,
                         runs.copying_share, seconds])
            lines[f"{title}, {name}"] = runs.per_second
    outcome = Outcome(["workload, scheme", "thousand/s", "worst second, thousand/s",
                       "latency p50, ms", "latency p99, ms", "pages in memory, MiB",
                       "bytes written per transaction", "checkpoints or snapshots",
                       "share of the time", "recovery, s"], rows)
    outcome.plot = {"x": "seconds", "y": "thousand transactions/s", "log": "y", "lines": lines}
    return outcome
