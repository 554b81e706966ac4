"""The experiments of the paper's evaluation with throughputs. Each returns an Outcome."""
import dataclasses

from paper_figures import published
from paper_figures.benches import (
    MIB, NO_SNAPSHOTS, NVRAM_NS, STEP, PaperError, nvram, thousands)

WAREHOUSE_BYTES = 95_000_000  # of a loaded warehouse in pages of a snapshot, roughly


@dataclasses.dataclass
class Outcome:
    """Results of an experiment."""

    columns: list        # titles of the table
    rows: list           # cells, as numbers or texts
    texts: int = 1       # number of columns with texts, which come first
    checks: list = dataclasses.field(default_factory=list)
    plot: dict = dataclasses.field(default_factory=dict)

    def check(self, what, value, limit, holds):
        self.checks.append({"what": what, "value": round(value, 3), "limit": limit,
                            "holds": bool(holds)})


def figure7(bench, options):
    """In-memory TPC-C against the remote ratio, without and with a log on emulated NVRAM."""
    found = {}
    for ratio in options.ratios:
        remote = ("--remote-percent", ratio, "--remote-payment-percent", min(100, 15 * ratio))
        found[ratio] = (
            thousands(bench.tpcc(f"remote {ratio} %, no log", *remote, "--durability", "off")),
            thousands(bench.tpcc(f"remote {ratio} %, log", *remote,
                                 settings={**NO_SNAPSHOTS, **nvram(NVRAM_NS)})))
    first = found[options.ratios[0]]
    rows = [[ratio, *figures, *(value / base for value, base in zip(figures, first))]
            for ratio, figures in found.items()]
    outcome = Outcome(["remote %", "no log, thousand/s", "log, thousand/s",
                       f"no log, of that at {options.ratios[0]} %",
                       f"log, of that at {options.ratios[0]} %"], rows, texts=0)
    outcome.plot = {"x": "remote order lines, %", "y": "thousand transactions/s",
                    "lines": {"no log": [[row[0], row[1]] for row in rows],
                              "log (5 µs)": [[row[0], row[2]] for row in rows]}}
    if 0 in found and 10 in found:
        for name, at in (("without a log", 0), ("with a log", 1)):
            share = found[10][at] / found[0][at]
            outcome.check(f"throughput at 10 % remote over that at 0 %, {name}", share, "> 0.8",
                          share > 0.8)
    return outcome


def shapes(options):
    """Returns (nodes, workers of each) from one worker to all cores and twice as many nodes."""
    if options.shapes:
        return options.shapes
    found = [(1, 1)]
    while found[-1][0] * found[-1][1] < options.nodes * options.workers:
        nodes, workers = found[-1]
        found.append((nodes * 2, workers) if nodes < options.nodes else
                     (nodes, min(workers * 2, options.workers)))
    return [*found, (1, options.nodes * options.workers)]


def table2(bench, options):
    """In-memory TPC-C, remote ratio 1, with a log, over nodes and workers."""
    rows = []
    for nodes, workers in dict.fromkeys(shapes(options)):
        report = bench.tpcc(f"{nodes} nodes, {workers} workers each", nodes=nodes,
                            workers=workers, settings={**NO_SNAPSHOTS, **nvram(NVRAM_NS)})
        cores = min(nodes * workers, report["machine"]["cores"])
        rows.append([f"Atoll, {nodes} x {workers}", nodes, nodes * workers, cores,
                     thousands(report), thousands(report) / cores])
    ours = list(rows)
    for server, sockets, cores, rate in published.SCALE_UP:
        rows.append([f"paper, {server}", sockets, sockets * 12, cores, rate, rate / cores])
    outcome = Outcome(["system", "nodes", "workers", "cores with a worker", "thousand/s",
                       "thousand/s per core"], rows)
    outcome.plot = {"x": "cores with a worker", "y": "thousand transactions/s per core", "log": "x",
                    "lines": {"Atoll": sorted([row[3], row[5]] for row in ours),
                              "paper": [[row[3], row[5]] for row in rows[len(ours):]]}}
    return outcome


def error_text(errors):
    known = [f"{100 * error:+.1f} %" for error in errors if error is not None]
    return ", ".join(known) or "not known"


