"""Throughput and time of a recovery against the interval of checkpoints."""
from paper_figures.benches import MIB
from paper_figures.experiments import Outcome
from paper_figures.silor_recovery import KilledCluster
from paper_figures.silor_runs import SILOR, System, require_taken, run_in_turns, run_ycsb

FACTORS = (0.2, 0.5, 1, 2)  # of --interval


def intervals(options):
    """Returns the intervals in whole seconds, which is the unit of `bench run`."""
    return sorted({max(1, int(factor * options.interval)) for factor in FACTORS})


def recovery_of(bench, options, interval):
    """Returns seconds and MiB of a recovery from a checkpoint and the log of one interval."""
    with KilledCluster(bench, options) as cluster:
        cluster.fill(options.records)
        cluster.atoll("checkpoint", "take")
        cluster.change(interval)
        seconds = cluster.recover()
        return seconds, cluster.replay()["bytes"] / options.nodes / MIB


def period(bench, options):
    """YCSB with checkpoints at several intervals. Then a recovery for each of them."""
    lines = {f"{seconds} s": System({**SILOR, "durability.checkpoint_interval": f"{seconds}s"})
             for seconds in intervals(options)}
    found = run_in_turns(bench, options, "period", lines, run_ycsb(bench, options))
    require_taken(options, "period", found)
    longest = list(found.values())[-1].rate
    rows, rates, recoveries = [], [], []
    for interval, (name, runs) in zip(intervals(options), found.items()):
        bench.say(f"period: recovery, {name}")
        seconds, mib = recovery_of(bench, options, interval)
        rows.append([name, runs.rate, runs.rate / longest, runs.worst_second, runs.latencies[1],
                     runs.written_mb, runs.taken, runs.copying_share, seconds, mib])
        rates.append([interval, runs.rate])
        recoveries.append([interval, seconds])
    outcome = Outcome(["interval", "thousand/s", "of the longest interval",
                       "worst second, thousand/s", "latency p99, ms", "MB/s written", "checkpoints",
                       "share of the time", "recovery, s", "MiB of files"], rows)
    outcome.plot = {"x": "seconds between checkpoints", "y": "thousand transactions/s",
                    "y2": "recovery, s", "lines": {"throughput": rates},
                    "right": {"recovery": recoveries}}
    return outcome
