"""The experiments of sections 6.2 to 6.4 of [SILOR14]. Each returns an Outcome."""
from paper_figures import (
    published, silor_compare, silor_period, silor_recovery, silor_whole)
from paper_figures.experiments import Outcome
from paper_figures.machine import allows_direct_io
from paper_figures.silor_runs import (
    System, require_taken, run_in_turns, run_tpcc, run_ycsb, systems)

# Figure 4: pause of a checkpoint thread after each 32 MiB.
PAUSE = "100ms"
# Figure 4: share by which the worst window of many syncs may be worse than that of one sync.
TOLERANCE = 0.1


def throughputs(bench, options, figure, run):
    """Figures 1 and 5: all systems, with their throughput over time."""
    found = run_in_turns(bench, options, figure, systems(options), run)
    base = found["MemSilo"].rate
    rows = [[name, runs.rate, runs.rate / base, *runs.latencies, runs.written_mb, runs.taken,
             runs.took_s, runs.copying_share] for name, runs in found.items()]
    rates = published.SILOR_RATES[figure]
    for name, rate in rates.items():
        latency = published.SILOR_LATENCIES[figure].get(name, "")
        title = f"paper, {name}" + (" (mean latency)" if latency else "")
        rows.append([title, rate, rate / rates["MemSilo"], latency, "",
                     published.SILOR_WRITTEN_MB[figure].get(name, ""), *[""] * 3])
    outcome = Outcome(["system", "thousand/s", "of MemSilo", "latency p50, ms", "latency p99, ms",
                       "MB/s written", "checkpoints or snapshots", "the last took, s",
                       "share of the time"], rows)
    outcome.plot = panels(found)
    needed = published.SILOR_MUST_HOLD[figure]
    share = found["SiloR"].rate / base
    outcome.check("SiloR over MemSilo", share, f"at least {needed}", share >= needed)
    loss = 1 - found["SiloR"].rate / found["LogSilo"].rate
    outcome.check("loss of SiloR against LogSilo", loss, "at most 0.05", loss <= 0.05)
    require_taken(options, figure, {name: found[name] for name in silor_compare.COMPARED})
    return outcome


def figure1(bench, options):
    """YCSB, 70 % reads, 30 % writes, uniform keys (section 6.2)."""
    return throughputs(bench, options, "silor1", run_ycsb(bench, options))


def figure5(bench, options):
    """TPC-C (section 6.3)."""
    return throughputs(bench, options, "silor5", run_tpcc(bench, options))