def figure8(bench, options):
    """TPC-C whose initial data are in a snapshot, against the latency of emulated NVRAM."""
    warehouses = options.warehouses or options.nodes * options.workers
    pool = options.pool_mib * MIB // options.nodes // STEP * STEP
    half = max(STEP, warehouses * WAREHOUSE_BYTES // 2 // options.nodes // STEP * STEP)
    lines = {"cache of half the data": (half, "true", False),
             "smallest cache": (STEP, "false", False)}
    if options.blocks:
        lines["half, each written block"] = (half, "true", True)
    found, errors = {}, {}
    for latency in options.latencies:
        for name, (cache, lends, with_blocks) in lines.items():
            delays = nvram(round(latency * 1000), with_blocks)
            config = bench.config(
                f'[memory]\nvolatile_pool = "{pool}B"\nsnapshot_cache = "{cache}B"\n'
                f'lend_pool = {lends}\n[durability]\n'
                + "".join(f"{key.split('.')[1]} = {value}\n" for key, value in delays.items()))
            report = bench.run(
                "tpcc", "-c", config, "--nodes", options.nodes, "--workers-per-node",
                options.workers, "--warehouses", warehouses, "--seconds", options.seconds,
                "--warmup", options.warmup, "--repeat", options.repeat, "--no-verify", "--cold",
                what=f"{latency} µs, {name}")
            found[latency, name] = thousands(report)
            errors.setdefault(latency, []).append(bench.delay_error)
    rows = [[latency, *(found[latency, name] for name in lines), error_text(errors[latency])]
            for latency in options.latencies]
    outcome = Outcome(["latency, µs", *(f"{name}, thousand/s" for name in lines),
                       "error of the delays"], rows, texts=0)
    outcome.plot = {"x": "latency of emulated NVRAM, µs", "y": "thousand transactions/s",
                    "log": "x",
                    "lines": {name: [[latency, found[latency, name]]
                                     for latency in options.latencies] for name in lines}}
    cached = "cache of half the data"
    low = [latency for latency in options.latencies if latency <= 10]
    if len(low) > 1:
        share = found[max(low), cached] / found[min(low), cached]
        outcome.check(f"throughput at {max(low):g} µs over that at {min(low):g} µs, with the cache",
                      share, "> 0.85", share > 0.85)
    return outcome


def order_status(options, lines):
    return ("--mix", "0/0/100/0/0", "--loaded-lines", lines,
            *(("--warehouses", options.warehouses) if options.warehouses else ()))


def hot_and_cold(options, lines):
    """Returns the arguments and settings of the hot and of the cold run."""
    hot = (order_status(options, lines), {**NO_SNAPSHOTS, **nvram(NVRAM_NS)})
    return {"hot": hot, "cold": ((*hot[0], "--cold"), nvram(NVRAM_NS))}


def figure10(bench, options):
    """Order-status alone: all data in volatile pages, against all data in a snapshot."""
    warmup = 4 * options.warmup  # until the cache holds all data of the cold run
    rows = []
    for lines in options.lines:
        rates = {name: thousands(bench.tpcc(f"{lines} lines, {name}", *arguments,
                                            settings=settings, warmup=warmup))
                 for name, (arguments, settings) in hot_and_cold(options, lines).items()}
        rows.append([lines, rates["hot"], rates["cold"], rates["cold"] / rates["hot"]])
    outcome = Outcome(["lines of an order, at most", "hot, thousand/s", "cold, thousand/s",
                       "cold over hot"], rows, texts=0)
    outcome.plot = {"x": "lines of an order, at most", "y": "thousand transactions/s",
                    "log": "xy", "lines": {name: [[row[0], row[at]] for row in rows]
                                           for at, name in ((1, "hot"), (2, "cold"))}}
    if 500 in options.lines:
        ratio = rows[options.lines.index(500)][3]
        outcome.check("cold over hot at 500 lines (paper: 1.7)", ratio, ">= 1.3", ratio >= 1.3)
    return outcome


def check_sizes(options):
    """Returns an error for sizes that no cluster has."""
    if options.nodes < 1 or options.workers < 1:
        raise PaperError("--nodes and --workers are at least 1")
    if options.pool_mib < 64 * options.nodes:
        raise PaperError(f"--pool-mib: {options.pool_mib} is less than 64 per node")
