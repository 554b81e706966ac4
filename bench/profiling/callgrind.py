"""Instructions, cache misses and mispredicted branches, by callgrind."""
import collections
import os
import subprocess
import time

from .cluster import WARM_UP_S, ProfileError

COLUMNS = [("Ir", "instructions"), ("I1", "I1 misses"), ("D1", "D1 misses"), ("LL", "LL misses"),
           ("Bm", "mispredicts")]
# Valgrind slows a node by two orders of magnitude. The hang limit is therefore high, and epochs are
# long, so that an epoch has as many transactions as usual. Few transactions run in total, so one
# pool size suffices for all benchmarks.
CONFIG = """
[cluster]
name = "profile"
hang_limit = "600s"
epoch = "1s"
log_dir = "log"
[memory]
volatile_pool = "2GiB"
"""
WRAPPER = """#!/bin/sh
exec valgrind --tool=callgrind --instr-atstart=no --cache-sim=yes --branch-sim=yes --dump-instr=yes \\
  --compress-pos=no --compress-strings=no --vgdb-prefix={work}/vgdb \\
  --callgrind-out-file={work}/out.%p {binary} "$@" 2>>{work}/valgrind.log
"""


def wrap(benchmark):
    """A folder of the same programs whose atoll-node runs inside valgrind."""
    folder = benchmark.work / "bin"
    folder.mkdir()
    for program in ("atoll", "atoll-coordinator"):
        copy = subprocess.run(["cp", str(benchmark.binaries / program), str(folder)])
        if copy.returncode != 0:
            raise ProfileError(f"{program} cannot be copied to {folder}")
    node = folder / "atoll-node"
    node.write_text(WRAPPER.format(work=benchmark.work, binary=benchmark.binaries / "atoll-node"))
    node.chmod(0o755)
    return folder


def control(benchmark, pids, *arguments):
    for pid in pids:
        run = subprocess.run(
            ["callgrind_control", f"--vgdb-prefix={benchmark.work}/vgdb", *arguments, str(pid)],
            capture_output=True, text=True)
        if run.returncode != 0 or "Error" in run.stdout:
            raise ProfileError("callgrind_control: " + run.stdout + run.stderr)


def measure(benchmark, window):
    """Returns ({(object, address): [Ir, I1, D1, LL, Bm]}, commits) of all node processes."""
    benchmark.binaries = wrap(benchmark)
    config = benchmark.work / "profile.toml"
    config.write_text(CONFIG)
    benchmark.start(3600, ["--config", str(config)])
    benchmark.wait_for_run()
    time.sleep(WARM_UP_S)
    pids = benchmark.node_pids()
    control(benchmark, pids, "--instr=on")
    # The simulated caches start empty. The misses that fill them are not counted.
    time.sleep(WARM_UP_S)
    control(benchmark, pids, "--zero")
    before = benchmark.commits()
    time.sleep(window)
    commits = benchmark.commits() - before
    control(benchmark, pids, "--dump")
    control(benchmark, pids, "--instr=off")
    benchmark.stop()
    costs = collections.defaultdict(lambda: [0] * len(COLUMNS))
    for file in sorted(os.listdir(benchmark.work)):
        if file.startswith("out.") and file.count(".") == 2:
            with open(benchmark.work / file, encoding="utf-8") as text:
                read(text, costs)
    return costs, commits


def read(text, costs):
    """Adds the self costs of one dump (its format: "Callgrind Format Specification")."""
    events, where, skip = [], "?", False
    for line in text:
        if line.startswith("events:"):
            events = line.split()[1:]
            columns = [(events.index("Ir"),), (events.index("I1mr"),),
                       tuple(events.index(name) for name in ("D1mr", "D1mw")),
                       tuple(events.index(name) for name in ("DLmr", "DLmw")),
                       tuple(events.index(name) for name in ("Bcm", "Bim"))]
        elif line.startswith("ob="):
            where = line[3:].strip()
        elif line.startswith("calls="):
            skip = True  # the next line has the cost of the callee
        elif line.startswith("0x"):
            if skip:
                skip = False
                continue
            words = line.split()
            values = list(map(int, words[2:])) + [0] * len(events)
            cost = costs[(where, int(words[0], 16))]
            for column, parts in enumerate(columns):
                cost[column] += sum(values[part] for part in parts)
