"""Log and recovery of small updates: parts of records against whole versions (R107)."""
import contextlib

from paper_figures.benches import PaperError
from paper_figures.experiments import Outcome
from paper_figures.silor_recovery import KilledCluster
from paper_figures.silor_runs import NO_CHECKPOINTS, SILOR, System, run_in_turns, run_ycsb

# Nodes read the variable at start-up: records of up to so many bytes are logged as whole versions.
# It is no key of the config, because users need not choose it.
LIMIT = "ATOLL_WHOLE_VERSION_BYTES"
RECORD_BYTES = (64, 128, 256, 512)
SMOKE_RECORD_BYTES = (128,)
UPDATE_BYTES = 16  # the smallest ones that the benchmark has
PARTS, WHOLE = "parts", "whole versions"


@contextlib.contextmanager
def limit_of(bench, limit):
    """Lets the clusters in the block log records of up to `limit` bytes as whole versions."""
    bench.environment[LIMIT] = str(limit)
    try:
        yield
    finally:
        del bench.environment[LIMIT]


def recovery_of(bench, options, record):
    """Returns seconds and MB of a recovery, and the transactions in its log in millions."""
    with KilledCluster(bench, options, record=record) as cluster:
        cluster.fill(options.records)
        cluster.atoll("checkpoint", "take")
        cluster.change(options.seconds)
        cluster.recover()
        replay = cluster.replay()
        return replay["ms"] / 1000, replay["bytes"] / 1e6, cluster.committed / 1e6


def whole(bench, options):
    """YCSB with a log and no checkpoints, with records of several sizes. Updates change 16 bytes.
    Then a recovery from a checkpoint of the load and the log of a run."""
    rows = []
    recoveries = {PARTS: [], WHOLE: []}
    for size in SMOKE_RECORD_BYTES if options.smoke else RECORD_BYTES:
        record = ("--record-bytes", size, "--fields", size // UPDATE_BYTES)
        limits = {PARTS: 0, WHOLE: size}
        measure = run_ycsb(bench, options, record)

        def run(what, system, limits=limits, measure=measure):
            with limit_of(bench, limits[what.rsplit(": ", 1)[1]]):
                return measure(what, system)

        lines = {name: System({**SILOR, **NO_CHECKPOINTS}) for name in limits}
        found = run_in_turns(bench, options, f"records of {size} bytes", lines, run)
        parts, wholes = found[PARTS].written_per_commit, found[WHOLE].written_per_commit
        if 0 < wholes <= parts:
            raise PaperError(f"records of {size} bytes: {WHOLE} have {wholes:.0f} bytes of log for "
                             f"each transaction, and {PARTS} have {parts:.0f}: does atoll-node "
                             f"read {LIMIT}?")
        for name, runs in found.items():
            bench.say(f"records of {size} bytes: recovery of {name}")
            with limit_of(bench, limits[name]):
                seconds, megabytes, millions = recovery_of(bench, options, record)
            slow = seconds / max(millions, 1e-9)
            rows.append([name, size, runs.rate, runs.rate / found[PARTS].rate,
                         runs.written_per_commit, seconds, megabytes, millions, slow])
            recoveries[name].append([size, slow])
    outcome = Outcome(["updates are logged as", "bytes of a record", "thousand/s", "of parts",
                       "bytes of log per transaction", "recovery, s", "MB of files",
                       "million transactions in the log", "recovery of a million, s"], rows)
    outcome.plot = {"x": "bytes of a record", "y": "recovery of a million transactions, s",
                    "lines": recoveries}
    return outcome
