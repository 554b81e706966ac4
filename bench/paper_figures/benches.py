"""Runs `atoll bench` for one point of a figure."""
import json
import os
import pathlib
import shutil
import subprocess

from paper_figures.watch import MetricsWatch

MIB = 1 << 20
STEP = 2 * MIB  # sizes of pools and caches are multiples of this
PATIENCE_S = 3600
SCRAPE_PERIOD_S = 0.5
TARGETS = "prometheus-targets.json"
# Of the nodes. The coordinator's delays are few and do not concern transactions.
ASKED, TAKEN = (f"atoll_emulated_delay_{name}_seconds_total{{" for name in ("asked", "taken"))
# The paper's latency where a figure has one only.
NVRAM_NS = 5_000
# Only the load takes a snapshot, so all volatile pages are kept.
NO_SNAPSHOTS = {"gleaner.interval": "24h", "gleaner.log_volume": "1TiB"}


class PaperError(Exception):
    """What the user is told."""


def nvram(ns, with_blocks=False):
    """Settings of emulated NVRAM with this latency."""
    settings = {"durability.nvm_read_ns": ns, "durability.nvm_write_ns": ns}
    if with_blocks:
        settings["durability.nvm_block_ns"] = ns
    return settings


class DelayWatch(MetricsWatch):
    """Reads the delays of emulated NVRAM."""

    def __init__(self, log_dir):
        super().__init__(log_dir, SCRAPE_PERIOD_S)
        self.asked = self.taken = 0.0

    def take(self, found):
        asked = sum(value for name, value in found if name.startswith(ASKED))
        if asked > 0:  # a process that ends shows nothing
            self.asked = asked
            self.taken = sum(value for name, value in found if name.startswith(TAKEN))

    def error(self):
        """Returns by which share the delays were longer than asked, or None without delays."""
        return self.taken / self.asked - 1 if self.asked > 0 else None


class Bench:
    """Runs benchmarks on clusters of their own, with data in `work`."""

    def __init__(self, options, work, say):
        self.options, self.work, self.say = options, work, say
        self.binaries = pathlib.Path(options.bin).resolve()
        # Without a config file a benchmark makes the folder of its logs below TMPDIR.
        self.folder = work / "tmp"
        self.folder.mkdir(exist_ok=True)
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=str(work), HOME=str(work),
                                TMPDIR=str(self.folder))
        self.machine = None      # of the last report
        self.delay_error = None  # of the last run, see DelayWatch

    def run(self, *arguments, what=""):
        """Runs `atoll bench` with these arguments. Returns the report."""
        report = self.work / "report.json"
        command = [str(self.binaries / "atoll"), "bench", *map(str, arguments),
                   "--json", str(report)]
        self.say(what or " ".join(map(str, arguments)))
        try:
            with DelayWatch(self.log_dir) as watch:
                done = subprocess.run(command, env=self.environment, capture_output=True,
                                      text=True, timeout=PATIENCE_S)
        finally:
            self.clear()
        self.delay_error = watch.error()
        if done.returncode != 0:
            raise PaperError(f"{' '.join(command)}: ends with {done.returncode}:\n"
                             f"{done.stdout[-1000:]}{done.stderr[-1000:]}")
        found = json.loads(report.read_text(encoding="utf-8"))
        self.machine = found["machine"]
        return found

    def log_dir(self):
        """Returns the folder with the logs of the cluster that runs now."""
        folders = [self.work / "logs", *self.folder.iterdir()]
        return next(each for each in folders if (each / TARGETS).exists())

    def clear(self):
        for name in ("data", "logs", ".local"):
            shutil.rmtree(self.work / name, ignore_errors=True)

    def tpcc(self, what, *arguments, settings=None, nodes=None, workers=None, warmup=None):
        return self.run(*self.tpcc_arguments(settings, nodes, workers, warmup=warmup), *arguments,
                        what=what)

    def tpcc_arguments(self, settings=None, nodes=None, workers=None, seconds=True, warmup=None):
        """Returns arguments for TPC-C with a warehouse per worker. `warmup`: instead of --warmup.
        Without `seconds` the caller adds the times."""
        values = {"cluster.data_dir": self.work / "data", "cluster.log_dir": self.work / "logs",
                  **(settings or {})}
        found = ["tpcc", "--nodes", nodes or self.options.nodes,
                 "--workers-per-node", workers or self.options.workers]
        if seconds:
            found += ["--seconds", self.options.seconds,
                      "--warmup", self.options.warmup if warmup is None else warmup,
                      "--repeat", self.options.repeat, "--no-verify"]
        for key, value in values.items():
            found += ["--set", f"{key}={value}"]
        return [str(each) for each in found]

    def config(self, text):
        """Writes a config file with a data folder in `work`. Returns its path. A benchmark sizes
        the pools itself, except with a config file."""
        path = self.work / "paper.toml"
        path.write_text(f'[cluster]\nname = "paper"\ndata_dir = "{self.work / "data"}"\n'
                        f'log_dir = "{self.work / "logs"}"\n{text}', encoding="utf-8")
        return path


def thousands(report):
    return report["throughput_tps"] / 1000
