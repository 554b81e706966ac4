"""The experiments that look into the parts: rates of the log's threads, and profiles."""
import statistics

from paper_figures import published
from paper_figures.benches import MIB, NO_SNAPSHOTS, NVRAM_NS, STEP, nvram
from paper_figures.experiments import WAREHOUSE_BYTES, Outcome, hot_and_cold
from profiling import perf, phases
from profiling.cluster import Benchmark

# Groups of the phases of bench/profile, in the order of the plot.
GROUPS = {
    "transaction": ("record access", "access sets", "driver: procedures", "driver: inputs",
                    "driver: run", "clock", "copying (libc)"),
    "index": ("index: search", "index: insert", "index: upkeep"),
    "lock": ("commit: lock",),
    "verify": ("commit: verify",),
    "apply": ("commit: apply",),
    "log": ("log", "files"),
    "snapshot cache": ("snapshot cache",),
    "snapshot jobs": ("snapshot jobs",),
    "emulated NVRAM": ("emulated NVRAM",),
    "memory": ("memory",),
    "kernel": ("kernel",),
    "other": ("other",),
}


def spread(values):
    """Returns "mean ± standard deviation" in millions, and the mean."""
    mean = statistics.mean(values) / 1e6
    deviation = statistics.stdev(values) / 1e6 if len(values) > 1 else 0
    return f"{mean:.2f} ± {deviation:.2f}", mean


def table3(bench, options):
    """Log records per second of one mapper, one reducer and one logger."""
    rates = {"mapper": [], "reducer": [], "logger": []}
    bytes_per_record = 0
    for number in range(options.runs):
        log = bench.run("log", "--directory", bench.work, "--seconds", options.seconds,
                        "--nvm-write-ns", NVRAM_NS, *options.part_arguments,
                        what=f"logger, run {number + 1}")
        rates["logger"].append(log["records_per_second"])
        bytes_per_record = log["recording"]["bytes_per_record"]
        gleaner = bench.run("gleaner", "--directory", bench.work, *options.part_arguments,
                            what=f"mapper and reducer, run {number + 1}")
        newest = gleaner["scenarios"][-1]
        for part in ("mapper", "reducer"):
            rates[part].append(newest[part]["records_per_cpu_second"])
    rows = []
    for part, values in rates.items():
        text, mean = spread(values)
        of_paper, deviation = published.PARTS[part]
        rows.append([part, text, f"{of_paper:.2f} ± {deviation:.2f}", mean / of_paper])
    outcome = Outcome(["part", "Atoll, million records/s", "paper, million records/s", "ratio"],
                      rows, texts=3)
    outcome.plot = {"y": "million log records/s", "bars": list(rates),
                    "groups": {"Atoll": [spread(values)[1] for values in rates.values()],
                               "paper": [published.PARTS[part][0] for part in rates]}}
    outcome.plot["note"] = f"{bytes_per_record:.0f} bytes per record"
    return outcome


def profile(bench, options, arguments):
    """Returns the percent of the node processes' time by group."""
    bench.say("profile of " + " ".join(arguments))
    work = bench.work / "profile"
    work.mkdir(exist_ok=True)
    try:
        with Benchmark(bench.binaries, work, arguments) as benchmark:
            costs, _ = perf.measure(benchmark, options.seconds)
    finally:
        bench.clear()
    table = phases.sum_up(costs, bench.binaries / "atoll-node")
    total = sum(entry["cost"][0] for entry in table.values())
    known = {phase for group in GROUPS.values() for phase in group}
    assert set(table) <= known, f"phases without a group: {sorted(set(table) - known)}"
    return {name: 100 * sum(table[phase]["cost"][0] for phase in group if phase in table) / total
            for name, group in GROUPS.items()}


def profiles(name, shares):
    """The outcome of a figure with one profile per column."""
    first, second = shares
    of_paper = published.PROFILE[name]
    rows = [[group, f"{shares[first][group]:.1f}", f"{shares[second][group]:.1f}",
             *(f"{value:.1f}" for value in of_paper.get(group, ()))] for group in GROUPS]
    rows = [[*row, *[""] * (5 - len(row))] for row in rows]
    outcome = Outcome(["group", f"{first}, %", f"{second}, %", f"paper, {first}, %",
                       f"paper, {second}, %"], rows)
    outcome.plot = {"y": "% of the processor time", "stacks": list(shares),
                    "parts": {group: [shares[each][group] for each in shares]
                              for group in GROUPS}}
    return outcome


def figure9(bench, options):
    """Profile of TPC-C in memory, and with its initial data on emulated NVRAM."""
    warehouses = options.warehouses or options.nodes * options.workers
    pool = options.pool_mib * MIB // options.nodes // STEP * STEP
    half = max(STEP, warehouses * WAREHOUSE_BYTES // 2 // options.nodes // STEP * STEP)
    config = bench.config(
        f'[memory]\nvolatile_pool = "{pool}B"\nsnapshot_cache = "{half}B"\n[durability]\n'
        f"nvm_read_ns = {NVRAM_NS}\nnvm_write_ns = {NVRAM_NS}\n")
    in_memory = bench.tpcc_arguments({**NO_SNAPSHOTS, **nvram(NVRAM_NS)}, seconds=False)
    cold = ["tpcc", "-c", str(config), "--nodes", str(options.nodes), "--workers-per-node",
            str(options.workers), "--warehouses", str(warehouses), "--cold"]
    return profiles("figure9", {"in memory": profile(bench, options, in_memory),
                                "NVRAM, 5 µs": profile(bench, options, cold)})


def figure11(bench, options):
    """Profile of order-status with many lines, hot and cold."""
    shares = {}
    for name, (arguments, settings) in hot_and_cold(options, max(options.lines)).items():
        shares[name] = profile(bench, options, [*bench.tpcc_arguments(settings, seconds=False),
                                                *map(str, arguments)])
    outcome = profiles("figure11", shares)
    hot, cold = shares["hot"]["verify"], shares["cold"]["verify"]
    outcome.check("percent of the time for verification, cold less hot", cold - hot, "< 0",
                  cold < hot)
    return outcome