def fewer_workers(options):
    """Returns (nodes, workers of each), with an eighth of the workers less, as in the paper."""
    if options.workers > 1:
        return options.nodes, options.workers - max(1, options.workers // 8)
    return max(1, options.nodes - 1), 1


def figure2(bench, options):
    """MemSilo with all workers, and with fewer (section 6.2)."""
    nodes, workers = fewer_workers(options)
    lines = {"MemSilo, all workers": System({}, ("--durability", "off")),
             "MemSilo, fewer workers": System({}, ("--durability", "off"), nodes, workers)}
    found = run_in_turns(bench, options, "silor2", lines, run_ycsb(bench, options))
    base = found["MemSilo, all workers"].rate
    rows = []
    for name, runs in found.items():
        nodes, workers = lines[name].shape(options)
        rows.append([name, nodes * workers, nodes, runs.rate, runs.rate / base, runs.worst_second])
    most = published.SILOR_WORKERS["MemSilo"][0][1]
    for workers, rate in published.SILOR_WORKERS["MemSilo"]:
        rows.append(["paper, MemSilo", workers, "", rate, rate / most, ""])
    outcome = Outcome(["system", "workers", "nodes", "thousand/s", "of all workers",
                       "worst second, thousand/s"], rows)
    outcome.plot = {"x": "seconds", "y": "thousand transactions/s",
                    "lines": {name: runs.per_second for name, runs in found.items()}}
    return outcome


def figure3(bench, options):
    """SiloR with fewer workers than cores, with as many, and with more (section 6.2)."""
    settings = systems(options)["SiloR"].settings
    many = 2 * options.workers

    def twice(running):
        # Not the default, which is all of these workers on a machine with few cores.
        return System({**settings, "node.running_workers": running}, workers=many)

    lines = {"SiloR, fewer workers": System(settings, (), *fewer_workers(options)),
             "SiloR": System(settings),
             "SiloR, twice the workers, half of them running": twice(options.workers),
             "SiloR, twice the workers, all running": twice(many)}
    found = run_in_turns(bench, options, "silor3", lines, run_ycsb(bench, options))
    rows = []
    for name, runs in found.items():
        nodes, workers = lines[name].shape(options)
        rows.append([name, nodes * workers, nodes, runs.rate, runs.worst_second,
                     runs.worst_window, *runs.latencies])
    for workers, rate, latency in published.SILOR_WORKERS["SiloR"]:
        rows.append(["paper, SiloR (mean latency)", workers, "", rate, "", "", latency, ""])
    outcome = Outcome(["system", "workers", "nodes", "thousand/s", "worst second, thousand/s",
                       "worst window, thousand/s", "latency p50, ms", "latency p99, ms"], rows)
    outcome.plot = panels(found)
    require_taken(options, "silor3", found)
    return outcome


def panels(found):
    """Plots throughput and latency of the last run of each system."""
    return {"x": "seconds", "y": "thousand/s", "y2": "latency, ms",
            "panels": {name: runs.panel for name, runs in found.items()}}


def figure4(bench, options):
    """One sync of a checkpoint against pauses, and against many syncs (section 6.2)."""
    settings = systems(options)["SiloR"].settings
    once = {**settings, "durability.checkpoint_sync_volume": "0B"}
    paused = {**once, "durability.checkpoint_pause": PAUSE}
    lines = {"(a) one sync": System(once),
             f"(b) one sync, pauses of {PAUSE}": System(paused),
             "(c) a sync every 32 MiB": System(settings)}
    found = run_in_turns(bench, options, "silor4", lines, run_ycsb(bench, options))
    rows = [[name, runs.rate, runs.worst_window, runs.worst_window / runs.rate,
             *runs.window_latencies, runs.latencies[1], runs.taken, runs.took_s]
            for name, runs in found.items()]
    outcome = Outcome(["checkpoint threads", "thousand/s", "worst window, thousand/s",
                       "worst window of the mean", "epoch latency, mean, ms",
                       "epoch latency, worst window, ms", "commit latency p99, ms", "checkpoints",
                       "the last took, s"], rows)
    outcome.plot = panels(found)
    # With direct I/O there are hardly any dirty pages for a sync, so only noise would be checked.
    if not allows_direct_io(bench.work):
        check_syncs(outcome, found["(a) one sync"], found["(c) a sync every 32 MiB"])
    require_taken(options, "silor4", found)
    return outcome


def check_syncs(outcome, single, many):
    """Checks that many syncs delay transactions less than a single one at the end."""
    worst = many.worst_window / max(single.worst_window, 1e-9)
    least, most = 1 - TOLERANCE, 1 + TOLERANCE
    outcome.check("throughput of the worst window, (c) over (a)", worst, f"at least {least:g}",
                  worst >= least)
    longest = many.window_latencies[1] / max(single.window_latencies[1], 1e-9)
    outcome.check("epoch latency of the worst window, (c) over (a)", longest, f"at most {most:g}",
                  longest <= most)


EXPERIMENTS = {"figure1": figure1, "figure2": figure2, "figure3": figure3, "figure4": figure4,
               "figure5": figure5, "recovery": silor_recovery.recovery,
               "compare": silor_compare.compare, "whole": silor_whole.whole,
               "period": silor_period.period}
NAMES = {"figure1": "silor1", "figure2": "silor2", "figure3": "silor3", "figure4": "silor4",
         "figure5": "silor5", "recovery": "silor_recovery", "compare": "silor_compare",
         "whole": "silor_whole", "period": "silor_period"}
