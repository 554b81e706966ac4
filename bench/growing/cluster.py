"""A cluster whose costs are counted: started, filled, killed and removed by bench/growth."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

from common.metrics import scrape

PER_CALL = 4000      # records of one procedure call; below [memory] write_set
CALLERS = 4          # calls at the same time
PATIENCE_S = 1800
PHASE = re.compile(r'phase="(\w+)"')
PHASES = ("capture", "map", "exchange", "sort", "merge", "compose", "finish", "install")
KILL_PATIENCE_S = 60
METRICS_PERIOD_S = 2  # after this time, the metrics hold all that has happened before
FULL = "volatile_pool_exhausted"


class GrowthError(Exception):
    """What the user is told."""


class Cluster:
    def __init__(self, binaries, work, library, settings, nodes=2, loggers=1):
        self.binaries, self.work = binaries, work
        self.data = work / "data"
        self.config = work / "growth.toml"
        shutil.rmtree(self.data, ignore_errors=True)
        per_node = f"\n[[node]]\nworkers = {loggers}\nloggers = {loggers}\n" * nodes
        self.config.write_text(
            f'[cluster]\nname = "growth"\ndata_dir = "{self.data}"\nlog_dir = "{work / "logs"}"\n'
            f'[procedures]\nlibraries = ["{library}"]\n{settings}\n{per_node}', encoding="utf-8")
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=str(work))

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.run("down", check=False)
        shutil.rmtree(self.data, ignore_errors=True)

    def run(self, *arguments, check=True):
        command = [str(self.binaries / "atoll"), *arguments, "-c", str(self.config)]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE_S)
        if check and done.returncode != 0:
            raise GrowthError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done

    def up(self):
        self.run("up")

    def status(self):
        return json.loads(self.run("status", "--json", check=False).stdout)

    def create(self, storage):
        self.run("storage", "create", storage, "--type", "mastertree", "--payload-bytes", "100")

    def call(self, procedure, text):
        while True:
            done = self.run("procedure", "call", procedure, text, check=False)
            if done.returncode == 0:
                return
            if FULL not in done.stderr:
                raise GrowthError(f"{procedure} {text}: {done.stderr.strip()}")

    def change(self, procedure, storage, records, step=1):
        """Calls the procedure for every `step`-th of the first `records` keys."""
        per_call = PER_CALL * step
        firsts = list(range(0, records, per_call))
        failures = []

        def work(calls):
            try:
                for first in calls:
                    count = -(-min(per_call, records - first) // step)
                    self.call(procedure, f"{storage} {first} {count} {step}")
            except (GrowthError, subprocess.TimeoutExpired) as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(firsts[number::CALLERS],))
                   for number in range(CALLERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def snapshot(self):
        """Takes a snapshot. Returns its costs: seconds, processor seconds, pages, bytes."""
        before, begin = self.metrics(), time.monotonic()
        self.run("snapshot", "take")
        seconds = time.monotonic() - begin
        # Installers end after the snapshot is published.
        while self.metric("atoll_snapshot_running", self.metrics()) != 0:
            time.sleep(0.05)
        time.sleep(METRICS_PERIOD_S)
        after = self.metrics()

        def grown(name):
            return self.metric(name, after) - self.metric(name, before)

        return {"seconds": seconds,
                "cpu": {phase: grown(f'atoll_snapshot_cpu_seconds_total phase="{phase}"')
                        for phase in PHASES},
                "pages": grown("atoll_composer_written_pages_total"),
                "records": grown("atoll_mapper_read_records_total"),
                "live": self.metric("atoll_snapshot_live_bytes", after)}

    def metrics(self):
        """Returns the sum over processes of each metric, also for each phase of snapshots."""
        sums = {}
        for labelled, value in scrape(self.work / "logs"):
            phase = PHASE.search(labelled)
            name = labelled.split("{")[0] + (f" {phase[0]}" if phase else "")
            sums[name] = sums.get(name, 0) + value
        return sums

    @staticmethod
    def metric(name, metrics):
        if name not in metrics:
            raise GrowthError(f"the cluster exports no metric {name}")
        return metrics[name]

    def processes(self):
        """Returns (role, pid) of each process."""
        return [(each["role"], each["pid"]) for each in self.status()["processes"]]

    def own_memory(self):
        """Returns the bytes of memory of its own that the largest process of each kind has."""
        found = {"coordinator": 0, "node": 0}
        for role, pid in self.processes():
            kind = role.rstrip("0123456789")
            for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("RssAnon:") and kind in found:
                    found[kind] = max(found[kind], int(line.split()[1]) * 1024)
        return found

    def descriptors(self):
        """Returns the largest number of descriptors of a process of each kind."""
        found = {"coordinator": 0, "node": 0}
        for role, pid in self.processes():
            kind = role.rstrip("0123456789")
            if kind in found:
                found[kind] = max(found[kind], len(os.listdir(f"/proc/{pid}/fd")))
        return found

    def files(self):
        return sum(len(names) for _, _, names in os.walk(self.data))

    def kill(self):
        """Kills all processes, as a crash of the machine would."""
        pids = [pid for _, pid in self.processes()]
        launcher = {int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
                    for pid in pids} - {1}
        killed = [*launcher, *pids]
        for pid in killed:
            with contextlib.suppress(ProcessLookupError):  # the others die with the launcher
                os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + KILL_PATIENCE_S
        # The launcher holds the lock of the cluster until it has ended.
        while any(is_alive(pid) for pid in killed):
            if time.monotonic() > end:
                raise GrowthError(f"a killed process of {killed} has not ended")
            time.sleep(0.01)


def is_alive(pid):
    """Returns whether the process exists and is no zombie."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
