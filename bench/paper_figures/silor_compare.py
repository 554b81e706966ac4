"""Snapshots gleaned from the log against checkpoints: the table of RESULTS.md."""
from paper_figures.benches import MIB
from paper_figures.experiments import Outcome
from paper_figures.silor_recovery import KilledCluster
from paper_figures.silor_runs import run_in_turns, run_tpcc, run_ycsb, systems

COMPARED = {"gleaned": "gleaned", "SiloR": "silor"}  # name -> durability.scheme
WORKLOADS = {"YCSB": ("ycsb", run_ycsb), "TPC-C": ("tpcc", run_tpcc)}


def recovery_s(bench, options, workload, scheme):
    """Returns the seconds of a start after all processes were killed. They are killed a second
    after a checkpoint or snapshot was due."""
    with KilledCluster(bench, options, workload, scheme, options.interval) as cluster:
        cluster.fill(options.records)
        cluster.change(min(options.seconds, options.interval + 1))
        return cluster.recover()


def compare(bench, options):
    """Both schemes at the same interval, with YCSB and TPC-C."""
    rows, lines = [], {}
    compared = {name: system for name, system in systems(options).items() if name in COMPARED}
    for title, (workload, run) in WORKLOADS.items():
        found = run_in_turns(bench, options, f"compare, {title}", compared, run(bench, options))
        for name, runs in found.items():
            bench.say(f"compare, {title}: recovery of {name}")
            seconds = recovery_s(bench, options, workload, COMPARED[name])
            rows.append([f"{title}, {name}", runs.rate, runs.worst_second, *runs.latencies,
                         runs.memory / MIB, runs.written_per_commit, seconds])
            lines[f"{title}, {name}"] = runs.per_second
    outcome = Outcome(["workload, scheme", "thousand/s", "worst second, thousand/s",
                       "latency p50, ms", "latency p99, ms", "pages in memory, MiB",
                       "bytes written per transaction", "recovery, s"], rows)
    outcome.plot = {"x": "seconds", "y": "thousand transactions/s", "log": "y", "lines": lines}
    return outcome
